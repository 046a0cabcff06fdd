// The pinned checks of the work: they can be run, and neither changed nor added.

import host from "#host/checks";

import { ask } from "./errors.js";
import * as shape from "./shapes.js";

/** `{ name, description, vacuous }` of each. A vacuous one passed before the work began. */
export function list() {
  return host.list();
}

/** `{ name, passed, exitCode, stdout, stderr, truncated }`. */
export function run(name) {
  return ask(() => host.run(shape.text(name, "name")));
}
