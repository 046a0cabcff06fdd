// The journal of a run: who worked, and each call that they made with its answer, opened one by one.
//
// It reads a page of entries at a time. What tools and models answered is text, never HTML.

import * as api from "./api.js";
import { add, fill, h } from "./dom.js";
import { asText, clock, count, duration, moment, words } from "./format.js";
import { live } from "./live.js";
import { editable } from "./forks.js";
import { openFork } from "./part_fork.js";
import { shortName } from "./part_timeline.js";
import { entryPoint, pastHref } from "./points.js";
import { may } from "./session.js";
import {
  button,
  chip,
  complain,
  empty,
  failed,
  fold,
  link,
  loading,
  mono,
  pager,
  plain,
  redraw,
  status,
  table,
  toast,
  when,
} from "./ui.js";

const PAGE = 100;

export async function journal(ctx, place, run) {
  const invocation = ctx.query.get("i");
  return invocation ? entries(ctx, place, run, invocation) : invocations(ctx, place, run);
}

async function invocations(ctx, place, run) {
  const offset = Number(ctx.query.get("offset")) || 0;
  await live(ctx, {
    place,
    wants: (line) => line.run === run.run && ["task_started", "task_done", "delegation"].includes(line.type),
    load: (signal) => api.journal(run.run, { limit: PAGE, offset }, signal),
    draw: (page) =>
      redraw(
        place,
        h(
          "div",
          { class: "toolbar" },
          h(
            "p",
            { class: "hint" },
            "Every call of every agent is kept here, with its answer. A finished one can be replayed from it and must give the same result.",
          ),
          may("run") && page.total > 0 && button("Replay all", { small: true, run: () => replay(run, null) }),
        ),
        page.total === 0
          ? empty("No agent has worked yet.")
          : table(
              "Invocations",
              [
                {
                  name: "Work",
                  cell: (one) =>
                    link(
                      `#/runs/${run.run}/journal?i=${encodeURIComponent(one.invocation)}`,
                      shortName(one.invocation),
                    ),
                },
                { name: "Agent", cell: (one) => [one.agent, one.plugin && h("span", { class: "sub" }, one.plugin)] },
                {
                  name: "Status",
                  cell: (one) =>
                    status(
                      one.until_ms === null ? (run.active ? "running" : "paused") : "completed",
                      one.until_ms === null ? (run.active ? "at work" : "at rest") : "ended",
                    ),
                },
                { name: "Began", numeric: true, cell: (one) => when(one.from_ms) },
                {
                  name: "Took",
                  numeric: true,
                  cell: (one) => (one.until_ms === null ? "–" : duration(one.until_ms - one.from_ms)),
                },
              ],
              page.items,
            ),
        pager(page, (to) => ctx.go(`#/runs/${run.run}/journal?offset=${to}`)),
      ),
  });
}

async function replay(run, invocation) {
  const { invocations: done } = await api.replay(run.run, invocation);
  const different = done.filter((one) => !one.same);
  if (different.length === 0) toast(`${count(done.length)} replayed; each gave the same result.`);
  else toast(`${different[0].invocation}: ${different[0].difference ?? "gave another result"}`, "bad");
}

async function entries(ctx, place, run, invocation) {
  const list = h("ol", { class: "entries", "aria-label": "Entries" });
  const foot = h("div", { class: "actions" });
  const end = h("div");
  fill(
    place,
    h(
      "div",
      { class: "view-head" },
      h(
        "div",
        null,
        h("p", { class: "crumbs" }, link(`#/runs/${run.run}/journal`, "Journal")),
        h("h2", null, shortName(invocation)),
      ),
      h(
        "div",
        { class: "actions" },
        may("run") && button("Replay", { small: true, run: () => replay(run, invocation) }),
      ),
    ),
    list,
    foot,
    end,
  );
  fill(list, h("li", null, loading()));
  let after = 0;
  const more = async () => {
    const page = await api.entries(run.run, invocation, after, ctx.signal);
    if (after === 0) fill(list);
    add(
      list,
      page.entries.map((one) => entryRow(ctx, run, invocation, one)),
    );
    if (page.entries.length === 0 && after === 0) fill(list, h("li", null, empty("No entries yet.")));
    after = page.next_after ?? after;
    fill(foot, page.next_after !== null && page.next_after !== undefined && button("Show more", { run: more }));
    fill(end, page.finished && finishedCard(page.finished));
  };
  await more().catch((error) =>
    ctx.signal.aborted
      ? null
      : after === 0
        ? fill(
            list,
            h(
              "li",
              null,
              failed(error, () => entries(ctx, place, run, invocation)),
            ),
          )
        : complain(error),
  );
}

const CLASSES = { idempotent: "busy", verifiable: "busy", acts: "wait" };

function entryRow(ctx, run, invocation, one) {
  const took = one.answered_ms ? duration(one.answered_ms - one.at_ms) : null;
  const summary = [
    h("span", { class: "entry-number" }, String(one.number)),
    h(
      "span",
      { class: "entry-name" },
      h("b", null, one.name),
      one.summary && one.summary !== one.name && h("span", { class: "muted" }, ` ${one.summary}`),
    ),
    h(
      "span",
      { class: "entry-facts" },
      one.class !== "read-only" && chip(words(one.class), CLASSES[one.class]),
      one.attempt > 1 && chip(`attempt ${one.attempt}`, "wait"),
      took ?? (one.answer === null ? "no answer yet" : ""),
    ),
  ];
  const body = () =>
    h(
      "div",
      { class: "entry-body" },
      h(
        "p",
        { class: "hint" },
        moment(one.at_ms),
        " ",
        clock(one.at_ms),
        ` · ${count(one.fuel_used)} fuel so far · arguments `,
        mono(String(one.arguments).slice(0, 16)),
      ),
      one.resolution !== null &&
        one.resolution !== undefined &&
        h("div", null, h("h4", null, "A person's answer"), plain(one.resolution, { code: true })),
      one.answer === null
        ? h("p", { class: "muted" }, "It was in flight; no answer is known.")
        : plain(asText(one.answer), { label: `Answer of entry ${one.number}` }),
      one.answer !== null &&
        fold("As it is stored", () => plain(one.answer, { code: true }), { name: `stored-${one.number}` }),
      one.answer !== null && thenOf(ctx, run, entryPoint(invocation, one.number), one),
    );
  return h(
    "li",
    null,
    fold(h("span", { class: "entry-head" }, summary), body, { className: "entry", name: `entry-${one.number}` }),
  );
}

/** The run when an entry was answered, and a fork from there. */
function thenOf(ctx, run, point, one) {
  return h(
    "div",
    { class: "actions" },
    link(pastHref(run.run, point), "The run then"),
    may("run") &&
      button(editable(one) ? "Fork with another answer" : "Fork here", {
        small: true,
        run: () => openFork(ctx, run, point),
      }),
  );
}

function finishedCard(finished) {
  return h(
    "div",
    { class: "card" },
    h("h3", null, finished.interrupted ? "Interrupted" : "Result"),
    plain(asText(finished.result), { label: "Result" }),
    h("p", { class: "hint" }, `${moment(finished.at_ms)} · ${count(finished.fuel_used)} fuel`),
  );
}
