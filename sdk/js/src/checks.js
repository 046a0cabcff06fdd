// The pinned checks of the work: they can be run, and neither changed nor added.

import host from "#host/checks";

import { ask } from "./errors.js";
import { orUndefined } from "./lift.js";
import * as shape from "./shapes.js";

/** `{ name, description, vacuous }` of each. A vacuous one passed before the work began. */
export function list() {
  return host.list();
}

/** `{ name, passed, exitCode, stdout, stderr, truncated, durationMs, sandboxLevel }`. Without an exit code a limit ended the check. */
export function run(name) {
  const report = ask(() => host.run(shape.text(name, "name")));
  const { exitCode, durationMs, sandboxLevel } = report;
  return { ...report, exitCode: orUndefined(exitCode), durationMs: durationMs >>> 0, sandboxLevel: orUndefined(sandboxLevel) };
}
