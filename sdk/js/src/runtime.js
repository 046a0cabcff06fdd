// Repairs of the engine for a plugin: `console`, randomness, and clear words where a script
// expects timers or the network.

import log from "longhaul:plugin/log@0.1.0";
import random from "wasi:random/random@0.2.12";

import { makeRandom } from "./random.js";
import { show } from "./show.js";

const generator = makeRandom();
let isSeeded = false;

/** Before each call of the host: the engine carries the randomness of its build. */
export function beginCall() {
  isSeeded = false;
}

Math.random = function random_() {
  if (!isSeeded) {
    generator.seed(random.getRandomBytes(16));
    isSeeded = true;
  }
  return generator.next();
};

const write =
  (level) =>
  (...values) =>
    log.write(level, values.map(show).join(" ").toWellFormed());

globalThis.console = {
  trace: write("trace"),
  debug: write("debug"),
  log: write("info"),
  info: write("info"),
  warn: write("warn"),
  error: write("error"),
};

const INSTEAD = {
  setTimeout: "wait with `sleep` of longhaul-sdk",
  setInterval: "wait with `sleep` of longhaul-sdk, in a loop",
  setImmediate: "call the function",
  queueMicrotask: "call the function",
  fetch: "call a tool that was granted the network",
};

for (const [name, instead] of Object.entries(INSTEAD)) {
  globalThis[name] = () => {
    throw new Error(`there is no \`${name}\` in a plugin; ${instead}`);
  };
}
