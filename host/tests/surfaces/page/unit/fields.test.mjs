// Every view, drawn of answers that hold what the OpenAPI document says and nothing else: no view reads a field that the
// API does not send, asks for what it does not have, or sends it a field that it refuses.
//
// What a view offers is pressed, too: each fold is opened, each button pressed, each form sent.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import test from "node:test";

import { Answers, VARIANTS } from "./answers.mjs";
import { install, outline } from "./document.mjs";

const document = JSON.parse(readFileSync(process.env.PAGE_OPENAPI, "utf8"));
const events = JSON.parse(readFileSync(process.env.PAGE_EVENTS, "utf8"));
const answers = new Answers(document, events);
install();
globalThis.fetch = answers.fetch;
URL.createObjectURL = () => "blob:page";
URL.revokeObjectURL = () => {};

const folder = new URL(".", process.env.PAGE_MODULES);
const session = await import(new URL("session.js", folder));
session.begin("lh_test", { name: "all", scopes: ["admin"] });

/** Each module that draws a view, with the places of the page that it draws. */
const PLACES = {
  "view_projects.js": ["projects", "projects/project-0", "projects/project-0/runs", "projects/project-0/memory"],
  "view_runs.js": ["runs", "runs?status=parked&offset=50", "runs?archived=true"],
  "view_run.js": [
    "runs/r-1",
    "runs/r-1/features?f=id-0",
    "runs/r-1?e=1",
    "runs/r-1/time",
    "runs/r-1/journal",
    "runs/r-1/journal?i=r-1%2Ff%2F1",
    "runs/r-1/decisions",
    "runs/r-1/memory",
    "runs/r-1/costs",
    "runs/r-1/result",
    "runs/r-1/compare",
    "runs/r-1/compare?with=r-2&with=r-3",
    "runs/r-1/past",
    "runs/r-1/past?at=event%3A1&now=true",
    "runs/r-1/past?at=entry%3Af-sum%2F1%3A3",
    "runs/r-1/plugins",
  ],
  "view_approvals.js": ["approvals", "approvals/all", "approvals/rules"],
  "view_schedules.js": ["schedules"],
  "view_agents.js": ["agents", "agents/name-0"],
  "view_exec.js": ["exec", "exec?language=typescript", "exec?session=name-0"],
  "view_graphs.js": ["graphs", "graphs/name-0", "graphs/name-0/steps/id-0"],
  "view_trajectories.js": ["trajectories", "trajectories?run=r-1&ending=failed&judged=good", "trajectories/r-1/id-0"],
  "view_resources.js": ["resources"],
  "view_workers.js": ["resources/workers"],
  "view_costs.js": ["costs", "costs?project=project-0"],
  "view_plugins.js": ["plugins"],
};

