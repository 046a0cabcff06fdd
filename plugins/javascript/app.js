// The tool `javascript`: runs JavaScript source in this very engine, QuickJS, inside the sandbox.
//
// `run` answers what the source printed and how it ended; `check` also whether it ended well, which a
// module that exits while it is loaded does not. Nothing can be reached from here but directories
// and hosts that the operator granted: no processes, no threads, no sockets. Isolation between calls is the host's: it
// starts a fresh instance for each. What bounds a call is the host's fuel, memory and deadline;
// `timeout` here is a courtesy that answers nicely first.

import { describeError } from "./inspect.js";
import { execute } from "./machine.js";
import { mayNestDeeper } from "./nesting.js";

const OUTPUT_BYTES_MAX = 200_000;
const SOURCE_CHARS_MAX = 1_000_000;
/** Deeper JSON would exhaust the engine's stack, which ends the instance without a word. */
const JSON_NESTING_MAX = 200;

/** Taken before any source runs, which may put something else in their place. */
const { parse, stringify } = JSON;

const PARAMETERS = {
  type: "object",
  properties: {
    source: { type: "string", description: "JavaScript source" },
    stdin: { type: "string" },
    timeout: { type: "number", exclusiveMinimum: 0, description: "seconds" },
    files: {
      type: "object",
      additionalProperties: { type: "string" },
      description: "modules by file name, such as helper.js",
    },
    typescript: { type: "boolean", description: "whether the source is TypeScript, whose types are taken out" },
    context: { type: "object", description: "what the source sees as CONTEXT" },
  },
  required: ["source"],
  additionalProperties: false,
};

const TYPES = { source: "string", stdin: "string", timeout: "number", files: "object", typescript: "boolean", context: "object" };

/** The host's own, and no tool's: pictures are not for models. */
const RICH = "rich";

const INFO = {
  id: "javascript",
  description: "Runs JavaScript in a sandbox without processes.",
  functions: [
    describeFunction("run", "Runs JavaScript source and gives what it printed."),
    describeFunction("check", "Runs JavaScript source; it passes when it ends with exit code 0."),
  ],
};

export const tool = {
  describe() {
    return INFO;
  },

  prepare() {
    return "{}";
  },

  verify() {
    // Both functions are read-only: the host never asks.
    return { tag: "did-not-happen" };
  },

  call(name, args, context) {
    try {
      return call(name, args, context);
    } catch (error) {
      if (error instanceof Refusal) throw error.variant;
      // Anything else would end the instance without a message.
      throw { tag: "failed", val: describeError(error).toWellFormed() };
    }
  },
};

class Refusal {
  constructor(tag, text) {
    this.variant = { tag, val: text.toWellFormed() };
  }
}

function describeFunction(name, description) {
  return { name, description, parameters: stringify(PARAMETERS), effect: "read-only" };
}

function call(name, args, context) {
  if (name !== "run" && name !== "check") {
    throw new Refusal("unknown-function", `\`${name}\`; the tool \`javascript\` has run and check`);
  }
  const request = readArguments(args);
  const settings = readSettings(context.settings);
  const isCheck = name === "check";
  const { stdout, stderr, exitCode, truncated, outputs } = execute(request, settings, isCheck);
  // Without a prototype, so that nothing the source did to `Object` shows here.
  const output = { __proto__: null, stdout, stderr, exit_code: exitCode };
  if (isCheck) output.passed = exitCode === 0;
  const text = stringify(output);
  return { output: outputs === undefined ? text : withOutputs(text, outputs), truncated };
}

/** An answer with outputs, which are JSON already. */
function withOutputs(text, { lines, dropped }) {
  return `${text.slice(0, -1)},"outputs":[${lines.join(",")}],"outputs_dropped":${dropped}}`;
}

// Arguments and settings: others wrote them.

function readArguments(text) {
  const given = readObject("the arguments", text);
  const request = {};
  for (const [name, value] of Object.entries(given)) {
    if (name === RICH && typeof value === "boolean") {
      request.rich = value;
      continue;
    }
    if (!Object.hasOwn(TYPES, name)) invalid(`\`${name}\` is not an argument; known: ${Object.keys(TYPES).join(", ")}`);
    // Models send null for what they leave out.
    if (value === null) continue;
    if (typeName(value) !== TYPES[name]) invalid(`\`${name}\` has the wrong type: ${typeName(value)}`);
    request[name] = value;
  }
  if (request.source === undefined) invalid("`source` is missing; it is the JavaScript source to run");
  let length = request.source.length;
  for (const source of Object.values(request.files ?? {})) {
    if (typeof source !== "string") invalid("`files` maps names to texts");
    length += source.length;
  }
  if (length > SOURCE_CHARS_MAX) invalid(`source and files are longer than ${SOURCE_CHARS_MAX} characters`);
  if (!(request.timeout ?? 1) > 0) invalid("`timeout` is in seconds and more than 0");
  return request;
}

function readSettings(text) {
  const settings = { output_bytes_max: OUTPUT_BYTES_MAX, stream: false };
  for (const [name, value] of Object.entries(readObject("the settings of the tool `javascript`", text || "{}"))) {
    if (!Object.hasOwn(settings, name)) {
      invalid(`\`${name}\` is not a setting of the tool \`javascript\`; known: ${Object.keys(settings).join(", ")}`);
    }
    if (name === "stream") {
      if (typeof value !== "boolean") invalid("the setting `stream` is true or false");
    } else if (!Number.isInteger(value) || value < 1) invalid(`the setting \`${name}\` is a whole number of 1 or more`);
    settings[name] = value;
  }
  return settings;
}

function readObject(what, text) {
  let value;
  try {
    checkNesting(text);
    value = parse(text);
  } catch (error) {
    invalid(`${what} cannot be read: ${error.message}`);
  }
  if (typeName(value) !== "object") invalid(`${what} must be a JSON object`);
  return value;
}

function checkNesting(text) {
  if (!mayNestDeeper(text, ["[", "{"], JSON_NESTING_MAX)) return;
  let depth = 0;
  for (const [mark] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    if (mark === "[" || mark === "{") depth += 1;
    else if (mark === "]" || mark === "}") depth -= 1;
    if (depth > JSON_NESTING_MAX) throw new SyntaxError(`it is nested deeper than ${JSON_NESTING_MAX} levels`);
  }
}

function typeName(value) {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

function invalid(text) {
  throw new Refusal("invalid-arguments", text);
}
