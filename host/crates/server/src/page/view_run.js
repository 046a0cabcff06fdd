// One run: how it stands, what it asks, and its parts: live, features, time axis, journal, decisions, memory, costs,
// commits, the run beside others, its past, and its plugins.
//
// The head is kept true by the run's own events; orders (steer, pause, resume, give up) are asked for here and done by
// the server, which may refuse them.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { words } from "./format.js";
import * as keys from "./keys.js";
import { live } from "./live.js";
import { drawAsks } from "./part_asks.js";
import { commits } from "./part_commits.js";
import { compare } from "./part_compare.js";
import { decisions } from "./part_decisions.js";
import { features } from "./part_features.js";
import { timeAxis } from "./part_gantt.js";
import { forkLine } from "./part_forks.js";
import { journal } from "./part_journal.js";
import { ledger } from "./part_ledger.js";
import { memory } from "./part_memory.js";
import { past } from "./part_past.js";
import { drawPlan } from "./part_plan.js";
import { plugins } from "./part_plugins.js";
import { proposals } from "./part_proposals.js";
import { TABS, TAB_KEYS, pauseOrResume, runHead, steer, tabHref } from "./part_run_head.js";
import { oneEvent, timeline } from "./part_timeline.js";
import { atWork } from "./part_work.js";
import { may } from "./session.js";
import { complain, redraw } from "./ui.js";
import { missing } from "./view_missing.js";

export async function show(ctx) {
  const id = ctx.path[1];
  const part = ctx.path[2] ?? "live";
  if (!PARTS[part]) return missing(ctx, `A run has no part ${part}.`);
  const head = h("div", { class: ["run-head", part !== "live" && "is-short"] });
  const asks = h("div", { class: "stack" });
  const body = h("div", { class: "run-body" });
  fill(ctx.box, head, asks, body);
  ctx.title(id);
  let take = null;
  let now = null;
  const shown = await live(ctx, {
    place: head,
    isWhole: true,
    everyMs: 10_000,
    wants: (line) => line.run === (now?.run ?? id),
    load: async (signal) => {
      const [run, open] = await Promise.all([
        api.status(id, signal),
        api.approvals({ open: true, run: id, limit: 20 }, signal),
      ]);
      return { run, open };
    },
    draw: ({ run, open }) => {
      now = run;
      ctx.title(`${run.title || run.project} · ${words(run.status)}`);
      redraw(
        head,
        runHead(
          run,
          part,
          () => now,
          () => shown.refresh(),
        ),
      );
      drawAsks(asks, run, open, part, () => shown.refresh());
      if (take === null) take = PARTS[part](ctx, body, run) ?? (() => {});
      else take(run);
    },
  });
  keys.ofView([
    ["s", "Correct the work", () => now && may("run") && steer(now)],
    ["p", "Pause, or go on", () => now && may("run") && pauseOrResume(now, () => shown.refresh())],
    ["e", "Show earlier events", () => ctx.earlier?.()],
    ...TABS.map(([name, text], index) => [TAB_KEYS[index], text, () => ctx.go(tabHref(id, name))]),
  ]);
}

const PARTS = {
  live: (ctx, body, run) => {
    const plan = h("div", { class: "plan-place" });
    const side = h("div", { class: "run-side" });
    const main = h("div", { class: "section" });
    const own = h("div");
    const event = h("div");
    const forks = h("div");
    forkLine(ctx, forks, run);
    fill(body, forks, event, plan, h("div", { class: "run-columns" }, main, side));
    oneEvent(ctx, event, run.run).catch((error) => ctx.signal.aborted || complain(error));
    const work = atWork(ctx, side, run);
    side.append(own);
    proposals(ctx, own, run);
    const line = timeline(ctx, main, run, () => work.soon());
    drawPlan(plan, run);
    return (next) => {
      drawPlan(plan, next);
      line.features(next.features);
      work.take(next);
    };
  },
  features: (ctx, body, run) => features(ctx, body, run),
  time: (ctx, body, run) => timeAxis(ctx, body, run),
  journal: (ctx, body, run) => void journal(ctx, body, run),
  decisions: (ctx, body, run) => void decisions(ctx, body, run.run),
  memory: (ctx, body, run) => void memory(ctx, body, run.run),
  costs: (ctx, body, run) => ledger(body, run),
  result: (ctx, body, run) => void commits(ctx, body, run),
  compare: (ctx, body, run) => void compare(ctx, body, run),
  past: (ctx, body, run) => past(ctx, body, run),
  plugins: (ctx, body, run) => plugins(ctx, body, run),
};
