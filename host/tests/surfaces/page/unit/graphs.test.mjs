// Graphs of steps: what is run next, where a failure is, and cells that are edited while news come.

import assert from "node:assert/strict";
import test from "node:test";

import { install } from "./document.mjs";

install();
const folder = process.env.PAGE_MODULES;
const { failureText, graphHref, hasFailed, lineOf, nextToRun, placeOf, runNotes, runWords, stateCounts, taken } =
  await import(new URL("graphs.js", folder));
const { cell, cellMark, changed } = await import(new URL("part_cells.js", folder));
const { graphMap } = await import(new URL("part_graph_map.js", folder));

const RAN = { ran: [], reused: [], failed: [], blocked: [], unknown: [], untouched: 0 };

const step = (id, more = {}) => ({
  id,
  source: "x = 1\ny = x / 0",
  state: "fresh",
  reads: [],
  writes: [],
  needs: [],
  unstorable: [],
  files: [],
  stdout: "",
  stderr: "",
  value: null,
  failure: null,
  duration_ms: 0,
  fuel_used: 0,
  memory_bytes_peak: 0,
  ...more,
});

const FAILURE = { kind: "ZeroDivisionError", message: "division by zero", line: 2, column: 5, traceback: "" };

test("a run of all runs each step once, and none that an earlier one reached", () => {
  const ids = ["a", "b", "c", "d"];
  const done = new Set();
  assert.equal(nextToRun(ids, done), "a");
  taken(done, "a", { ...RAN, ran: ["a", "b"] });
  assert.equal(nextToRun(ids, done), "c");
  taken(done, "c", { ...RAN, failed: ["c"], blocked: ["d"] });
  assert.equal(nextToRun(ids, done), null);
  assert.equal(nextToRun([], new Set()), null);
  assert.equal(nextToRun(["x"], taken(new Set(), "x", RAN)), null, "a step that came to nothing is not tried for ever");
});

test("a failure is told with its last line first and with its place", () => {
  const failed = step("half", { state: "failed", failure: FAILURE });
  const sources = new Map([
    ["half", "x = 1\ny = x / 0"],
    ["help", "def f(n):\n    return 1 / n"],
  ]);
  assert.deepEqual(placeOf(failed, sources), { step: "half", line: 2, function: "", source: "y = x / 0" });
  const traceback = 'Traceback:\n  File "<step half>", line 2, in <module>\n  File "<step help>", line 2, in f\nZ: x';
  const inner = placeOf({ ...failed, failure: { ...FAILURE, traceback } }, sources);
  assert.deepEqual(inner, { step: "help", line: 2, function: "f", source: "return 1 / n" }, "the innermost place");
  assert.equal(placeOf(step("a", { failure: { ...FAILURE, line: null } }), sources), null);
  assert.equal(lineOf("a\nb", 7), "");
  assert.equal(failureText(FAILURE), "ZeroDivisionError: division by zero");
  assert.equal(failureText({ ...FAILURE, message: "" }), "ZeroDivisionError");
  assert.equal(failureText({ ...FAILURE, traceback: "Trace\nZ: x" }), "Trace\nZ: x");
  assert.ok(hasFailed(failed));
  assert.ok(!hasFailed({ ...failed, state: "stale" }), "the failure of an older source is not diagnosed");
  assert.ok(!hasFailed(step("a")));
});

test("what runs and states come to is told in a line", () => {
  assert.equal(runWords({ ...RAN, ran: ["a", "b"], failed: ["b"], untouched: 3 }), "2 ran, 1 failed, 3 fresh");
  assert.equal(runWords(RAN), "there was nothing to run");
  assert.deepEqual(stateCounts([step("a"), step("b", { state: "stale" }), step("c")]), [
    ["stale", 1],
    ["fresh", 2],
  ]);
  const found = { from: "a", to: "b", variable: "rows" };
  assert.deepEqual(runNotes({ warnings: ["a changed x"], discovered: [found], discovered_count: 3 }), [
    "a changed x",
    "Found: b needs rows of a.",
    "And 2 more dependencies were found.",
  ]);
  assert.deepEqual(runNotes(RAN), []);
  assert.equal(changed("a", { stale: [], failure: FAILURE }, null), "a is kept and does not parse: division by zero");
  assert.equal(changed("a", { stale: ["a", "b"], failure: null }, null), "Stale now: a, b.");
  assert.equal(changed("a", { stale: ["a"] }, { ...RAN, ran: ["a"] }), "a is changed: 1 ran.");
});

test("an address spells the names of graphs of agents and of steps", () => {
  assert.equal(graphHref("r-1/f/1#g", "the sum?"), "#/graphs/r-1%2Ff%2F1%23g/steps/the%20sum%3F");
});

