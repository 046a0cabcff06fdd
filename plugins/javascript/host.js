// What the host gives: time, randomness, and the directories that were granted.

import timer from "longhaul:plugin/timer@0.1.0";
import monotonic from "wasi:clocks/monotonic-clock@0.2.12";
import random from "wasi:random/random@0.2.12";

/** Milliseconds of a clock that only goes forward. */
export function now() {
  return monotonic.now() / 1e6;
}

/** Waits, as long as the host lets it. */
export function sleep(ms) {
  timer.sleep(Math.ceil(ms));
}

export function randomBytes(count) {
  return random.getRandomBytes(count);
}
