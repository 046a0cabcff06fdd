// The time. In a planner, an agent and an evaluator it is the journal's: the same in every replay.

import host from "#host/clock";

/** Milliseconds since 1970-01-01 UTC. */
export function nowMs() {
  return host.nowMs();
}
