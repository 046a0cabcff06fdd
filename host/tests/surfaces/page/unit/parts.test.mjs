// Parts of views, drawn: errors with what went wrong first, plans as a list or as a graph.

import assert from "node:assert/strict";
import test from "node:test";

import { install } from "./document.mjs";

install();
const folder = process.env.PAGE_MODULES;
const { errorBlock } = await import(new URL("part_error.js", folder));
const { drawPlan, parted } = await import(new URL("part_plan.js", folder));

const { previewOf } = await import(new URL("part_schedule_form.js", folder));
const { triggerWords } = await import(new URL("view_schedules.js", folder));
const { h } = await import(new URL("dom.js", folder));

const step = (id, depends_on = [], more = {}) => ({
  id,
  title: `do ${id}`,
  depends_on,
  status: "passing",
  attempts: 0,
  ...more,
});

function plan(features) {
  const place = document.createElement("div");
  drawPlan(place, { run: "r-1", features });
  return place;
}

test("of an error its last line comes first, and the whole of it below", () => {
  const text = "Traceback (most recent call last):\n  File x\nValueError: <b>no</b>\n";
  const block = errorBlock(text);
  const [last, whole] = block.querySelectorAll("pre");
  assert.equal(last.textContent, "ValueError: <b>no</b>");
  assert.equal(whole.textContent, text, "kept lines, nothing of it markup");
});

test("a long error is folded, and one of a single line is said once", () => {
  const long = errorBlock(Array.from({ length: 13 }, (_, at) => `line ${at}`).join("\n"));
  assert.equal(long.querySelector("details").open, false);
  assert.match(long.querySelector("summary").textContent, /13 lines/);
  assert.equal(errorBlock(Array.from({ length: 12 }, () => "x").join("\n")).querySelector("details").open, true);
  assert.equal(errorBlock("it broke").querySelectorAll("pre").length, 1);
  assert.equal(errorBlock("a\u202eb").textContent, "a\\u{202e}b");
});

test("steps that wait for nothing are a list, those that wait a graph", () => {
  const free = plan([step("a"), step("b")]);
  assert.equal(free.querySelectorAll("svg.plan").length, 0);
  assert.deepEqual(
    free.querySelectorAll(".plan-item").map((one) => one.getAttribute("href")),
    ["#/runs/r-1/features?f=a", "#/runs/r-1/features?f=b"],
  );
  const bound = plan([step("a"), step("b", ["a"])]);
  assert.equal(bound.querySelectorAll(".plan-step").length, 2);
  assert.equal(bound.querySelectorAll(".plan-edge").length, 1);
  assert.equal(bound.querySelectorAll(".plan-item").length, 0);
});

test("a plan of both kinds has both, and each step once", () => {
  const both = plan([step("a"), step("b", ["a"]), step("c"), step("d", ["gone"]), step("e", ["e"])]);
  assert.equal(both.querySelectorAll(".plan-step").length, 2);
  assert.equal(both.querySelectorAll(".plan-item").length, 3, "what waits for nothing that is there is free");
  assert.deepEqual(parted([step("x", ["y"]), step("y")]).free, []);
});

test("steps that were dropped are no part of a plan", () => {
  assert.equal(plan([step("a", [], { status: "dropped" })]).childElementCount, 0);
});

/** What a person reads of a preview. */
const preview = (trigger) => h("div", null, previewOf(trigger, Date.parse("2026-11-27T12:00:00Z"))).textContent;

test("a schedule is told in words with its next fires before it is saved, in its own zone", () => {
  const text = preview({ type: "cron", cron: "30 2 * * mon-fri", timezone: "Europe/Berlin" });
  assert.match(text, /Fires at 02:30, Monday to Friday, Europe\/Berlin time\./);
  assert.match(text, /Mon 30 November 2026 02:30Tue 1 December 2026 02:30/);
  assert.match(preview({ type: "interval", interval_seconds: 3600 }), /Fires every 1 h\./);
  assert.equal(preview({ type: "interval", interval_seconds: 0 }), "");
  assert.equal(preview({ type: "after", after: "other" }), "");
});

test("a preview says what is wrong with an expression or a zone", () => {
  assert.match(preview({ type: "cron", cron: "61 * * * *", timezone: "UTC" }), /does not read `61` as a minute/);
  assert.match(preview({ type: "cron", cron: "0 0 30 2 *", timezone: "UTC" }), /never fires/);
  assert.match(preview({ type: "cron", cron: "0 0 * * *", timezone: "Mars" }), /No zone is called Mars/);
});

test("a schedule in the list is told in words, and one that the page does not read as it is", () => {
  const text = (trigger) => h("div", null, triggerWords(trigger)).textContent;
  assert.equal(text({ type: "cron", cron: "0 9 * * *" }), "at 09:00, every day, UTC0 9 * * *");
  assert.match(text({ type: "cron", cron: "0 0 L * *", timezone: "Asia/Tokyo" }), /^0 0 L \* \* Asia\/Tokyo/);
  assert.equal(text({ type: "interval", interval_seconds: 90 }), "every 1 min 30 s");
});

test("a run that is not there is an error that the page tells as not found", async () => {
  const { show } = await import(new URL("view_run.js", folder));
  const { missing } = await import(new URL("view_missing.js", folder));
  globalThis.fetch = async () => ({ ok: false, status: 404, json: async () => ({ detail: "there is no run `r-1`" }) });
  const box = document.createElement("div");
  const stop = new AbortController();
  const ctx = { path: ["runs", "r-1"], query: new URLSearchParams(), signal: stop.signal, box, title: () => {} };
  await assert.rejects(show(ctx), (error) => error.status === 404 && /no run/.test(error.message));
  missing(ctx, "there is no run `r-1`");
  assert.equal(box.querySelector("h1").textContent, "Not found");
  assert.match(box.textContent, /no run/);
  await show({ ...ctx, path: ["runs", "r-1", "nothing"] });
  assert.match(box.textContent, /A run has no part nothing/);
  stop.abort();
});
