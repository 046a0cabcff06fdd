// Costs by project, agent and day: what is measured, what is summed up, and budgets at their edges.

import assert from "node:assert/strict";
import test from "node:test";

import { install } from "./document.mjs";

install();
const parts = await import(new URL("part_cost_groups.js", process.env.PAGE_MODULES));
const { budget, dayColumns, everyDay, groupBars, largest, measureOf } = parts;

const usage = (microdollars, tokens = 100) => ({
  input_tokens: tokens,
  output_tokens: 0,
  cost_microdollars: microdollars,
  cost_microdollars_min: microdollars ?? 0,
});
const group = (name, microdollars, count = 1) => ({ name, count, usage: usage(microdollars) });

test("money is drawn where a price is known, tokens where none is", () => {
  assert.equal(measureOf([group("a", 0), group("b", 5)]).name, "money");
  assert.equal(measureOf([group("a", 0), group("b", null)]).name, "tokens");
  assert.equal(measureOf([]).name, "tokens");
});

test("the largest come first, and the smaller ones are one", () => {
  const groups = [1, 5, 3, 4, 2].map((value) => group(`g${value}`, value, value));
  const measure = measureOf(groups);
  assert.deepEqual(
    largest(groups, measure, 3).map((row) => [row.name, row.value, row.count]),
    [
      ["g5", 5, 5],
      ["g4", 4, 4],
      ["3 others", 6, 6],
    ],
  );
  assert.equal(largest(groups, measure, 5).length, 5, "as many as are shown need no sum");
});

test("a project leads to its costs, and the sum of the others nowhere", () => {
  const groups = Array.from({ length: 14 }, (_, at) => group(`p${at}`, 14 - at));
  const drawn = groupBars("By project", groups, { href: (name) => `#/costs?project=${name}` });
  assert.match(drawn.querySelector("h2").textContent, /By project, in money/);
  assert.equal(drawn.querySelectorAll("li").length, 12);
  assert.equal(drawn.querySelectorAll("a").length, 11);
  assert.match(drawn.querySelectorAll("li").at(-1).textContent, /3 others/);
  assert.equal(groupBars("By agent", []), null);
});

test("days without a run are there and empty, and no more days than can be seen", () => {
  const days = everyDay([group("2026-02-27", 1), group("2026-03-02", 2)]);
  assert.deepEqual(
    days.map((day) => [day.name, day.usage === null]),
    [
      ["2026-02-27", false],
      ["2026-02-28", true],
      ["2026-03-01", true],
      ["2026-03-02", false],
    ],
  );
  assert.equal(everyDay([group("1999-01-01", 1), group("2026-01-01", 1)]).length, 60);
  assert.deepEqual(everyDay([group("unknown", 1)]), []);
  assert.equal(dayColumns([group("2026-02-27", 1), group("2026-03-02", 2)]).querySelectorAll(".cost-day").length, 2);
});

test("a budget is told with what was used of it, and is near its end from nine tenths on", () => {
  const run = (used, cap, lost = 0) => ({
    usage: usage(used),
    interrupted_usage_max: usage(lost),
    budget_microdollars: cap,
  });
  const isNear = (one) => budget(one).querySelector(".is-near") !== null;
  assert.match(budget(run(1_000_000, 4_000_000, 1_000_000)).textContent, /\$2\.00 of \$4\.00/);
  assert.deepEqual([isNear(run(899_999, 1_000_000)), isNear(run(900_000, 1_000_000))], [false, true]);
  assert.equal(budget(run(5, null)).textContent, "no cap");
});
