// Bounds the stack of the engine in a component, so that calls which go too deep are a RangeError there and no trap.
//
// QuickJS looks at each call whether its stack is below a limit, but sets no limit in WebAssembly. The limit is a word
// of its runtime, which lies in the image that the component starts from: this writes the word. It changes nothing
// else, and refuses an image in which it does not find exactly one runtime.

import { encodeNumber, readNumber, rewriteSections, SECTION } from "./sections.mjs";

/** The stack of the image begins here and grows down to 0: what the linker of components gives a library. */
const STACK_BYTES = 1 << 20;

/**
 * What is left below the limit, for what runs without looking: native code of the engine, and the host's adapters.
 *
 * The host's own stack is the other bound, of 6 MiB (`STACK_BYTES_MAX` of the engine). For each byte above the limit
 * a call took 3.5 to 6 bytes there, measured with calls, callbacks, getters, proxies, constructors and generators.
 */
const RESERVE_BYTES = 192 << 10;

/** The tag of the value that means "none" in `current_exception`, which follows the limit. */
const UNINITIALIZED = 4;

/** A component whose engine has a limit. */
export function withStackLimit(component) {
  const found = { places: 0 };
  const limited = rewriteComponent(component, found);
  if (found.places !== 1) {
    throw new Error(`the image has ${found.places} runtimes of QuickJS, and 1 is expected; is this another componentize-qjs?`);
  }
  return limited;
}

function rewriteComponent(bytes, found) {
  return rewriteSections(bytes, (id, body) => {
    if (id === SECTION.component) return rewriteComponent(body, found);
    return id === SECTION.coreModule ? rewriteModule(body, found) : body;
  });
}

function rewriteModule(bytes, found) {
  return rewriteSections(bytes, (id, body) => (id === SECTION.data ? rewriteData(body, found) : body));
}

function rewriteData(body, found) {
  const segments = readSegments(body);
  if (segments === undefined) return body;
  const end = Math.max(0, ...segments.map(({ address, bytes }) => address + bytes.length));
  const memory = Buffer.alloc(end);
  for (const { address, bytes } of segments) bytes.copy(memory, address);
  const places = limitsIn(memory);
  found.places += places.length;
  if (places.length !== 1) return body;
  const word = Buffer.alloc(4);
  word.writeUInt32LE(RESERVE_BYTES);
  // The image leaves out zeros, so the word may lie between two segments.
  const last = segments.findLast(({ address }) => address <= places[0]);
  const offset = places[0] - last.address;
  const length = Math.max(last.bytes.length, offset + 4);
  last.bytes = Buffer.concat([last.bytes, Buffer.alloc(length - last.bytes.length)]);
  word.copy(last.bytes, offset);
  const parts = segments.map(({ head, bytes }) => Buffer.concat([head, encodeNumber(bytes.length), bytes]));
  return Buffer.concat([encodeNumber(segments.length), ...parts]);
}

/** The segments in the order of their addresses; none when one of them is no plain part of the first memory. */
function readSegments(body) {
  const segments = [];
  const [count, first] = readNumber(body, 0);
  for (let at = first; segments.length < count; ) {
    const start = at;
    // `i32.const N; end`, in the first memory.
    if (body[at] !== 0 || body[at + 1] !== 0x41) return undefined;
    const [address, afterAddress] = readNumber(body, at + 2);
    if (body[afterAddress] !== 0x0b) return undefined;
    const [size, begin] = readNumber(body, afterAddress + 1);
    segments.push({ address, head: body.subarray(start, afterAddress + 1), bytes: body.subarray(begin, begin + size) });
    at = begin + size;
  }
  return segments.sort((one, other) => one.address - other.address);
}

/**
 * Where runtimes have their limit: after `stack_size`, which is 0, and `stack_top`, which is near the start of the
 * stack; before `current_exception`. A threshold of the garbage collector precedes them.
 */
function limitsIn(memory) {
  const word = (at) => memory.readUInt32LE(at);
  const places = [];
  for (let at = 8; at + 16 <= memory.length; at += 8) {
    // `at` is `current_exception`, which the engine aligns to 8 bytes.
    if (word(at) !== 0 || word(at + 4) !== UNINITIALIZED || at < 16) continue;
    const [threshold, size, top, limit] = [16, 12, 8, 4].map((back) => word(at - back));
    const isTop = top <= STACK_BYTES && top > STACK_BYTES - (16 << 10);
    if (threshold !== 0 && size === 0 && isTop && limit === 0) places.push(at - 4);
  }
  return places;
}