test("dependencies are drawn, and a graph without any is its cells alone", () => {
  assert.equal(graphMap("g", [step("a"), step("b", { needs: ["gone"] })]), null);
  const [box] = graphMap("g", [step("a"), step("b", { needs: ["a"], state: "failed" })]);
  assert.equal(box.querySelectorAll(".plan-edge").length, 1);
  assert.deepEqual(
    box.querySelectorAll(".plan-step").map((one) => one.getAttribute("href")),
    ["#/graphs/g/steps/a", "#/graphs/g/steps/b"],
  );
  assert.equal(box.querySelectorAll(".is-failing").length, 1);
});

const own = (more = {}) => ({
  graph: "g",
  sources: new Map(),
  chosen: null,
  found: undefined,
  mayChange: true,
  run: async () => {},
  note: () => {},
  refresh: async () => {},
  diagnose: async () => {},
  ...more,
});

const labels = (element) => element.querySelectorAll(".actions button").map((one) => one.textContent);

test("a cell has its source, output and value as text, and what may be done with it", () => {
  const drawn = cell(step("<b>", { source: "<i>", stdout: "<u>", value: "<s>", needs: ["a"], state: "stale" }), own());
  for (const text of ["<b>", "<i>", "<u>", "<s>", "stale"]) assert.ok(drawn.textContent.includes(text), text);
  assert.equal(drawn.querySelectorAll("b, i, u, s").length, 0);
  assert.deepEqual(labels(drawn), ["Run", "Edit", "Remove"]);
  assert.deepEqual(labels(cell(step("a"), own({ mayChange: false }))), []);
  assert.deepEqual(labels(cell(step("a", { state: "unknown" }), own())), ["Run again", "Edit", "Remove"]);
  assert.deepEqual(labels(cell(step("a", { state: "failed", failure: FAILURE }), own())), [
    "Run",
    "Edit",
    "Diagnose",
    "Remove",
  ]);
});

test("a diagnosis names the innermost place, the values and the step at fault", () => {
  const found = {
    step: "half",
    failure: FAILURE,
    frame: { step: "load", line: 3, function: "read", source: "return 1 / n" },
    values: [{ name: "n", text: "0", producer: "load" }],
    cause: "load",
    reason: "it made n",
  };
  const text = cell(step("half", { state: "failed", failure: FAILURE }), own({ found })).textContent;
  for (const part of ["Likely at fault: load", "at line 3 of load in read", "return 1 / n", "n = 0 from load"])
    assert.ok(text.includes(part), `${part} in ${text}`);
});

test("a cell that is edited is held, and its text comes back when that is given up", () => {
  const drawn = cell(step("a"), own());
  document.body.append(drawn);
  const press = (label) =>
    drawn
      .querySelectorAll("button")
      .find((one) => one.textContent === label)
      .fire("click");
  press("Edit");
  assert.ok(drawn.hasAttribute("data-held"));
  assert.equal(drawn.querySelector("textarea").value, "x = 1\ny = x / 0");
  press("Cancel");
  assert.ok(!drawn.hasAttribute("data-held"));
  assert.equal(drawn.querySelectorAll("textarea").length, 0);
  drawn.remove();
});

test("a cell is drawn anew when it, its diagnosis or what is chosen changes", () => {
  const mark = (one, more) => cellMark("g", one, own(more));
  assert.equal(mark(step("a")), mark(step("a")));
  for (const [one, more] of [
    [step("a", { stdout: "x" }), {}],
    [step("a"), { chosen: "a" }],
    [step("a"), { found: {} }],
    [step("a"), { mayChange: false }],
  ])
    assert.notEqual(mark(one, more), mark(step("a")));
});

test("a step that a graph does not have is said to be missing, also in a graph of many pages", async () => {
  const { show } = await import(new URL("view_graphs.js", folder));
  const asked = [];
  globalThis.fetch = async (path) => {
    const offset = Number(/offset=(\d+)/.exec(path)?.[1] ?? 0);
    asked.push(offset);
    const steps = Array.from({ length: 100 }, (_, at) => step(`s${offset + at}`));
    return { ok: true, status: 200, json: async () => ({ graph: {}, steps, total: 250, offset }) };
  };
  const stop = new AbortController();
  const box = document.createElement("div");
  const ctx = { query: new URLSearchParams(), signal: stop.signal, box, title: () => {} };
  await show({ ...ctx, path: ["graphs", "g", "steps", "none"] });
  assert.deepEqual(asked, [0, 100, 200]);
  assert.match(box.textContent, /The graph g has no step none/);
  await show({ ...ctx, path: ["graphs", "g", "parts"] });
  assert.match(box.textContent, /A graph has no part parts/);
  stop.abort();
});
