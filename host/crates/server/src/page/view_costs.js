// Costs of runs: money and tokens in all, by project, model, agent and day, and run by run beside their budgets.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { cost, costNote, count, duration } from "./format.js";
import { live } from "./live.js";
import { budget, dayColumns, groupBars, sumFacts } from "./part_cost_groups.js";
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
        facts(sumFacts(page)),
        page.total > 0 && dayColumns(page.by_day),
        h(
          "div",
          { class: "cost-groups" },
          !project && groupBars("By project", page.by_project, { noun: "run", href: projectHref }),
          groupBars("By model", page.by_model),
          groupBars("By agent", page.by_agent),
        ),
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

const projectHref = (name) => `#/costs${api.queryOf({ project: name })}`;

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
  { name: "Budget", hide: "narrow", cell: (one) => budget(one) },
  { name: "Tokens read", numeric: true, cell: (one) => count(one.usage.input_tokens) },
  { name: "Written", numeric: true, cell: (one) => count(one.usage.output_tokens) },
  { name: "Model", numeric: true, hide: "phone", cell: (one) => count(one.model_calls) },
  { name: "Tools", numeric: true, hide: "phone", cell: (one) => count(one.tool_calls) },
  { name: "At work", numeric: true, cell: (one) => duration(one.wall_ms) },
  { name: "Started", numeric: true, hide: "phone", cell: (one) => when(one.created_ms) },
];