const settle = async () => {
  for (let turn = 0; turn < 12; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** Draws a place with the given variant of every answer. */
async function draw(module, place, variant) {
  answers.variant = variant;
  const [path, query = ""] = place.split("?");
  const stop = new AbortController();
  const box = globalThis.document.createElement("div");
  globalThis.document.body.append(box);
  const go = (to) => (globalThis.location.hash = to);
  const own = { path: path.split("/"), query: new URLSearchParams(query), signal: stop.signal, box };
  const ctx = { ...own, title: () => {}, go, keep: () => {} };
  const { show } = await import(new URL(module, folder));
  await show(ctx);
  await settle();
  return { box, end: () => (stop.abort(), box.remove()) };
}

/** Opens, presses and sends each kind of thing that is there, also in the dialogs that come of it. */
async function press(box) {
  const seen = new Set();
  // Rows of a list differ by their numbers: what one of them offers is pressed once.
  const name = (one) => `${one.localName} ${one.getAttribute("name") ?? ""}${one.textContent.replace(/\d+/g, "")}`;
  for (let presses = 0; presses < PRESSES_MAX; presses += 1) {
    const dialogs = globalThis.document.querySelectorAll("dialog");
    // Forms first: a button closes their dialog.
    const all = [...dialogs, box].flatMap((root) =>
      ["form", "details", "button"].flatMap((kind) => root.querySelectorAll(kind)),
    );
    const next = all.find((one) => !seen.has(name(one)));
    if (!next) break;
    seen.add(name(next));
    if (next.localName === "details") next.open = true;
    else next.fire(next.localName === "form" ? "submit" : "click");
    await settle();
  }
  for (const dialog of globalThis.document.querySelectorAll("dialog")) dialog.close();
}

/** More than any view has to press. */
const PRESSES_MAX = 120;

const report = () => ({
  unknown: [...answers.samples.unknown].map(([field, where]) => `${field} ${where}`),
  wrong: [...answers.wrong],
});

test("every view of the page is here", () => {
  const views = readdirSync(folder).filter((name) => /^view_(?!login|missing)/.test(name));
  assert.deepEqual(views.sort(), Object.keys(PLACES).sort());
});

for (const [module, places] of Object.entries(PLACES)) {
  test(`${module} reads and sends what the API has`, async () => {
    answers.samples.unknown.clear();
    answers.wrong.clear();
    for (const place of places) {
      for (let variant = 0; variant < VARIANTS; variant += 1) {
        const drawn = await draw(module, place, variant);
        const faults = drawn.box.querySelectorAll(".failed button").map((one) => one.parentNode.textContent);
        assert.deepEqual(faults, [], `${place} with variant ${variant}`);
        assert.ok(drawn.box.querySelectorAll("h1").length === 1, `${place}: ${outline(drawn.box).slice(0, 400)}`);
        if (variant < 2) await press(drawn.box);
        drawn.end();
      }
      assert.deepEqual(report(), { unknown: [], wrong: [] }, place);
    }
  });
}

test("a field that the API does not send is noted, so that the tests above can fail", () => {
  const own = new Answers(document, events);
  const run = own.samples.of({ $ref: "#/components/schemas/Run" }, 0);
  assert.equal(typeof run.run, "string");
  assert.equal(run.invented, undefined);
  assert.deepEqual([...own.samples.unknown.keys()], ["Run.invented"]);
});

test("the report of code is drawn of what the API has", async () => {
  // It comes as an event, whose text notes nothing of what is read of it.
  const { jobReport } = await import(new URL("part_job.js", folder));
  answers.samples.unknown.clear();
  answers.wrong.clear();
  for (let variant = 0; variant < VARIANTS; variant += 1) {
    const drawn = jobReport(answers.samples.of({ $ref: "#/components/schemas/JobReport" }, variant));
    assert.match(drawn.textContent, /Exit code/);
  }
  assert.deepEqual(report(), { unknown: [], wrong: [] });
});

test("a memory shows its value, who stored it, and where the words are from", async () => {
  const drawn = await draw("view_run.js", "runs/r-1/memory", 2);
  const text = drawn.box.querySelector('.card[data-key="fact/key-0"]')?.textContent ?? outline(drawn.box);
  for (const word of ["by-0", "trust-0", "run-0", "value-0"]) assert.ok(text.includes(word), `${word} in ${text}`);
  drawn.end();
});

test("a rating that was changed is sent, with what the API takes", async () => {
  answers.wrong.clear();
  const drawn = await draw("view_trajectories.js", "trajectories/r-1/id-0", 1);
  drawn.box.querySelector('select[name="rating"]').value = "5";
  drawn.box.querySelector("form").fire("submit");
  await settle();
  assert.deepEqual([...answers.wrong], []);
  drawn.end();
});

test("a run is moved to the bytes that it was rehearsed on, and is told first what that comes to", async () => {
  answers.samples.unknown.clear();
  answers.wrong.clear();
  for (const [variant, boundary] of [
    [0, /Move the run$/],
    [2, /Move the run at a boundary$/],
  ]) {
    // The first status is of a run that has not ended.
    const drawn = await draw("view_run.js", "runs/r-1/plugins", 0);
    const choice = drawn.box.querySelector('select[name="plugin"]');
    choice.value = choice.options.at(-1).getAttribute("value");
    answers.variant = variant;
    drawn.box.querySelector("form").fire("submit");
    await settle();
    const move = drawn.box.querySelectorAll("button").filter((one) => /^Move the run/.test(one.textContent));
    assert.ok(move.length > 0 && move.some((one) => boundary.test(one.textContent)), drawn.box.textContent);
    move.find((one) => boundary.test(one.textContent)).click();
    await settle();
    const dialog = globalThis.document.querySelector("dialog");
    assert.match(dialog.textContent, variant === 0 ? /in the middle of their work/ : /ends on the bytes that it began/);
    dialog.querySelector("form").fire("submit");
    await settle();
    assert.match(drawn.box.textContent, /Moved to name-/);
    drawn.end();
  }
  assert.deepEqual(report(), { unknown: [], wrong: [] });
});

test("pressing everything came to what the page is for", () => {
  for (const operation of [
    "POST /api/v1/runs",
    "POST /api/v1/asks",
    "POST /api/v1/runs/{run}/answer",
    "POST /api/v1/approvals/{approval}/answer",
    "DELETE /api/v1/runs/{run}/rules/{rule}",
    "PUT /api/v1/runs/{run}/features/{feature}",
    "POST /api/v1/runs/{run}/revert",
    "GET /api/v1/runs/{run}/commits/{commit}",
    "GET /api/v1/runs/{run}/report",
    "GET /api/v1/comparison",
    "GET /api/v1/runs/{run}/at",
    "POST /api/v1/runs/{run}/fork",
    "POST /api/v1/rehearsals",
    "POST /api/v1/runs/{run}/move",
    "POST /api/v1/runs/{run}/decisions/{decision}/judge",
    "DELETE /api/v1/runs/{run}/memory",
    "POST /api/v1/schedules",
    "POST /api/v1/agents/{agent}/execute",
    "POST /api/v1/exec",
    "DELETE /api/v1/exec/sessions/{name}",
    "POST /api/v1/graphs",
    "DELETE /api/v1/graphs/{graph}",
    "GET /api/v1/graphs/{graph}/output",
    "POST /api/v1/graphs/{graph}/run",
    "POST /api/v1/graphs/{graph}/steps",
    "PUT /api/v1/graphs/{graph}/steps/{step}",
    "DELETE /api/v1/graphs/{graph}/steps/{step}",
    "POST /api/v1/graphs/{graph}/diagnose",
    "POST /api/v1/runs/{run}/trajectory/annotate",
    "GET /api/v1/runs/{run}/trajectories/export",
  ])
    assert.ok(answers.asked.has(operation), `${operation} is not among ${[...answers.asked].join(", ")}`);
});
