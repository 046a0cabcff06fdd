// Runs beside each other: what is said of a step, which rows are shown, and the whole part, drawn.

import assert from "node:assert/strict";
import test from "node:test";

import { install } from "./document.mjs";

install();
const folder = process.env.PAGE_MODULES;
const { changeWords, countsWords, letter, rowsOf, totalOf } = await import(new URL("compare.js", folder));
const { queryOf } = await import(new URL("api.js", folder));
const { drawComparison } = await import(new URL("part_compare.js", folder));
const { besideHref } = await import(new URL("points.js", folder));

const side = (run, more = {}) => ({
  run,
  entry: 3,
  at_ms: 1_700_000_000_000,
  duration_ms: 5,
  call: "files.read <a>",
  answer: `answer of ${run}`,
  skipped_bytes: 0,
  is_cut: false,
  ...more,
});

const step = (number, change, places = [0, 1]) => ({
  number,
  feature: "sum",
  work: "f-sum/1/generate",
  kind: "tools.call",
  change,
  sides: places.map((place) => side(place)),
});

const usage = { input_tokens: 10, output_tokens: 2, cost_microdollars: 2_000_000, cost_microdollars_min: 2_000_000 };

const run = (name, more = {}) => ({
  run: name,
  project: "p",
  title: "the <b>goal</b>",
  status: "completed",
  passing: { done: 1, of: 1 },
  usage,
  wall_ms: 3_000,
  steps: 3,
  steps_left_out: 0,
  answer: null,
  ...more,
});

const feature = (place, more = {}) => ({
  run: place,
  status: "passing",
  reason: "",
  sessions: 1,
  verdict: { round: 2, verdicts: 2, passed: true, judgements: [{ criterion: "works", mark: "pass", reason: "so" }] },
  commit: null,
  answer: "",
  resource_usage: { usage },
  ...more,
});

const compared = (more = {}) => ({
  runs: [run("r-1"), run("r-2")],
  counts: { same: 1, request: 0, call: 0, answer: 1, missing: 1 },
  first_difference: step(2, "answer"),
  steps: [step(1, "same"), step(2, "answer"), step(3, "missing", [1])],
  steps_left_out: 0,
  features: [{ feature: "sum", title: "Sum", is_same: false, sides: [feature(0), feature(1, { status: "failing" })] }],
  features_left_out: 0,
  files: [{ run: 1, diff: null, reason: "run r-2 is an ask, which commits no files" }],
  ...more,
});

const drawn = (more) => {
  const box = document.createElement("div");
  box.append(...[drawComparison(compared(more))].flat(9).filter((one) => one));
  return box;
};

test("what differs is said in words, and who does not have a step by letters", () => {
  assert.equal(changeWords(step(1, "answer"), 2), "the answer differs");
  assert.equal(changeWords(step(1, "missing", [1]), 2), "A does not have it");
  assert.equal(changeWords(step(1, "missing", [1]), 3), "A and C do not have it");
  assert.equal(changeWords(step(1, "of another version"), 2), "of another version");
  assert.deepEqual([0, 1, 7].map(letter), ["A", "B", "H"]);
});

test("numbers leave out what did not occur", () => {
  const none = { same: 0, request: 0, call: 0, answer: 0, missing: 0 };
  assert.equal(countsWords(none), "none");
  assert.equal(countsWords({ ...none, same: 2_000, missing: 1 }), "2\u202f000 the same, 1 that not all runs have");
  assert.equal(totalOf({ ...none, same: 2, request: 1, call: 3 }), 6);
});

test("what is not shown is counted where it would be", () => {
  const steps = [step(1, "same"), step(2, "call"), step(9, "request"), step(10, "answer")];
  const told = (rows) => rows.map(({ step: one, gap }) => (one ? one.number : `(${gap})`));
  assert.deepEqual(told(rowsOf(steps, 12, false)), [1, 2, "(6)", 9, 10, "(2)"]);
  assert.deepEqual(told(rowsOf(steps, 10, true)), ["(1)", 2, "(7)", 10]);
  assert.deepEqual(told(rowsOf([], 0, true)), []);
});

test("each run of a list is named in a request, and the address has the other run", () => {
  assert.equal(queryOf({ run: ["r-1", "r-2"], empty: [] }), "?run=r-1&run=r-2");
  assert.equal(besideHref("r-1", "r-2"), "#/runs/r-1/compare?with=r-2");
});

test("both runs stand side by side, and what they wrote is text", () => {
  const text = drawn().textContent;
  for (const part of [
    "the <b>goal</b>",
    "files.read <a>",
    "answer of 0",
    "answer of 1",
    "sum: Sum",
    "Pass works: so",
    "They are not compared: run r-2 is an ask, which commits no files.",
    "1 step not shown",
  ])
    assert.ok(text.toLowerCase().includes(part.toLowerCase()), `${part} in ${text}`);
  assert.equal(drawn().querySelectorAll("b b").length, 0);
});

test("runs without a difference say so", () => {
  const counts = { same: 1, request: 0, call: 0, answer: 0, missing: 0 };
  const text = drawn({ first_difference: null, counts, steps: [step(1, "same")], features: [], files: [] }).textContent;
  assert.match(text, /No step differs\./);
  assert.doesNotMatch(text, /Features from|They are not compared/);
});

test("the same steps are shown when they are asked for", () => {
  const box = drawn();
  const list = () => box.querySelectorAll(".compared").length;
  const before = list();
  const same = box.querySelector('input[type="checkbox"]');
  same.checked = true;
  same.dispatchEvent(new Event("change"));
  assert.equal(list(), before + 1);
});

test("many steps are drawn in parts", () => {
  const steps = Array.from({ length: 250 }, (_, index) => step(index + 1, "call"));
  const counts = { same: 0, request: 0, call: 250, answer: 0, missing: 0 };
  const box = drawn({ steps, counts, first_difference: null, features: [], files: [] });
  assert.equal(box.querySelectorAll(".compared").length, 100);
  assert.match(box.textContent, /Show more of 150 rows/);
});
