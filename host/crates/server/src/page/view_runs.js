// All runs, newest first, by their status.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { live } from "./live.js";
import { empty, link, mono, pager, progress, redraw, select, status, table, when } from "./ui.js";

const PAGE = 50;

const FILTERS = [
  ["", "All"],
  ["planning,working", "At work"],
  ["parked", "Parked"],
  ["paused", "Paused"],
  ["completed", "Completed"],
  ["incomplete,failed,abandoned", "Not completed"],
];

export async function show(ctx) {
  ctx.title("Runs");
  const chosen = ctx.query.get("status") ?? "";
  const offset = Number(ctx.query.get("offset")) || 0;
  const list = h("div", { class: "section" });
  const filter = select(FILTERS, chosen, { data: { search: "" } });
  filter.addEventListener("change", () => ctx.go(`#/runs${api.queryOf({ status: filter.value })}`));
  fill(
    ctx.box,
    h(
      "div",
      { class: "view-head" },
      h("h1", null, "Runs"),
      h("div", { class: "toolbar" }, h("label", null, "Show", filter)),
    ),
    list,
  );
  await live(ctx, {
    place: list,
    wants: (line) =>
      ["run_started", "resumed", "plan", "judged", "feature", "parked", "paused", "done", "error"].includes(line.type),
    load: (signal) => api.runs({ status: chosen, limit: PAGE, offset }, signal),
    draw: (page) =>
      redraw(
        list,
        page.total === 0
          ? empty(chosen ? "No run is in that state." : "No run yet. Start one from its project.")
          : runTable(page.items),
        pager(page, (to) => ctx.go(`#/runs${api.queryOf({ status: chosen, offset: to })}`)),
      ),
  });
}

/** Runs as a table. */
export function runTable(runs, { withProject = true } = {}) {
  const columns = [
    {
      name: "Run",
      cell: (run) => [
        link(`#/runs/${run.run}`, withProject ? run.project : mono(run.run)),
        withProject && h("span", { class: "sub" }, mono(run.run), run.kind === "ask" && " · ask"),
      ],
    },
    {
      name: "Status",
      cell: (run) => [
        status(run.status),
        run.next_wake_ms && h("span", { class: "sub" }, "next attempt ", when(run.next_wake_ms)),
      ],
    },
    { name: "Features", cell: (run) => progress(run.passing.done, run.passing.of, "Features that pass") },
    { name: "Begun", numeric: true, hide: "phone", cell: (run) => when(run.created_ms) },
    { name: "Updated", numeric: true, cell: (run) => when(run.last_ms) },
  ];
  return table("Runs", columns, runs, { rowKey: (run) => run.run });
}
