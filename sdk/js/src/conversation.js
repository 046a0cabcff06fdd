// A conversation with a model. The host keeps the context and counts its tokens.

import host from "#host/conversation";

import { ask, Invalid } from "./errors.js";
import { firstObject, readJson, readObject } from "./json.js";
import { orUndefined, usage } from "./lift.js";
import { problemOf } from "./schema.js";
import * as shape from "./shapes.js";

const lowerMessage = shape.record({
  role: shape.oneOf("user", "assistant", "tool"),
  parts: shape.list(
    shape.variant({
      text: shape.text,
      image: shape.record({ mediaType: shape.text, data: shape.bytes }),
      "tool-call": shape.record({ id: shape.text, tool: shape.text, function: shape.text, arguments: shape.json }),
      "tool-result": shape.record({ id: shape.text, output: shape.json, failed: shape.orElse(shape.bool, false) }),
    }),
  ),
});

const lowerOptions = shape.record({
  model: shape.option(shape.text),
  outputTokensMax: shape.option(shape.u32),
  temperature: shape.option(shape.f64),
  seed: shape.option(shape.u32),
  format: shape.orElse(shape.variant({ text: null, json: null, schema: shape.json }), "text"),
  prefill: shape.option(shape.text),
  stop: shape.orElse(shape.list(shape.text), []),
  offerTools: shape.orElse(shape.list(shape.text), []),
  extra: shape.orElse(shape.json, {}),
});

export class Conversation {
  #raw;

  constructor(system) {
    this.#raw = new host.Conversation(shape.text(system, "system"));
  }

  /** Adds a message. A pinned one survives compaction and reset. */
  push(message, { pinned = false } = {}) {
    ask(() => this.#raw.push(lowerMessage(message, "message"), shape.bool(pinned, "pinned")));
  }

  /** Adds a text of the user. */
  user(text, options) {
    this.push({ role: "user", parts: [{ text }] }, options);
  }

  /** Answers a tool that the model asked for, `id` being the one of its request. */
  answer({ id, output, failed }) {
    this.push({ role: "tool", parts: [{ "tool-result": { id, output, failed } }] });
  }

  /** Asks the model: `{ text, calls, reason, usage, extra }`. */
  complete(options = {}) {
    const reply = ask(() => this.#raw.complete(lowerOptions(options, "options")));
    const calls = reply.calls.map((call) => ({ ...call, arguments: readJson("the arguments of the model", call.arguments) }));
    return { ...reply, calls, usage: usage(reply.usage), extra: readObject("`extra` of the reply", reply.extra) };
  }

  /** Says `prompt` and gives the reply. */
  text(prompt, options) {
    this.user(prompt);
    return this.complete(options).text;
  }

  /** Says `prompt` and reads the reply, which must satisfy `schema`; throws `Invalid` where it does not. */
  json(prompt, schema, options) {
    this.user(prompt);
    return readReply(this.complete({ ...options, format: { schema } }).text, schema);
  }

  /** Tokens and money so far, and how full the context is. */
  usage() {
    const { total, contextTokensMax, ...context } = this.#raw.usage();
    return { ...context, contextTokensMax: orUndefined(contextTokensMax), total: usage(total) };
  }

  /** Forgets all but the system prompt, what is pinned, and this summary. */
  reset(summary) {
    ask(() => this.#raw.reset(shape.text(summary, "summary")));
  }
}

function readReply(text, schema) {
  let value;
  try {
    value = readJson("the model's reply", text);
  } catch (error) {
    value = firstObject(text);
    if (value === undefined) throw error;
  }
  const problem = problemOf(value, schema);
  if (problem !== undefined) throw new Invalid(`the model's reply does not fit: ${problem}`);
  return value;
}
