// All runs, newest first: found by words, project, status, agent and time, which stand in the address. Archived runs are
// a list of their own.
//
// The server filters and cuts the list into pages, so that a page of ten thousand runs costs what one of fifty costs.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { live } from "./live.js";
import { chooser, runTable } from "./part_runs.js";
import { may } from "./session.js";
import { button, empty, input, pager, redraw, select } from "./ui.js";

const PAGE = 50;

const STATUSES = [
  ["", "Every status"],
  ["planning,working", "At work"],
  ["parked", "Parked"],
  ["paused", "Paused"],
  ["completed", "Completed"],
  ["incomplete,failed,abandoned", "Not completed"],
];

/** Which of the two lists: the word of the address, and what is shown. */
const ARCHIVE = [
  ["", "Not archived"],
  ["true", "Archived"],
];

const HOUR = 3_600_000;

/** How far back: the word of the address, what is shown, and the milliseconds. */
const TIMES = [
  ["", "Any time", null],
  ["1h", "Last hour", HOUR],
  ["24h", "Last 24 hours", 24 * HOUR],
  ["7d", "Last 7 days", 7 * 24 * HOUR],
  ["30d", "Last 30 days", 30 * 24 * HOUR],
];

/** Pause after a key, in which more may come. */
const TYPING_MS = 250;

/** The names in the address, which are those of the filters. */
const FILTERS = ["search", "project", "status", "agent", "since", "archived"];

/** What the address asks for: its filters, and where the page begins. */
export function wanted(query) {
  const own = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""]));
  return { ...own, offset: Math.max(0, Number.parseInt(query.get("offset") ?? "0", 10) || 0) };
}

/** The address of that. */
export const addressOf = ({ offset, ...filters }) => `#/runs${api.queryOf({ ...filters, offset: offset || null })}`;

/** The same as parameters of the API. */
export function paramsOf({ search, project, status, agent, since, archived, offset }, nowMs) {
  const back = TIMES.find(([name]) => name === since)?.[2] ?? null;
  const after_ms = back === null ? null : nowMs - back;
  return { search, project, status, agent, after_ms, archived: archived === "true" || null, limit: PAGE, offset };
}

export async function show(ctx) {
  ctx.title("Runs");
  const now = wanted(ctx.query);
  const list = h("div", { class: "section" });
  const bulk = h("div", { class: "bulk-place" });
  let refresh = async () => {};
  const choice = chooser(bulk, () => refresh());
  const change = (next) => {
    Object.assign(now, next);
    ctx.keep(addressOf(now));
    return refresh();
  };
  fill(
    ctx.box,
    h(
      "div",
      { class: "view-head" },
      h("h1", null, "Runs"),
      may("run") && button("Choose all on this page", { small: true, kind: "quiet", run: () => choice.all() }),
    ),
    filters(ctx, now, (next) => change({ ...next, offset: 0 })),
    bulk,
    list,
  );
  ({ refresh } = await live(ctx, {
    place: list,
    wants: (line) =>
      ["run_started", "resumed", "plan", "judged", "feature", "parked", "paused", "done", "error"].includes(line.type),
    load: (signal) => api.runs(paramsOf(now, Date.now()), signal),
    draw: (page) => {
      choice.take(page.items);
      redraw(
        list,
        page.total === 0 ? none(now) : runTable(page.items, { choice: may("run") ? choice : null }),
        pager(page, (offset) => change({ offset })),
      );
    },
  }));
}

const none = (now) =>
  FILTERS.some((name) => now[name])
    ? empty("No run fits.", button("Show all runs", { run: () => (location.hash = "#/runs") }))
    : empty("No run yet. Start one from its project.");

function filters(ctx, now, change) {
  const search = input({
    type: "search",
    placeholder: "Search questions, goals and names",
    "aria-label": "Search runs",
    data: { search: "" },
    prop: { value: now.search },
  });
  let timer = null;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => !ctx.signal.aborted && change({ search: search.value.trim() }), TYPING_MS);
  });
  const agent = input({
    placeholder: "Any agent",
    "aria-label": "Agent",
    class: "short",
    prop: { value: now.agent },
  });
  agent.addEventListener("change", () => change({ agent: agent.value.trim() }));
  const choose = (name, label, options) => {
    const box = select(options, now[name], { "aria-label": label });
    box.addEventListener("change", () => change({ [name]: box.value }));
    return box;
  };
  const project = h("span", { class: "toolbar" }, choose("project", "Project", projectOptions(now, [])));
  api
    .projects({ limit: 500 }, ctx.signal)
    .then(({ items }) =>
      fill(
        project,
        choose(
          "project",
          "Project",
          projectOptions(
            now,
            items.map((one) => one.project),
          ),
        ),
      ),
    )
    // Without the list the filter has the project of the address alone.
    .catch(() => {});
  return h(
    "div",
    { class: "toolbar", role: "search" },
    search,
    project,
    choose("status", "Status", STATUSES),
    agent,
    choose(
      "since",
      "Time",
      TIMES.map(([name, text]) => [name, text]),
    ),
    choose("archived", "Archive", ARCHIVE),
  );
}

/** Names of projects; that of the address is among them also where the server does not list it. */
function projectOptions(now, names) {
  const all = [...new Set([...names, now.project].filter(Boolean))].sort();
  return [["", "Every project"], ...all.map((name) => [name, name])];
}
