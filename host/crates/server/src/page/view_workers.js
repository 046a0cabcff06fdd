// Servers that work on runs of one database: the state, labels and runs of each, and the runs that wait for one.
//
// Nothing is changed here: a server works on runs because its own server.toml says so.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { count, duration } from "./format.js";
import { live } from "./live.js";
import { chip, empty, link, mono, muted, redraw, section, status, table } from "./ui.js";

export async function show(ctx) {
  ctx.title("Workers");
  const box = h("div", { class: "view" });
  fill(
    ctx.box,
    h("p", { class: "crumbs" }, link("#/resources", "Resources")),
    h("h1", null, "Workers"),
    h("p", { class: "hint" }, "Servers of one database share its runs. One leads: it gives runs to the others."),
    box,
  );
  await live(ctx, {
    place: box,
    everyMs: 3_000,
    wants: (line) => ["resumed", "paused", "parked", "done"].includes(line.type),
    load: (signal) => api.workers(signal),
    draw: (now) => redraw(box, servers(now.items), waiting(now.runs_waiting)),
  });
}

/** The servers as a table; where only the leader is there, how to have another one. */
export function servers(items) {
  const isAlone = items.every((one) => one.is_leader);
  return section(
    "Servers",
    { id: "s-servers", count: items.length },
    items.length > 0 && table("Servers", COLUMNS, items, { rowKey: (one) => one.name }),
    isAlone &&
      empty(
        "No other server works on runs. To have one, write [worker] into the server.toml of another server on the same database.",
      ),
  );
}

/** Runs that no server can take; nothing where there are none. */
export function waiting(runs) {
  return (
    runs.length > 0 &&
    section(
      "Waiting for a server",
      { id: "s-waiting", count: runs.length },
      h("p", { class: "hint" }, "No server has the labels that these runs need, and a free place."),
      runList(runs),
    )
  );
}

const COLUMNS = [
  { name: "Machine", cell: (one) => [h("b", null, one.host), h("span", { class: "sub" }, mono(one.name))] },
  { name: "State", cell: (one) => stateOf(one) },
  {
    name: "Runs",
    wide: true,
    cell: (one) => [`${count(one.runs.length)} of ${count(one.runs_max)}`, runList(one.runs)],
  },
  {
    name: "Lease",
    numeric: true,
    cell: (one) => (one.lease_left_ms > 0 ? duration(one.lease_left_ms) : muted("ended")),
  },
  { name: "Labels", cell: (one) => (one.labels.length > 0 ? one.labels.map((label) => chip(label)) : "–") },
  { name: "Commits", numeric: true, hide: "phone", cell: (one) => count(one.commits) },
  { name: "Process", numeric: true, hide: "phone", cell: (one) => (one.process === null ? "–" : String(one.process)) },
  { name: "Version", hide: "phone", cell: (one) => one.version },
  { name: "Address", hide: "phone", cell: (one) => (one.url ? mono(one.url) : "–") },
];

function stateOf(one) {
  if (!one.is_alive) return status("failed", "gone");
  return status("active", one.is_leader ? "leads" : "works");
}

const runList = (runs) =>
  runs.length > 0 &&
  h(
    "ul",
    null,
    runs.map((run) => h("li", null, link(`#/runs/${encodeURIComponent(run)}`, mono(run)))),
  );
