// The tools that were granted to an agent.

import host from "#host/tools";

import { ask, fromVariant } from "./errors.js";
import { readJson } from "./json.js";
import * as shape from "./shapes.js";
import { cut } from "./show.js";

/** The host keeps answers of so many bytes, under the number of their call. */
const KEPT_BYTES_MIN = 4_000;

let callsMade = 0;
let readsAgain = false;

/** Every granted tool with its functions; `parameters` is a JSON Schema, read. */
export function list() {
  const granted = host.list();
  readsAgain = granted.some(({ id, functions }) => id === "context" && functions.some(({ name }) => name === "read_again"));
  return granted.map((tool) => ({
    ...tool,
    functions: tool.functions.map((one) => ({ ...one, parameters: readJson("the parameters", one.parameters) })),
  }));
}

/** The answer of `tool.function` to `args`; its text where it was cut and is no JSON. */
export function call(tool, name, args = {}) {
  callsMade += 1;
  return lift(ask(() => host.call(lower({ tool, function: name, arguments: args }))), tool, name);
}

/**
 * Runs the calls beside each other. For each, in their order: `{ output }`, or `{ error }` with one of
 * the error classes.
 */
export function callMany(calls) {
  callsMade += calls.length;
  const results = ask(() => host.callMany(calls.map(lower)));
  return results.map(({ tag, val }, at) => {
    if (tag === "err") return { error: fromVariant(val) };
    return { output: lift(val, calls[at].tool, calls[at].function) };
  });
}

/** At most `charsMax` characters of what the last call answered, with how to read on where the host keeps the rest. */
export function beginning(output, charsMax) {
  const shown = cut(output, charsMax);
  // A character has at least a byte, so this is kept for sure.
  if (shown === output || !readsAgain || output.length < KEPT_BYTES_MIN) return shown;
  const id = JSON.stringify({ id: `call-${callsMade}` });
  return `${shown.slice(0, -1)}; to read all of it, call context.read_again with ${id})`;
}

function lower(given) {
  const record = shape.record({ tool: shape.text, function: shape.text, arguments: shape.orElse(shape.json, {}) });
  return record(given, "call");
}

function lift({ output, truncated }, tool, name) {
  try {
    return readJson(`the answer of \`${tool}.${name}\``, output);
  } catch (error) {
    // A cut answer may be JSON no more, and is worth its text.
    if (truncated) return output;
    throw error;
  }
}
