// Notes of the work that was done, for the next worker on the project.

import host from "#host/progress";

import { ask } from "./errors.js";
import * as shape from "./shapes.js";

export function add(action, outcome, files = []) {
  ask(() => host.add(shape.text(action, "action"), shape.text(outcome, "outcome"), shape.list(shape.text)(files, "files")));
}
