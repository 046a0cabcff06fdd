// The tools that were granted to an agent.

import host from "#host/tools";

import { ask, fromVariant } from "./errors.js";
import { readJson } from "./json.js";
import * as shape from "./shapes.js";

/** Every granted tool with its functions; `parameters` is a JSON Schema, read. */
export function list() {
  return host.list().map((tool) => ({
    ...tool,
    functions: tool.functions.map((one) => ({ ...one, parameters: readJson("the parameters", one.parameters) })),
  }));
}

/** What `tool.function` answers to `args`; the text of it where it was cut and is no JSON. */
export function call(tool, name, args = {}) {
  return lift(ask(() => host.call(lower({ tool, function: name, arguments: args }))), tool, name);
}

/**
 * Runs the calls beside each other. For each, in their order: `{ output }`, or `{ error }` with one of
 * the error classes.
 */
export function callMany(calls) {
  const results = ask(() => host.callMany(calls.map(lower)));
  return results.map(({ tag, val }, at) => {
    if (tag === "err") return { error: fromVariant(val) };
    return { output: lift(val, calls[at].tool, calls[at].function) };
  });
}

function lower(given) {
  const record = shape.record({ tool: shape.text, function: shape.text, arguments: shape.orElse(shape.json, {}) });
  return record(given, "call");
}

function lift({ output, truncated }, tool, name) {
  try {
    return readJson(`the answer of \`${tool}.${name}\``, output);
  } catch (error) {
    // What was cut may be JSON no more, and is worth its text.
    if (truncated) return output;
    throw error;
  }
}
