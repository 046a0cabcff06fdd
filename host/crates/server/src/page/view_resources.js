// Resources that Longhaul and the machine use: now, and over time as plots; their users; and what waits for capacity,
// with the reason. A view below it lists the servers that work on runs.
//
// Figures that this server does not know are left away, not shown as zero.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { bytes, count, duration, words } from "./format.js";
import { live } from "./live.js";
import { plot } from "./plot.js";
import { empty, facts, link, mono, redraw, section, table, when } from "./ui.js";
import * as workers from "./view_workers.js";

const MB = 1024 * 1024;
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const percentWords = (value) => `${value >= 10 || value === 0 ? Math.round(value) : value.toFixed(1)} %`;
const mbWords = (value) => bytes(value * MB);

export async function show(ctx) {
  if (ctx.path[1] === "workers") return workers.show(ctx);
  ctx.title("Resources");
  const box = h("div", { class: "view" });
  const head = h("div", { class: "view-head" }, h("h1", null, "Resources"), link("#/resources/workers", "Workers"));
  fill(ctx.box, head, box);
  await live(ctx, {
    place: box,
    everyMs: 3_000,
    wants: () => false,
    load: (signal) => api.resources(signal),
    draw: (now) => redraw(box, machine(now), plots(now.history ?? []), lists(now)),
  });
}

function machine({ system = {}, host, cgroups, history = [] }) {
  const children = history.at(-1)?.children;
  const gpus = (system.gpus ?? []).map((gpu) => [
    gpu.name,
    `${mbWords(gpu.memory_used_mb)} of ${mbWords(gpu.memory_total_mb)}`,
  ]);
  return section(
    "Now",
    { id: "s-now" },
    facts([
      [
        "Memory of the machine",
        isNumber(system.memory_total_mb)
          ? `${mbWords(system.memory_total_mb - system.memory_available_mb)} of ${mbWords(system.memory_total_mb)}`
          : null,
      ],
      [
        "Processors",
        isNumber(system.cpu_count) ? `${percentWords(system.cpu_percent ?? 0)} of ${count(system.cpu_count)}` : null,
      ],
      ["Longhaul itself", usageWords(host)],
      ["Its child processes", usageWords(children)],
      ...gpus,
      ["Control groups", typeof cgroups === "string" ? cgroups : null],
    ]),
  );
}

function usageWords(usage) {
  if (!usage || !isNumber(usage.memory_mb)) return null;
  return `${mbWords(usage.memory_mb)}, ${percentWords(usage.cpu_percent ?? 0)}${isNumber(usage.num_threads) ? `, ${count(usage.num_threads)} threads` : ""}`;
}

/** The plots: a name, the lines with how a sample says them, and how a value is said. */
const PLOTS = [
  ["Processors of the machine", [["", (one) => one.cpu_percent]], percentWords, 10],
  ["Memory of the machine used", [["", (one) => one.memory_percent]], percentWords, 10],
  [
    "Processor time of Longhaul",
    [
      ["host", (one) => one.host?.cpu_percent],
      ["children", (one) => one.children?.cpu_percent],
    ],
    percentWords,
    10,
  ],
  [
    "Memory of Longhaul",
    [
      ["host", (one) => one.host?.memory_mb],
      ["children", (one) => one.children?.memory_mb],
      ["guests", (one) => one.guests_memory_mb],
    ],
    mbWords,
    2,
  ],
  ["Instances of components", [["", (one) => one.guests]], count, 10],
  ["Memory of graphics cards", [["", (one) => one.gpu_memory_used_mb || undefined]], mbWords, 2],
];

function plots(history) {
  if (history.length === 0) return section("Over time", { id: "s-time" }, empty("Nothing measured yet."));
  const drawn = PLOTS.map(([title, lines, say, base]) => {
    const own = lines
      .map(([name, value]) => ({
        name,
        points: history.map((one) => [one.at_ms, value(one)]).filter(([, figure]) => isNumber(figure)),
      }))
      .filter((line) => line.points.length > 0);
    return own.length > 0 && plot(title, own, { words: say, base });
  });
  return section("Over time", { id: "s-time" }, h("div", { class: "plots" }, drawn));
}

const LISTS = [
  ["waiting", "Waiting for room"],
  ["runs", "Runs"],
  ["tasks", "Tasks"],
  ["instances", "Instances"],
  ["children", "Child processes"],
  ["ended", "Ended for their limits"],
];

/** Lists that are there also when nothing is in them. */
const ALWAYS = new Set(["instances", "children"]);

/** Rows of one list that are shown. */
const ROWS_MAX = 200;

function lists(now) {
  const all = { ...now, waiting: waitingOf(now) };
  return LISTS.filter(([name]) => Array.isArray(all[name]) && (all[name].length > 0 || ALWAYS.has(name))).map(
    ([name, title]) => {
      const rows = all[name];
      const shown =
        rows.length === 0 ? empty("None right now.") : table(title, columnsOf(rows), rows.slice(0, ROWS_MAX));
      return section(title, { id: `s-${name}`, count: rows.length }, shown);
    },
  );
}

/** Who waits for room, and why. */
function waitingOf(now) {
  const own = (list, name, of) =>
    list.filter((one) => one.waiting_for).map((one) => ({ [name]: one[name], of: one[of], reason: one.waiting_for }));
  return [...own(now.runs, "run", "project"), ...own(now.tasks, "task", "agent")];
}

/** Columns for whatever these rows say: names first, then figures. */
function columnsOf(rows) {
  const names = [...new Set(rows.slice(0, 50).flatMap((row) => Object.keys(flatUsage(row))))].slice(0, 9);
  return names.map((name) => ({
    name: words(name.replace(/_(mb|bytes|ms|percent)$/, "").replace(/^num_/, "")),
    numeric: rows.some((row) => isNumber(flatUsage(row)[name])),
    cell: (row) => cellOf(name, flatUsage(row)[name]),
  }));
}

/** What a row uses stands beside its name. */
function flatUsage(row) {
  const flat = { ...row };
  if ("usage" in row) Object.assign(flat, row.usage);
  return Object.fromEntries(
    Object.entries(flat).filter(([, value]) => value === null || typeof value !== "object" || Array.isArray(value)),
  );
}

function cellOf(name, value) {
  if (value === null || value === undefined) return "–";
  if (name === "invocation") return link(`#/runs/${String(value).split("/")[0]}`, mono(value));
  if (name === "run") return link(`#/runs/${value}`, mono(value));
  if (name.endsWith("_ms")) return value > 1e11 ? when(value) : duration(value);
  if (name.endsWith("_mb")) return mbWords(value);
  if (name.endsWith("_bytes") || name.includes("_bytes_")) return bytes(value);
  if (name.endsWith("_percent")) return percentWords(value);
  if (isNumber(value)) return count(value);
  return Array.isArray(value) ? value.join(", ") : String(value);
}
