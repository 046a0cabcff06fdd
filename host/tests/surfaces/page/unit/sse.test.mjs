// Server-sent events come whole and once, however the network cuts them up.

import assert from "node:assert/strict";
import test from "node:test";

const { EventReader, EVENT_CHARS_MAX, backoffMs } = await import(new URL("sse.js", process.env.PAGE_MODULES));

const read = (...pieces) => {
  const reader = new EventReader();
  return pieces.flatMap((piece) => reader.push(piece));
};

const STREAM =
  '\ufeffretry: 1000\n\n: hb\n\nid: 17\nevent: event\ndata: {"a":1}\ndata: {"b":2}\n\r\nevent:token\rdata:x\r\ndata: y\n\nid: 18\ndata:\n\n';

test("a stream gives the same events wherever it is cut", () => {
  const whole = read(STREAM);
  assert.deepEqual(whole, [
    { type: "event", data: '{"a":1}\n{"b":2}', id: "17" },
    { type: "token", data: "x\ny", id: null },
    { type: "message", data: "", id: "18" },
  ]);
  for (let at = 0; at <= STREAM.length; at += 1)
    assert.deepEqual(read(STREAM.slice(0, at), STREAM.slice(at)), whole, `cut at ${at}`);
  assert.deepEqual(read(...STREAM), whole, "sign by sign");
});

test("the last id and the wait that the stream asks for are kept, and an id with a zero is none", () => {
  const reader = new EventReader();
  reader.push("id: 4\nretry: 250\ndata: a\n\nid: 5\u0000\ndata: b\n\nretry: soon\n\n");
  assert.equal(reader.lastId, "4");
  assert.equal(reader.retryMs, 250);
});

test("the sign that some put before a text is no part of it", () => {
  const reader = new EventReader();
  reader.push("\ufeffretry: 1000\n\n");
  assert.equal(reader.retryMs, 1000);
});

test("what is not whole is not told, and fields that nobody knows are passed over", () => {
  assert.deepEqual(read("data: half\n"), []);
  assert.deepEqual(read("event: nothing\n\n"), []);
  assert.deepEqual(read("shape: round\ndata: a\n\n"), [{ type: "message", data: "a", id: null }]);
});

test("an event that never ends is an error and fills no memory", () => {
  const reader = new EventReader();
  const piece = `data: ${"x".repeat(1024 * 1024)}\n`;
  assert.throws(() => {
    for (let pushed = 0; pushed <= EVENT_CHARS_MAX; pushed += piece.length) reader.push(piece);
  }, RangeError);
  assert.throws(() => new EventReader().push("y".repeat(EVENT_CHARS_MAX + 1)), RangeError);
});

test("a long event that comes in many pieces is read once, within a cap of its own", () => {
  const reader = new EventReader(2 * EVENT_CHARS_MAX);
  const piece = "x".repeat(1024);
  let events = reader.push("event: result\ndata: ");
  for (let size = 0; size <= EVENT_CHARS_MAX; size += piece.length) events = events.concat(reader.push(piece));
  assert.deepEqual(events, []);
  const [{ type, data }] = reader.push("\n\n");
  assert.deepEqual([type, data.length], ["result", EVENT_CHARS_MAX + piece.length]);
  assert.throws(() => reader.push("y".repeat(2 * EVENT_CHARS_MAX + 1)), RangeError);
});

test("waits grow to the cap and never are none", () => {
  const waits = [1, 2, 3, 4, 5, 6, 50].map((attempt) => backoffMs(attempt, 1));
  assert.deepEqual(waits, [1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
  assert.equal(backoffMs(1, 0), 750);
});
