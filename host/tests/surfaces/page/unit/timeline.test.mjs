// The events of a run as items: each once, calls with their answers, what is being said apart, and never too many.

import assert from "node:assert/strict";
import test from "node:test";

const { Timeline, itemOf, levelOf, spoken, ITEMS_MAX, LIVE_CHARS_MAX } = await import(
  new URL("timeline.js", process.env.PAGE_MODULES)
);

const line = (number, type, payload = {}) => ({ version: 1, run: "r-1", number, at_ms: number * 1000, type, payload });
const action = (number, step) =>
  line(number, "action", { invocation: "r-1/f/1", step, tool: "files", function: "write", arguments: "{}" });
const answer = (number, of, ok = true) =>
  line(number, "observation", {
    invocation: "r-1/f/1",
    step: of + 1,
    of,
    tool: "files",
    function: "write",
    ok,
    output: "done",
    took_ms: 5,
  });
const token = (after, part, text, whole = false) => ({
  run: "r-1",
  after,
  part,
  type: "token",
  payload: { invocation: "r-1/f/1", text, whole },
});

test("an event that is sent twice is shown once", () => {
  const list = new Timeline();
  assert.ok(list.push(line(1, "run_started")));
  assert.ok(list.push(line(2, "resumed")));
  assert.equal(list.push(line(2, "resumed")), false);
  assert.equal(list.push(line(1, "run_started")), false);
  assert.deepEqual(
    list.items.map((item) => item.number),
    [1, 2],
  );
});

test("a call and its answer are one item", () => {
  const list = new Timeline();
  list.push(action(1, 4));
  assert.equal(list.items[0].result, null);
  list.push(answer(2, 4, false));
  assert.equal(list.items.length, 1);
  assert.deepEqual(list.items[0].result, { ok: false, output: "done", tookMs: 5 });
  assert.equal(list.last, 2);
});

test("earlier events come before, once, and an answer finds its call there", () => {
  const list = new Timeline();
  list.push(answer(11, 4));
  list.push(line(12, "resumed"));
  assert.equal(list.prepend([line(9, "run_started"), action(10, 4), answer(11, 4), line(12, "resumed")]), 2);
  assert.deepEqual(
    list.items.map((item) => [item.number, item.kind]),
    [
      [9, "run_started"],
      [10, "action"],
      [12, "resumed"],
    ],
  );
  assert.equal(list.items[1].result.output, "done");
  assert.equal(list.first, 9);
});

test("what a model is saying grows by parts, each heard once, and is gone when it is said", () => {
  const list = new Timeline();
  list.push(line(1, "task_started", { invocation: "r-1/f/1" }));
  assert.ok(list.token(token(1, 1, "one ")));
  assert.ok(list.token(token(1, 2, "two ")));
  assert.equal(list.token(token(1, 2, "two ")), false);
  assert.equal(list.live.get("r-1/f/1").text, "one two ");
  assert.ok(list.token(token(1, 3, "one two three", true)));
  assert.equal(list.live.get("r-1/f/1").text, "one two three");
  list.push(line(2, "thought", { invocation: "r-1/f/1", text: "one two three" }));
  assert.equal(list.live.size, 0);
  assert.ok(list.token(token(2, 1, "next")));
  assert.equal(list.live.get("r-1/f/1").text, "next");
});

test("a reply of any length is held to the cap", () => {
  const list = new Timeline();
  for (let part = 1; part <= 50; part += 1) list.token(token(0, part, "x".repeat(1000)));
  assert.equal(list.live.get("r-1/f/1").text.length, LIVE_CHARS_MAX);
  assert.ok(list.live.get("r-1/f/1").cut);
});

test("a run of months is held to the cap, unless somebody asks for what was earlier", () => {
  const list = new Timeline();
  for (let number = 1; number <= 5000; number += 1) list.push(line(number, "resumed"));
  assert.ok(list.items.length <= ITEMS_MAX + 100, String(list.items.length));
  const before = list.items.length;
  const first = list.first;
  list.prepend(Array.from({ length: 200 }, (_, index) => line(first - 200 + index, "resumed")));
  assert.equal(list.items.length, before + 200);
  for (let number = 5001; number <= 5050; number += 1) list.push(line(number, "resumed"));
  assert.equal(list.first, first - 200);
});

test("a kind that is not known is shown by its name with all that it says", () => {
  const item = itemOf(line(1, "brand_new", { secret_sauce: 7 }));
  assert.equal(item.title, "brand new");
  assert.equal(item.code, '{"secret_sauce":7}');
  assert.equal(levelOf("brand_new"), "step");
});

test("payloads that are not as they should be break nothing", () => {
  const kinds = [
    "plan",
    "replan",
    "judged",
    "commit",
    "thought",
    "action",
    "observation",
    "done",
    "error",
    "approval",
    "contract",
    "reverted",
    "task_done",
    "delegation",
    "feature",
    "compaction",
  ];
  for (const kind of kinds) {
    for (const payload of [
      undefined,
      {},
      { features: 7, judgements: "x", files: null, used: 3, usage: null, commit: 5 },
    ]) {
      const item = itemOf({ number: 1, at_ms: 1, type: kind, payload });
      assert.equal(typeof item.title, "string", kind);
      assert.ok(Array.isArray(item.list), kind);
    }
  }
});

test("those who hear the page are told what matters and not each step", () => {
  assert.equal(spoken(action(1, 1)), null);
  assert.equal(spoken(line(1, "thought", { text: "hm" })), null);
  assert.equal(spoken(line(1, "approval", { approval: "a-1", call: "shell.run" })), "Asks before shell.run");
  assert.equal(spoken(line(1, "approval", { approval: "a-1", decision: "allowed" })), null);
  assert.equal(spoken(line(1, "done", { status: "completed", summary: "all pass" })), "Run completed: all pass");
});
