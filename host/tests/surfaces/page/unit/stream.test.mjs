// A stream is followed over breaks: from its last id, without a pause that nobody asked for, and not by who is not looking.

import assert from "node:assert/strict";
import test, { beforeEach, mock } from "node:test";

globalThis.document = Object.assign(new EventTarget(), { hidden: false });
const folder = process.env.PAGE_MODULES;
const { follow } = await import(new URL("stream.js", folder));
const link = await import(new URL("link.js", folder));

let asked, answers;

beforeEach(() => {
  asked = [];
  answers = [];
  globalThis.fetch = async (path, { headers, signal }) => {
    asked.push(headers["last-event-id"] ?? null);
    const answer = answers.shift();
    if (answer === undefined) return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    if (answer instanceof Error) throw answer;
    return answer(signal);
  };
});

const frame = (id) => `id: ${id}\nevent: event\ndata: {"number":${id}}\n\n`;

/** A stream that says this and ends, or stays open. */
const says = (text, stays = false) => (signal) =>
  new Response(new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(text));
      if (!stays) controller.close();
      else signal.addEventListener("abort", () => controller.error(signal.reason));
    },
  }));

const settle = async () => {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

function followed(options = {}) {
  const stop = new AbortController();
  const heard = [];
  const opened = [];
  const done = follow("/x", { signal: stop.signal, onEvent: (event) => heard.push(event.data.number), onOpen: (again) => opened.push(again), ...options });
  return { stop, heard, opened, done };
}

test("after a break it comes again with the last id, first at once and then ever later", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  answers = [says(frame(1) + frame(2)), new TypeError("refused"), new TypeError("refused"), says(frame(3), true)];
  const { stop, heard, opened, done } = followed();
  await settle();
  assert.deepEqual(asked, [null]);
  mock.timers.tick(250);
  await settle();
  assert.deepEqual(asked, [null, "2"]);
  assert.equal(link.now().lost, true, "and says that the server is lost");
  mock.timers.tick(1000);
  await settle();
  assert.equal(asked.length, 3);
  mock.timers.tick(2000);
  await settle();
  assert.deepEqual(asked, [null, "2", "2", "2"]);
  assert.deepEqual(heard, [1, 2, 3]);
  assert.deepEqual(opened, [false, true]);
  assert.equal(link.now().lost, false);
  stop.abort();
  await done;
  mock.timers.reset();
});

test("it begins where it is told to, and ends when it is told to", async () => {
  answers = [says(frame(8), true)];
  const { stop, heard, done } = followed({ lastId: 7 });
  await settle();
  assert.deepEqual([asked, heard], [["7"], [8]]);
  stop.abort();
  await done;
  assert.equal(asked.length, 1);
});

test("an answer that asking again does not mend ends it", async () => {
  answers = [() => new Response('{"detail":"the scope read is needed"}', { status: 403 })];
  await assert.rejects(followed().done, /the scope read is needed/);
  assert.equal(asked.length, 1);
});

test("a server without room is asked again and is not called lost", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  answers = [() => new Response("{}", { status: 503 }), says(frame(1), true)];
  const { stop, heard, done } = followed();
  await settle();
  assert.equal(link.now().lost, false);
  mock.timers.tick(1000);
  await settle();
  assert.deepEqual(heard, [1]);
  stop.abort();
  await done;
  mock.timers.reset();
});

test("a stream that says nothing for long is taken for broken", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  answers = [says(frame(1), true), says(frame(2), true)];
  const { stop, heard, done } = followed();
  await settle();
  mock.timers.tick(40_000);
  await settle();
  mock.timers.tick(250);
  await settle();
  assert.deepEqual(heard, [1, 2]);
  stop.abort();
  await done;
  mock.timers.reset();
});

test("a page that nobody looks at lets go, and comes back to where it was", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  answers = [says(frame(1), true), says(frame(2), true)];
  const { stop, heard, done } = followed();
  await settle();
  look(false);
  mock.timers.tick(19_999);
  look(true);
  await settle();
  assert.equal(asked.length, 1, "a glance elsewhere lets nothing go");
  look(false);
  mock.timers.tick(20_000);
  await settle();
  mock.timers.tick(60_000);
  await settle();
  assert.equal(asked.length, 1, "it stays away");
  assert.equal(link.now().lost, false);
  look(true);
  await settle();
  assert.deepEqual([asked, heard], [[null, "1"], [1, 2]]);
  stop.abort();
  await done;
  mock.timers.reset();
});

function look(isSeen) {
  document.hidden = !isSeen;
  document.dispatchEvent(new Event("visibilitychange"));
}

test("what is no object is passed over", async () => {
  answers = [says(`data: {broken\n\ndata: 7\n\n${frame(4)}`, true)];
  const { stop, heard, done } = followed();
  await settle();
  assert.deepEqual(heard, [4]);
  stop.abort();
  await done;
});
