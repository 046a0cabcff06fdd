// Servers that work on runs, drawn: their states, their runs, and what is said where there is one server alone.

import assert from "node:assert/strict";
import test from "node:test";

import { install } from "./document.mjs";

install();
const { servers, waiting } = await import(new URL("view_workers.js", process.env.PAGE_MODULES));

const worker = (host, more = {}) => ({
  name: `d-${host}`,
  host,
  process: 7,
  version: "0.1.0",
  labels: ["gpu"],
  runs_max: 4,
  runs: [],
  is_leader: false,
  is_alive: true,
  lease_left_ms: 8_200,
  commits: 12,
  url: null,
  ...more,
});

const rowsOf = (drawn) => drawn.querySelectorAll("tbody tr").map((row) => row.textContent);

test("a server is shown with its state, its places, its labels and its lease", () => {
  const drawn = servers([
    worker("alpha", { is_leader: true, labels: [] }),
    worker("beta", { runs: ["r-1", "r-2"] }),
    worker("gamma", { runs: ["r-3"], is_alive: false, lease_left_ms: 0 }),
  ]);
  const [leader, other, gone] = rowsOf(drawn);
  for (const word of ["alpha", "leads", "0 of 4", "8.2 s"]) assert.ok(leader.includes(word), `${word} in ${leader}`);
  for (const word of ["beta", "works", "2 of 4", "gpu"]) assert.ok(other.includes(word), `${word} in ${other}`);
  for (const word of ["gamma", "gone", "1 of 4", "ended"]) assert.ok(gone.includes(word), `${word} in ${gone}`);
  assert.deepEqual(
    drawn.querySelectorAll("tbody a").map((one) => one.getAttribute("href")),
    ["#/runs/r-1", "#/runs/r-2", "#/runs/r-3"],
  );
  assert.equal(drawn.querySelector(".empty"), null);
});

test("where a server works alone the page says how to have another one", () => {
  for (const items of [[], [worker("alpha", { is_leader: true })]]) {
    const drawn = servers(items);
    assert.match(drawn.querySelector(".empty").textContent, /\[worker\] into the server\.toml/);
    assert.equal(rowsOf(drawn).length, items.length);
  }
});

test("runs that wait for a server are listed, and nothing is said where none does", () => {
  assert.equal(waiting([]), false);
  const drawn = waiting(["r-7", "r-8"]);
  assert.deepEqual(
    drawn.querySelectorAll("li").map((one) => one.textContent),
    ["r-7", "r-8"],
  );
});
