// Waiting. In an agent and a planner a wait is durable: it goes on where it was after a restart.

import host from "#host/timer";

import { ask } from "./errors.js";
import * as shape from "./shapes.js";

export function sleep(durationMs) {
  ask(() => host.sleep(shape.u32(Math.ceil(durationMs), "durationMs")));
}
