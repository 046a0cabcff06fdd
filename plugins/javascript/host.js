// What the host gives: time, randomness, a place to print to, and the directories that were granted.

import timer from "longhaul:plugin/timer@0.1.0";
import monotonic from "wasi:clocks/monotonic-clock@0.2.12";
import random from "wasi:random/random@0.2.12";
import stderr from "wasi:cli/stderr@0.2.12";
import stdout from "wasi:cli/stdout@0.2.12";
import { encode } from "./utf8.js";

/** Bytes that one blocking write takes, by the contract of wasi:io. */
const WRITE_BYTES_MAX = 4096;

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

export function writeOut(text) {
  write(stdout.getStdout(), text);
}

export function writeErr(text) {
  write(stderr.getStderr(), text);
}

function write(stream, text) {
  const bytes = encode(text);
  for (let at = 0; at < bytes.length; at += WRITE_BYTES_MAX) {
    stream.blockingWriteAndFlush(bytes.length <= WRITE_BYTES_MAX ? bytes : bytes.slice(at, at + WRITE_BYTES_MAX));
  }
}
