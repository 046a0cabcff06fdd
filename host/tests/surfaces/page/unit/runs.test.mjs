// The list of runs: what stands in its address, what it asks the server for, and orders to several runs at once.

import assert from "node:assert/strict";
import test from "node:test";

import { install } from "./document.mjs";

install();
const folder = process.env.PAGE_MODULES;
const { wanted, addressOf, paramsOf } = await import(new URL("view_runs.js", folder));
const { ORDERS, orderAll, runTable, activity, chooser } = await import(new URL("part_runs.js", folder));
const session = await import(new URL("session.js", folder));

const NOW_MS = 1_700_000_000_000;
const order = (name) => ORDERS.find((one) => one.name === name);

const run = (name, status, active = false) => ({
  run: name,
  status,
  active,
  title: `What of ${name}?`,
  project: "kept",
  kind: "ask",
  passing: { done: 1, of: 2 },
  agents: ["code"],
  usage: { cost_microdollars: 1_830_000 },
  wall_ms: 185_000,
  created_ms: NOW_MS,
  last_ms: NOW_MS,
  next_wake_ms: null,
  archived_ms: null,
});

test("filters stand in the address and are read back from it", () => {
  const named = { search: "a & b", project: "kept", status: "parked", agent: "code" };
  const now = { ...named, since: "24h", archived: "true", offset: 50 };
  const address = addressOf(now);
  const query = "search=a+%26+b&project=kept&status=parked&agent=code&since=24h&archived=true&offset=50";
  assert.equal(address, `#/runs?${query}`);
  assert.deepEqual(wanted(new URLSearchParams(address.split("?")[1])), now);
  assert.equal(addressOf(wanted(new URLSearchParams(""))), "#/runs");
  for (const wrong of ["x", "-5", ""]) assert.equal(wanted(new URLSearchParams({ offset: wrong })).offset, 0, wrong);
});

test("the server is asked for one page, back to the time that was chosen", () => {
  const asked = (query) => paramsOf(wanted(new URLSearchParams(query)), NOW_MS);
  assert.equal(asked("since=24h").after_ms, NOW_MS - 86_400_000);
  assert.equal(asked("").after_ms, null);
  assert.equal(asked("since=ever").after_ms, null, "a word that is none of the choices");
  assert.deepEqual(
    [asked("offset=9950").offset, asked("").limit],
    [9950, 50],
    "the last page costs what the first does",
  );
});

test("archived runs are asked for alone, and left out otherwise", () => {
  const asked = (query) => paramsOf(wanted(new URLSearchParams(query)), NOW_MS).archived;
  assert.deepEqual([asked("archived=true"), asked(""), asked("archived=no")], [true, null, null]);
});

test("a run that is over or paused goes into the archive, and one that is there out of it", async () => {
  const sent = [];
  globalThis.fetch = async (path) => (sent.push(path), { ok: true, status: 200, json: async () => ({}) });
  const kept = { ...run("r-5", "failed"), archived_ms: NOW_MS };
  const runs = [run("r-1", "completed"), run("r-2", "paused"), run("r-3", "parked"), run("r-4", "working", true), kept];
  assert.deepEqual((await orderAll(order("Archive"), runs)).done, ["r-1", "r-2"]);
  assert.deepEqual((await orderAll(order("Take back from the archive"), runs)).done, ["r-5"]);
  assert.deepEqual(
    sent,
    ["r-1/archive", "r-2/archive", "r-5/unarchive"].map((rest) => `/api/v1/runs/${rest}`),
  );
  assert.match(runTable([kept]).textContent, /archived/);
  assert.doesNotMatch(runTable([runs[0]]).textContent, /archived/);
});

test("a run is told by its question, with its cost and the time it worked", () => {
  const row = runTable([run("r-1", "completed")]).querySelector("tbody tr");
  assert.equal(row.querySelector("th a").textContent, "What of r-1?");
  for (const word of ["kept", "r-1", "code", "$1.83", "3 min 05 s"]) assert.ok(row.textContent.includes(word), word);
  assert.equal(runTable([{ ...run("r-2", "new"), title: "" }]).querySelector("th a").textContent, "r-2");
});

test("a run that is worked on is told from one that waits, and one that is over from both", () => {
  assert.equal(activity(run("r-1", "working", true)).textContent, "active");
  assert.equal(activity(run("r-1", "parked")).textContent, "idle");
  assert.equal(activity({ ...run("r-1", "new"), queue_place: 3 }).textContent, "queued, place 3");
  assert.equal(activity(run("r-1", "completed")), null);
});

test("an order goes to the runs that can take it, and a refusal of one stops no other", async () => {
  const sent = [];
  globalThis.fetch = async (path, { body }) => {
    sent.push([path, JSON.parse(body)]);
    const isRefused = path.includes("r-2");
    return {
      ok: !isRefused,
      status: isRefused ? 409 : 200,
      json: async () => (isRefused ? { detail: "not now" } : {}),
    };
  };
  const runs = [
    run("r-1", "failed"),
    run("r-2", "incomplete"),
    run("r-3", "completed"),
    run("r-4", "working", true),
    run("r-5", "failed"),
  ];
  assert.deepEqual(await orderAll(order("Retry"), runs), {
    done: ["r-1", "r-5"],
    refused: [{ run: "r-2", reason: "not now" }],
  });
  assert.deepEqual(sent[0], ["/api/v1/runs/r-1/resume", { retry_failing: true, sessions: null }]);
  assert.deepEqual((await orderAll(order("Pause"), runs)).done, ["r-4"]);
  assert.deepEqual(runs.filter(order("Resume").takes), [], "none of them is paused");
  assert.deepEqual(
    runs.filter(order("Abandon").takes).map((one) => one.run),
    ["r-4"],
  );
});

test("what is chosen is counted, and stays chosen while the list is drawn anew", () => {
  session.begin("lh_test", { name: "all", scopes: ["run"] });
  const place = document.createElement("div");
  const choice = chooser(place, async () => {});
  const runs = [run("r-1", "paused"), run("r-2", "working", true)];
  choice.take(runs);
  assert.equal(place.childElementCount, 0, "no bar before something is chosen");
  for (const one of runs) {
    const box = choice.box(one);
    box.checked = true;
    box.dispatchEvent(new Event("change"));
  }
  assert.match(place.textContent, /2 runs chosenPause 1Resume 1Retry 0Abandon 2Archive 1Choose none/);
  choice.take([{ ...runs[0], archived_ms: NOW_MS }, runs[1]]);
  assert.match(place.textContent, /Archive 0Take back from the archive 1Choose none/);
  choice.take([runs[0]]);
  assert.match(place.textContent, /1 run chosen/, "one that is not on the page is given no order");
  assert.equal(choice.box(runs[0]).checked, true);
  session.begin("lh_test", { name: "reader", scopes: ["read"] });
  choice.take(runs);
  assert.equal(place.childElementCount, 0, "who may only read is offered nothing");
});
