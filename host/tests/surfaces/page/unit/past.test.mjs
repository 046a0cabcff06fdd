// The past of a run: points and their addresses, the tree of forks, answers that are edited, the plan of a fork, and
// the slider, which asks when it rests.

import assert from "node:assert/strict";
import test from "node:test";

import { install } from "./document.mjs";

install();
const folder = process.env.PAGE_MODULES;
const load = (name) => import(new URL(name, folder));
const session = await load("session.js");
const { besideHref, entryOf, entryPoint, eventOf, keyOf, pastHref } = await load("points.js");
const { editable, effectWords, forksOf, treeOf, TREE_MAX } = await load("forks.js");
const { drawPlan, openFork } = await load("part_fork.js");
const { origin } = await load("part_forks.js");
const { past } = await load("part_past.js");
const { usedPlugins, versionsOf } = await load("part_plugins.js");

session.begin("lh_test", { name: "all", scopes: ["run"] });

const settle = async () => {
  for (let turn = 0; turn < 12; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

const usage = { input_tokens: 100, output_tokens: 20, cost_microdollars: 30_000, cost_microdollars_min: 30_000 };

test("points are written as the API reads them, and their addresses keep every sign", () => {
  assert.equal(entryPoint("r-12/f-sum/1/generate", 7), "entry:f-sum/1/generate:7");
  assert.deepEqual(entryOf("entry:f-sum/1/generate#3:7"), { key: "f-sum/1/generate#3", number: 7 });
  for (const point of ["entry:7", "event:7", "entry:a:0", "entry::3", null]) assert.equal(entryOf(point), null, point);
  assert.deepEqual(["event:12", "event:0", "event:1.5", "step:3", null].map(eventOf), [12, null, null, null, null]);
  assert.equal(keyOf("plan"), "plan");
  assert.equal(keyOf("r-1/plan#2/x"), "plan#2/x");
  assert.equal(pastHref("r-1", "entry:plan#3:2"), "#/runs/r-1/past?at=entry%3Aplan%233%3A2");
  assert.equal(pastHref("r-1", "event:2", true), "#/runs/r-1/past?at=event%3A2&now=true");
  assert.equal(besideHref("r-1", "r-2"), "#/runs/r-1/compare?with=r-2");
});

const run = (name, forked_from = null, created_ms = 1) => ({ run: name, forked_from, created_ms, status: "paused" });

test("the tree begins at the first run, has forks in their order, and ends where runs name each other", () => {
  const runs = [run("r-4", "r-2", 4), run("r-3", "r-1", 3), run("r-2", "r-1", 2), run("r-1"), run("r-9")];
  const told = (rows) => rows.map((row) => `${"  ".repeat(row.depth)}${row.run.run}${row.isKnown ? "" : "?"}`);
  assert.deepEqual(told(treeOf(runs, runs[0])), ["r-1", "  r-2", "    r-4", "  r-3"]);
  assert.deepEqual(told(treeOf([], run("r-4", "r-2"))), ["r-2?", "  r-4"], "a parent that is not listed has its name");
  assert.deepEqual(told(treeOf([], run("r-9"))), ["r-9"]);
  const circle = [run("r-1", "r-2"), run("r-2", "r-1")];
  assert.equal(treeOf(circle, circle[0]).length, 2);
  const many = Array.from({ length: 500 }, (_, index) => run(`r-${index + 1}`, "r-0"));
  assert.equal(treeOf(many, run("r-0")).length, TREE_MAX);
  assert.deepEqual(
    forksOf(runs, "r-1").map((one) => one.run),
    ["r-2", "r-3"],
  );
});

const entry = (name, answer) => ({ number: 3, name, summary: "files.read <a>", answer });

test("the answer of a tool is edited as its output, and the words of a model as words", () => {
  const tool = editable(entry("tools.call", '{"Ok":{"output":"{\\"a\\":1}","truncated":false}}'));
  assert.equal(tool.text, '{\n  "a": 1\n}');
  assert.equal(tool.read('"two"'), '"two"');
  assert.throws(
    () => tool.read("two words"),
    (error) => error.field === "answer" && /in quotes/.test(error.message),
  );
  assert.equal(editable(entry("tools.call", '{"Ok":{"output":"\\"x\\"","truncated":false}}')).text, '"x"');
  const said = editable(entry("conversation.complete", '{"Ok":{"text":"a\\n\\"b\\"","calls":[]}}'));
  assert.equal(said.text, 'a\n"b"');
  assert.equal(said.read("no\n<b>"), '"no\\n<b>"');
});

test("what is more than that is edited as it is recorded, and what nobody may edit is not", () => {
  for (const [name, answer] of [
    ["tools.call", '{"Ok":{"output":"cut off","truncated":true}}'],
    ["tools.call", '{"Err":{"failed":"no"}}'],
    ["conversation.complete", '{"Ok":{"text":"","calls":[{"name":"x"}]}}'],
    ["checks.run", '{"Ok":{"passed":true}}'],
  ]) {
    const found = editable(entry(name, answer));
    assert.deepEqual(JSON.parse(found.text), JSON.parse(answer), name);
    assert.throws(() => found.read("{"), /no JSON/);
  }
  assert.equal(editable(entry("tools.list", "[]")), null);
  assert.equal(editable(entry("tools.call", null)), null);
  assert.equal(editable(null), null);
});

const plan = (more = {}) => ({
  parent: "r-1",
  at: "event:2",
  event: 2,
  at_ms: 1_700_000_000_000,
  branch: "longhaul/p-fork-1",
  commit: "0123456789abcdef",
  passing: { done: 1, of: 2 },
  shared: [{ key: "f-<b>/1/generate", entries: 2, edited: true }],
  inherited_usage: { usage },
  later_effects: [{ effect: "acts", call: "mail.send", count: 2 }],
  later_effects_omitted: 3,
  model: null,
  replaced_plugins: [],
  notes: ["a note <i>"],
  ...more,
});

test("a plan says what is shared, what is not paid again, and what is not undone", () => {
  const text = drawPlan(plan()).textContent;
  for (const part of [
    "f-<b>/1/generate: 2 answers from the journal the last one is yours",
    "Inherited, not paid again$0.03, 120 tokens",
    "2 mail.send acts, cannot be undone",
    "and 3 more",
    "a note <i>",
    "0123456789",
  ])
    assert.ok(text.includes(part), `${part} in ${text}`);
  const quiet = drawPlan(plan({ shared: [], later_effects: [], later_effects_omitted: 0, notes: [] })).textContent;
  assert.match(quiet, /No work was under way at the point\..*It had no effects after that point\./);
  assert.equal(effectWords("of a later version"), "of a later version");
});

test("a fork says where it is from", () => {
  const fork = { parent: "r-1", at: "feature:two", event: 3, at_ms: 1, inherited_usage: { usage } };
  const line = origin({ run: "r-2", fork });
  assert.match(line.textContent, /Forked from r-1 at feature:two · inherited \$0\.03, not paid again/);
  assert.deepEqual(
    line.querySelectorAll("a").map((one) => one.getAttribute("href")),
    ["#/runs/r-1", "#/runs/r-1/past?at=feature%3Atwo", "#/runs/r-1/compare?with=r-2"],
  );
  assert.equal(origin({ run: "r-1", fork: null }), null);
});

/** The API in the place of the server: `[status, answer]` by path; what was asked is kept. */
function serve(answers) {
  const asked = [];
  globalThis.fetch = async (address, { method, body }) => {
    const [path, query] = address.split("?");
    asked.push({ method, path, query: new URLSearchParams(query), body: body && JSON.parse(body) });
    const found = answers[path.replace("/api/v1/", "")];
    const [status, value] = found?.(asked.at(-1)) ?? [404, { detail: `there is no ${path}` }];
    return { ok: status < 300, status, json: async () => value };
  };
  return asked;
}

test("a fork is planned first, sent with what was changed alone, and its errors stand at their fields", async () => {
  let refuses = true;
  const asked = serve({
    "runs/r-1/journal/entries": () => [200, { entries: [entry("conversation.complete", '{"Ok":{"text":"yes"}}')] }],
    "runs/r-1/fork": ({ body }) => {
      if (body.dry_run) return [200, { run: null, plan: plan() }];
      if (refuses) return [422, { detail: "there is no [models.x]", field: "model" }];
      return [201, { run: "r-2", plan: plan() }];
    },
  });
  const stop = new AbortController();
  openFork({ signal: stop.signal }, { run: "r-1" }, "entry:f-sum/1/generate:3");
  await settle();
  const dialog = document.querySelector("dialog");
  assert.equal(asked.filter((one) => one.body?.dry_run).length, 1);
  assert.match(dialog.textContent, /cannot be undone/);
  const field = (name) => dialog.querySelector(`[name="${name}"]`);
  const sent = () => asked.filter((one) => one.body && !one.body.dry_run).at(-1)?.body;
  const form = dialog.querySelector("form");
  field("message").value = " be careful ";
  field("model").value = "x";
  form.fire("submit");
  await settle();
  assert.deepEqual(sent(), {
    at: "entry:f-sum/1/generate:3",
    answer: null,
    message: "be careful",
    model: "x",
    branch: null,
    plugins: [],
    repeat_effects: false,
    dry_run: false,
  });
  const fault = dialog.querySelector('.field-error[data-field="model"]');
  assert.equal(fault.textContent, "there is no [models.x]");
  assert.equal(field("model").getAttribute("aria-invalid"), "true");
  assert.equal(form.querySelectorAll('input[type="checkbox"]').length, 0, "repeats need another scope");
  refuses = false;
  field("answer").value = "no";
  form.fire("submit");
  await settle();
  assert.equal(sent().answer, '"no"');
  assert.match(dialog.textContent, /Forked as r-2\. It is paused/);
  assert.ok(dialog.querySelector('a[href="#/runs/r-1/compare?with=r-2"]'));
  dialog.close();
  stop.abort();
});

const EVENTS = 9;
const line = (number) => ({
  run: "r-1",
  number,
  at_ms: 1_700_000_000_000 + number,
  type: number === 4 ? "parked" : "resumed",
  payload: number === 4 ? { question: "may I?" } : {},
});

const feature = (id, status) => ({ id, title: `the ${id} <b>`, status, reason: "", sessions: 1, commit: null });

const there = (point) => {
  const number = Number(/\d+/.exec(point)[0]);
  return {
    run: "r-1",
    point,
    // Steps end with even events.
    event: number + (number % 2),
    at_ms: 1_700_000_000_000,
    status: "working",
    features: [feature("one", "in_progress")],
    lanes: [{ invocation: "r-1/f-one/1/generate", feature: "one", entries: 2, waiting_for: "a model <i>" }],
    questions: ["may <b>I</b>?"],
    usage,
    commit: "abcdef0123456789",
  };
};

/** The part, drawn at an address; `kept` has the addresses that it kept. */
async function drawn(query, answers = {}) {
  const asked = serve({
    "runs/r-1/at": ({ query: own }) => [200, there(own.get("point"))],
    "runs/r-1/events": ({ query: own }) => {
      const after = Number(own.get("after"));
      const items = Array.from({ length: EVENTS }, (_, index) => line(index + 1)).filter((one) => one.number > after);
      return [200, { items, last: EVENTS, next_after: EVENTS }];
    },
    runs: () => [200, { items: [], total: 0 }],
    ...answers,
  });
  const [stop, kept, place] = [new AbortController(), [], document.createElement("div")];
  const ctx = { query: new URLSearchParams(query), signal: stop.signal, keep: (to) => kept.push(to) };
  const now = { ...run("r-1"), project: "p", status: "completed", features: [feature("one", "passing")] };
  const present = { ...now, passing: { done: 1, of: 1 }, last_ms: 1_700_000_001_000, usage };
  document.body.append(place);
  past(ctx, place, present);
  await settle();
  const points = () => asked.filter((one) => one.path.endsWith("/at")).map((one) => one.query.get("point"));
  return { place, kept, points, slider: place.querySelector(".slider"), end: () => (stop.abort(), place.remove()) };
}

test("without a point the newest event is shown, with what was in flight, and all of it as text", async () => {
  const { place, points, kept, slider, end } = await drawn("");
  assert.deepEqual(points(), ["event:9"]);
  assert.deepEqual(kept, ["#/runs/r-1/past?at=event%3A9"]);
  assert.deepEqual([slider.min, slider.max, slider.value], ["1", "9", "9"]);
  for (const part of ["the one <b>", "a model <i>", "may <b>I</b>?", "2 answered entries", "abcdef0123", "$0.03"])
    assert.ok(place.textContent.includes(part), part);
  assert.match(place.textContent, /Event 9 is part of a step that ended with event 10/);
  assert.ok(place.querySelector('a[href="#/runs/r-1/past?at=entry%3Af-one%2F1%2Fgenerate%3A2"]'));
  assert.ok(place.querySelector('a[href="#/runs/r-1?e=9"]'));
  end();
});

test("the slider says where it is at once, and asks when it rests", async (t) => {
  const { points, slider, kept, end } = await drawn("at=event:8");
  t.mock.timers.enable({ apis: ["setTimeout"] });
  for (const number of ["7", "6", "5", "4"]) {
    slider.value = number;
    slider.fire("input");
  }
  assert.match(slider.getAttribute("aria-valuetext"), /^Event 4 of 9: Parked: waits for a person, 20/);
  assert.deepEqual(points(), ["event:8"]);
  t.mock.timers.tick(1_000);
  t.mock.timers.reset();
  await settle();
  assert.deepEqual(points(), ["event:8", "event:4"]);
  assert.equal(kept.at(-1), "#/runs/r-1/past?at=event%3A4");
  end();
});

test("the present stands beside the past, and what differs is marked", async () => {
  const { place, kept, end } = await drawn("at=event:4");
  assert.doesNotMatch(place.textContent, /part of a step/);
  const toggle = place.querySelectorAll("button").find((one) => /Compare with the present/.test(one.textContent));
  assert.equal(toggle.getAttribute("aria-pressed"), "false");
  toggle.click();
  assert.equal(kept.at(-1), "#/runs/r-1/past?at=event%3A4&now=true");
  const row = place.querySelector("tr.is-other");
  assert.match(row.textContent, /in progress.*passing/);
  assert.match(place.querySelector("#s-past").textContent, /then and now/);
  end();
});

test("a point that the run does not have is said, and the slider stays", async () => {
  const { place, slider, end } = await drawn("at=feature%3Anone", {
    "runs/r-1/at": () => [404, { detail: "run r-1 has no feature `none`" }],
  });
  assert.match(place.querySelector(".failed").textContent, /no feature `none`/);
  assert.equal(slider.max, "9");
  assert.equal(place.querySelectorAll("button").some((one) => one.textContent === "Fork here"), false);
  end();
});

test("who may only read is offered no fork", async () => {
  session.begin("lh_test", { name: "reader", scopes: ["read"] });
  const { place, end } = await drawn("at=event:4");
  assert.doesNotMatch(place.textContent, /Fork/);
  end();
  session.begin("lh_test", { name: "all", scopes: ["run"] });
});

test("plugins of a run are told once each, and installed versions by their bytes", () => {
  const one = (plugin, agent, until_ms) => ({ plugin, agent, until_ms, invocation: "r-1/x", from_ms: 1 });
  const used = usedPlugins([one("react", "agents.b", 5), one("init", "planner", 5), one("react", "agents.a", null)]);
  assert.deepEqual(
    used.map(({ plugin, tables, invocations, open }) => [plugin, [...tables], invocations, open]),
    [
      ["init", ["planner"], 1, 0],
      ["react", ["agents.b", "agents.a"], 2, 1],
    ],
  );
  const plugins = [
    { name: "other", installed: [{ version: "1", digest: "aaaabbbbcccc", bytes: 1 }] },
    { name: "react", installed: [{ version: "2", digest: "sha256:1234567890ab", bytes: 1 }] },
    { name: "shipped", installed: [] },
  ];
  assert.deepEqual(versionsOf(plugins, used), [
    ["react@sha256:1234567890ab", "react 2 (12345678)"],
    ["other@sha256:aaaabbbbcccc", "other 1 (aaaabbbb)"],
  ]);
});
