// The time axis of a run: bars from their begin to their end, and a kill where a run goes on without having stopped.

import assert from "node:assert/strict";
import test from "node:test";

import { install } from "./document.mjs";

install();
const folder = process.env.PAGE_MODULES;
const { chart, timeTicks, ROWS_MAX } = await import(new URL("gantt.js", folder));
const { newest } = await import(new URL("part_gantt.js", folder));

let number = 0;
const line = (at_ms, type, payload = {}) => ({ run: "r-1", number: (number += 1), at_ms, type, payload });
const step = (at_ms) => line(at_ms, "task_started", { invocation: "r-1/f-one/1/generate", agent: "agents.code" });
const bars = (axis, name) => axis.rows.find((row) => row.name === name)?.bars ?? [];

test("a session, its step, the model and the tool of it are bars of their length", () => {
  const axis = chart(
    [
      line(0, "session_starting", { feature: "one", session: 1 }),
      step(100),
      line(900, "thought", { invocation: "r-1/f-one/1/generate", model: "fast", took_ms: 700 }),
      line(900, "action", { invocation: "r-1/f-one/1/generate", step: 2, tool: "files", function: "write" }),
      line(950, "observation", { invocation: "r-1/f-one/1/generate", of: 2, ok: false }),
      line(1_000, "task_done", { invocation: "r-1/f-one/1/generate", ok: true }),
      line(1_100, "session_complete", { feature: "one", session: 1, outcome: "passing" }),
    ],
    9_999,
  );
  assert.deepEqual(
    axis.rows.map((row) => row.name),
    ["one", "f-one / 1 / generate"],
  );
  assert.deepEqual(
    axis.rows.flatMap((row) => row.bars).map((bar) => [bar.kind, bar.from, bar.to, bar.tone, bar.open]),
    [
      ["session", 0, 1_100, "good", false],
      ["step", 100, 1_000, "good", false],
      ["model", 200, 900, "busy", false],
      ["tool", 900, 950, "bad", false],
    ],
  );
  assert.deepEqual([axis.from, axis.to, axis.marks], [0, 1_100, []]);
});

test("the axis begins with the first bar and not with the request of the run", () => {
  const axis = chart([line(0, "run_started"), step(60_000), line(61_000, "warning")], 0);
  assert.deepEqual([axis.from, axis.to], [60_000, 61_000]);
});

test("a run that goes on without having stopped was killed, at its last event", () => {
  const axis = chart([line(0, "run_started"), step(10), line(500, "resumed"), step(510)], 0);
  assert.deepEqual(
    axis.marks.map((mark) => [mark.kind, mark.at]),
    [
      ["kill", 10],
      ["resume", 500],
      ["retry", 510],
    ],
  );
  const [cut, again] = bars(axis, "f-one / 1 / generate");
  assert.deepEqual([cut.to, cut.tone], [10, "bad"]);
  assert.match(again.title, /attempt 2/);
});

test("a run that was paused or parked waited, and nobody killed it", () => {
  for (const stop of ["paused", "parked"]) {
    const axis = chart([line(0, "run_started"), line(10, stop, { question: "why?" }), line(70, "resumed")], 0);
    assert.deepEqual(
      axis.marks.map((mark) => mark.kind),
      ["resume"],
    );
    assert.deepEqual(
      bars(axis, "Waits").map((bar) => [bar.from, bar.to]),
      [[10, 70]],
    );
  }
});

test("an approval is waited for until it is decided, and a further session is a retry", () => {
  const axis = chart(
    [
      line(0, "approval", { approval: "a-1", call: "shell.run" }),
      line(40, "approval", { approval: "a-1", decision: "allowed" }),
      line(50, "session_starting", { feature: "one", session: 2 }),
    ],
    0,
  );
  assert.deepEqual(
    bars(axis, "Waits").map((bar) => [bar.to, bar.title]),
    [[40, "Asks before shell.run"]],
  );
  assert.deepEqual(
    axis.marks.map((mark) => mark.kind),
    ["retry"],
  );
});

test("what has no end grows to now while the run is worked on, and to the newest event otherwise", () => {
  const lines = [step(0), line(100, "warning", { text: "x" })];
  assert.equal(bars(chart(lines, 5_000, true), "f-one / 1 / generate")[0].to, 5_000);
  const still = bars(chart(lines, 5_000, false), "f-one / 1 / generate")[0];
  assert.deepEqual([still.to, still.open, still.tone], [100, true, "quiet"]);
});

test("events without their begin, of unknown kinds and without a time break nothing", () => {
  const odd = [
    line(0, "observation", { invocation: "r-1/x", of: 1, ok: true }),
    line(1, "task_done", { invocation: "r-1/x", ok: true }),
    line(2, "brand_new"),
    { number: 9, type: "thought", payload: {} },
  ];
  assert.deepEqual(chart(odd, 0).rows, []);
  assert.deepEqual(chart([], 0).rows, []);
});

test("a run of thousands of steps is drawn up to the cap, and the rest is counted", () => {
  const many = Array.from({ length: ROWS_MAX + 5 }, (_, at) =>
    line(at, "task_started", { invocation: `r-1/f-${at}/1/generate`, agent: "a" }),
  );
  const axis = chart(many, 0);
  assert.deepEqual([axis.rows.length, axis.hidden], [ROWS_MAX, 5]);
});

test("an axis has few round steps, for a second and for a month", () => {
  for (const span of [5, 1_000, 61_000, 3_600_000, 86_400_000 * 40]) {
    const ticks = timeTicks(1_700_000_000_123, 1_700_000_000_123 + span);
    assert.ok(ticks.length >= 1 && ticks.length <= 9, `${span}: ${ticks.length}`);
    assert.ok(ticks.every((at) => at >= 1_700_000_000_123 && at <= 1_700_000_000_123 + span));
  }
});

test("of a long run the newest events are read, page by page", async () => {
  const asked = [];
  globalThis.fetch = async (path) => {
    const query = new URLSearchParams(path.split("?")[1]);
    const [after, limit] = [Number(query.get("after")), Number(query.get("limit"))];
    asked.push([after, limit]);
    const items = Array.from({ length: Math.min(limit, 7_200 - after) }, (_, at) => ({ number: after + at + 1 }));
    return { ok: true, status: 200, json: async () => ({ items, next_after: after + items.length, last: 7_200 }) };
  };
  const { lines, missing } = await newest("r-1", new AbortController().signal);
  assert.deepEqual([lines.length, missing, lines[0].number, lines.at(-1).number], [5_000, 2_200, 2_201, 7_200]);
  assert.equal(asked.length, 6);
});
