// Work for other agents, each with a fresh context.

import host from "#host/delegate";

import { ask, fromVariant } from "./errors.js";
import * as lift from "./lift.js";
import * as shape from "./shapes.js";

/** The outcome of `agent` on `task`, of which only `instruction` is needed. */
export function run(agent, task) {
  return lift.outcome(ask(() => host.run(lower({ agent, task }))));
}

/** Beside each other; for each `{ agent, task }`, in their order: `{ outcome }`, or `{ error }`. */
export function runMany(assignments) {
  const results = ask(() => host.runMany(assignments.map(lower)));
  return results.map(({ tag, val }) => (tag === "err" ? { error: fromVariant(val) } : { outcome: lift.outcome(val) }));
}

function lower(assignment) {
  return shape.record({ agent: shape.text, task: shape.task })(assignment, "assignment");
}
