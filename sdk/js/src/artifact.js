// The artifact of an agent: the state that one invocation passes to the next.

import host from "#host/artifact";

import { ask } from "./errors.js";
import { readJson } from "./json.js";
import * as shape from "./shapes.js";

/** `{ saveNumber, state, summary }`, or undefined on the first invocation. */
export function load() {
  const found = ask(() => host.load());
  return found ? { ...found, state: readJson("the state", found.state) } : undefined;
}

export function save(state, summary) {
  ask(() => host.save(shape.json(state, "state"), shape.text(summary, "summary")));
}
