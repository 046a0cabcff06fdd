// The log of decisions and what came of them.

import host from "#host/decisions";

import { ask } from "./errors.js";
import { orUndefined } from "./lift.js";
import * as shape from "./shapes.js";

const lower = shape.record({
  context: shape.text,
  decision: shape.text,
  reasoning: shape.text,
  tags: shape.orElse(shape.list(shape.text), []),
  outcome: shape.orElse(shape.oneOf("open", "success", "partial", "failure", "reverted"), "open"),
  lesson: shape.option(shape.text),
});

/** Keeps a decision and gives its id. */
export function record(decision) {
  return ask(() => host.record(lower(decision, "decision")));
}

/** `{ id, atMs, decision }` of each, the best first. */
export function find(query, limit = 10) {
  const found = ask(() => host.find(shape.text(query, "query"), shape.u32(limit, "limit")));
  return found.map(({ decision, ...one }) => ({ ...one, decision: { ...decision, lesson: orUndefined(decision.lesson) } }));
}
