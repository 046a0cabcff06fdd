// What runs cost: money and tokens in all, and run by run.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { cost, costNote, count, duration } from "./format.js";
import { live } from "./live.js";
import { empty, facts, link, mono, pager, redraw, status, table, when } from "./ui.js";

const PAGE = 50;

export async function show(ctx) {
  ctx.title("Costs");
  const project = ctx.query.get("project");
  const offset = Number(ctx.query.get("offset")) || 0;
  const box = h("div", { class: "section" });
  fill(ctx.box, h("h1", null, project ? `Costs of ${project}` : "Costs"), box);
  await live(ctx, {
    place: box,
    wants: (line) => ["task_done", "done", "session_complete"].includes(line.type),
    load: (signal) => api.costs({ project, limit: PAGE, offset }, signal),
    draw: (page) =>
      redraw(
        box,
        facts([
          ["Money", cost(page.sum)],
          ["Tokens read", count(page.sum.input_tokens)],
          ["of these cached", page.sum.cached_tokens > 0 ? count(page.sum.cached_tokens) : null],
          ["Tokens written", count(page.sum.output_tokens)],
          ["Runs", count(page.total)],
        ]),
        page.total === 0 ? empty("No run yet, so nothing was spent.") : table("Costs of runs", COLUMNS, page.items),
        h(
          "p",
          { class: "hint" },
          "What models without a known price cost is unknown. What a kill cut off may have been paid and is counted apart.",
        ),
        pager(page, (to) => ctx.go(`#/costs${api.queryOf({ project, offset: to })}`)),
      ),
  });
}

const COLUMNS = [
  {
    name: "Run",
    cell: (one) => [link(`#/runs/${one.run}/costs`, one.project), h("span", { class: "sub" }, mono(one.run))],
  },
  { name: "Status", cell: (one) => status(one.status) },
  {
    name: "Money",
    numeric: true,
    cell: (one) => [
      cost(one.usage),
      costNote(one.interrupted_usage_max) &&
        h("span", { class: "sub" }, `+ at most ${cost(one.interrupted_usage_max)} interrupted`),
    ],
  },
  { name: "Tokens read", numeric: true, cell: (one) => count(one.usage.input_tokens) },
  { name: "Written", numeric: true, cell: (one) => count(one.usage.output_tokens) },
  { name: "Model", numeric: true, hide: "phone", cell: (one) => count(one.model_calls) },
  { name: "Tools", numeric: true, hide: "phone", cell: (one) => count(one.tool_calls) },
  { name: "At work", numeric: true, cell: (one) => duration(one.wall_ms) },
  { name: "Begun", numeric: true, hide: "phone", cell: (one) => when(one.created_ms) },
];
