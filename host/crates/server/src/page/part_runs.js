// Runs as a table, and orders to several of them at once.
//
// Chosen runs stay chosen while the table is drawn anew. Each run is ordered by itself: the server may refuse one
// and take the others, and the page says which it refused and why.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { cost, duration, plural } from "./format.js";
import { may } from "./session.js";
import { button, confirm, link, mono, progress, status, table, toast, when } from "./ui.js";

/** Where a run is over. */
export const ENDED = new Set(["completed", "incomplete", "failed", "abandoned"]);

/** Where a run is over and can be tried again. */
const CAN_RETRY = new Set(["incomplete", "failed"]);

const isArchived = (run) => typeof run.archived_ms === "number";

/** Where a run does nothing and waits for nothing, so that nobody misses it in the list. */
const canArchive = (run) => !isArchived(run) && !run.active && (ENDED.has(run.status) || run.status === "paused");

/** Runs as a table. `choice` adds a box to each row. */
export function runTable(runs, { withProject = true, choice = null } = {}) {
  const columns = [
    {
      name: "Run",
      wide: true,
      cell: (run) => [
        choice && choice.box(run),
        link(`#/runs/${run.run}`, run.title || run.run),
        h("span", { class: "sub" }, withProject && [run.project, " · "], mono(run.run), run.kind === "ask" && " · ask"),
      ],
    },
    {
      name: "Status",
      cell: (run) => [
        status(run.status),
        activity(run),
        run.next_wake_ms && h("span", { class: "sub" }, "next attempt ", when(run.next_wake_ms)),
        isArchived(run) && h("span", { class: "sub" }, "archived ", when(run.archived_ms)),
      ],
    },
    {
      name: "Features",
      hide: "narrow",
      cell: (run) => progress(run.passing.done, run.passing.of, "Features that pass"),
    },
    { name: "Agents", hide: "narrow", cell: (run) => agentsOf(run) },
    { name: "Cost", numeric: true, cell: (run) => cost(run.usage) },
    { name: "At work", numeric: true, cell: (run) => duration(run.wall_ms) },
    { name: "Started", numeric: true, hide: "phone", cell: (run) => when(run.created_ms) },
    { name: "Updated", numeric: true, cell: (run) => when(run.last_ms) },
  ];
  return table("Runs", columns, runs, { rowKey: (run) => run.run, rowClass: (run) => run.active && "is-active" });
}

/** The first names, and how many there are beside. */
function agentsOf({ agents }) {
  if (agents.length === 0) return "–";
  if (agents.length <= 2) return agents.map((name, at) => [at > 0 && ", ", h("span", { class: "whole" }, name)]);
  return [h("span", { class: "whole" }, agents[0]), h("span", { class: "sub" }, `and ${agents.length - 1} more`)];
}

/** A run that is not over is worked on, waits for its turn, or nobody works on it at this moment. */
export function activity(run) {
  if (ENDED.has(run.status)) return null;
  if (typeof run.queue_place === "number")
    return h("span", { class: "sub tone-wait" }, `queued, place ${run.queue_place}`);
  return h("span", { class: ["sub", run.active ? "tone-busy" : "tone-quiet"] }, run.active ? "active" : "idle");
}

/**
 * The orders that several runs can be given at once: the name, whom it concerns, and what is sent. `onlyIfFitting` leaves
 * out the button of an order that concerns none of them.
 */
export const ORDERS = [
  {
    name: "Pause",
    done: "paused",
    takes: (run) => run.active,
    send: (run) => api.order(run.run, "pause", {}),
  },
  {
    name: "Resume",
    done: "resumed",
    takes: (run) => !run.active && !ENDED.has(run.status),
    send: (run) => api.order(run.run, "resume", { retry_failing: false, sessions: null }),
  },
  {
    name: "Retry",
    done: "retried",
    takes: (run) => !run.active && CAN_RETRY.has(run.status),
    send: (run) => api.order(run.run, "resume", { retry_failing: true, sessions: null }),
  },
  {
    name: "Abandon",
    done: "abandoned",
    asks: "What passes stays on its branch. An abandoned run does not go on.",
    takes: (run) => !ENDED.has(run.status),
    send: (run) => api.order(run.run, "abandon", { reason: "abandoned on the page" }),
  },
  {
    name: "Archive",
    done: "archived",
    takes: canArchive,
    send: (run) => api.order(run.run, "archive", {}),
  },
  {
    name: "Take back from the archive",
    done: "taken back from the archive",
    onlyIfFitting: true,
    takes: isArchived,
    send: (run) => api.order(run.run, "unarchive", {}),
  },
];

/** Gives an order to each run that it concerns, one after the other; what was done and what was refused. */
export async function orderAll(order, runs) {
  const outcome = { done: [], refused: [] };
  for (const run of runs.filter(order.takes)) {
    try {
      await order.send(run);
      outcome.done.push(run.run);
    } catch (error) {
      if (!(error instanceof api.ApiError)) throw error;
      outcome.refused.push({ run: run.run, reason: error.message });
    }
  }
  return outcome;
}

/** The runs that a person chose, and the bar with what can be done with them. */
export function chooser(place, refresh) {
  const chosen = new Set();
  let shown = [];
  const own = () => shown.filter((run) => chosen.has(run.run));
  const draw = () => {
    const runs = own();
    if (!may("run") || runs.length === 0) return void fill(place);
    fill(
      place,
      h(
        "div",
        { class: "bulk", role: "group", "aria-label": "Chosen runs" },
        h("b", null, `${plural(runs.length, "run")} chosen`),
        ORDERS.filter((order) => !order.onlyIfFitting || runs.some(order.takes)).map((order) =>
          orderButton(order, runs, carryOut),
        ),
        button("Choose none", { small: true, kind: "quiet", run: () => clear() }),
      ),
    );
  };
  const carryOut = async (order, runs) => {
    const { done, refused } = await orderAll(order, runs);
    if (done.length > 0) toast(`${plural(done.length, "run")} ${order.done}.`);
    for (const one of refused.slice(0, 3)) toast(`${one.run}: ${one.reason}`, "bad");
    for (const run of done) chosen.delete(run);
    await refresh();
  };
  const clear = () => {
    chosen.clear();
    return refresh();
  };
  return {
    /** The runs of the page that is shown. */
    take: (runs) => {
      shown = runs;
      draw();
    },
    box: (run) => {
      const box = h("input", {
        type: "checkbox",
        class: "choose",
        "aria-label": `Choose ${run.run}`,
        data: { focus: `choose-${run.run}` },
        prop: { checked: chosen.has(run.run) },
      });
      box.addEventListener("change", () => {
        if (box.checked) chosen.add(run.run);
        else chosen.delete(run.run);
        draw();
      });
      return box;
    },
    all: () => {
      for (const run of shown) chosen.add(run.run);
      return refresh();
    },
  };
}

function orderButton(order, runs, carryOut) {
  const fitting = runs.filter(order.takes);
  const run = order.asks
    ? () =>
        confirm(`${order.name} ${plural(fitting.length, "run")}`, order.asks, order.name, () =>
          carryOut(order, fitting),
        )
    : () => carryOut(order, fitting);
  return button(`${order.name} ${fitting.length}`, {
    small: true,
    kind: order.asks ? "danger" : "",
    disabled: fitting.length === 0,
    run,
  });
}
