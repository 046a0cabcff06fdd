// One run: how it stands, what it asks, and its parts: live, features, journal, decisions, memory, costs, commits.
//
// The head is kept true by the run's own events; orders (steer, pause, resume, give up) are asked for here and done by
// the server, which may refuse them.

import * as api from "./api.js";
import { fill, h, keyed } from "./dom.js";
import { costNote, money, plural, reason, short, words } from "./format.js";
import * as keys from "./keys.js";
import { live } from "./live.js";
import { approvalCard } from "./part_approvals.js";
import { atWork } from "./part_work.js";
import { commits } from "./part_commits.js";
import { decisions } from "./part_decisions.js";
import { errorBlock } from "./part_error.js";
import { features } from "./part_features.js";
import { journal } from "./part_journal.js";
import { ledger } from "./part_ledger.js";
import { memory } from "./part_memory.js";
import { drawPlan } from "./part_plan.js";
import { proposals } from "./part_proposals.js";
import { timeline } from "./part_timeline.js";
import { may } from "./session.js";
import {
  area,
  button,
  check,
  confirm,
  dialog,
  field,
  form,
  input,
  link,
  mono,
  plain,
  progress,
  redraw,
  select,
  status,
  tabs,
  toast,
  when,
} from "./ui.js";

/** Where a run is over. */
const ENDED = new Set(["completed", "incomplete", "failed", "abandoned"]);

export async function show(ctx) {
  const id = ctx.path[1];
  const part = ctx.path[2] ?? "live";
  const head = h("div", { class: "run-head" });
  const asks = h("div", { class: "stack" });
  const body = h("div", { class: "run-body" });
  fill(ctx.box, head, asks, body);
  ctx.title(id);
  let take = null;
  let now = null;
  const shown = await live(ctx, {
    place: head,
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
      ctx.title(`${run.goal ? "Ask" : run.project} · ${words(run.status)}`);
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
      if (take === null) take = (PARTS[part] ?? PARTS.live)(ctx, body, run) ?? (() => {});
      else take(run);
    },
  });
  keys.ofView([
    ["s", "Correct the work", () => now && may("run") && steer(now)],
    ["p", "Pause, or go on", () => now && may("run") && pauseOrResume(now, () => shown.refresh())],
    ["e", "Show earlier events", () => ctx.earlier?.()],
    ...TABS.map(([name, text], index) => [String(index + 1), text, () => ctx.go(tabHref(id, name))]),
  ]);
}

const TABS = [
  ["live", "Live"],
  ["features", "Features"],
  ["journal", "Journal"],
  ["decisions", "Decisions"],
  ["memory", "Memory"],
  ["costs", "Costs"],
  ["result", "Commits and report"],
];
const tabHref = (id, name) => (name === "live" ? `#/runs/${id}` : `#/runs/${id}/${name}`);

const PARTS = {
  live: (ctx, body, run) => {
    const plan = h("div", { class: "plan-place" });
    const side = h("div", { class: "run-side" });
    const main = h("div", { class: "section" });
    const own = h("div");
    fill(body, plan, h("div", { class: "run-columns" }, main, side));
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
  journal: (ctx, body, run) => void journal(ctx, body, run),
  decisions: (ctx, body, run) => void decisions(ctx, body, run.run),
  memory: (ctx, body, run) => void memory(ctx, body, run.run),
  costs: (ctx, body, run) => ledger(body, run),
  result: (ctx, body, run) => void commits(ctx, body, run),
};

function runHead(run, part, newest, refresh) {
  const usage = run.ledger?.total?.usage ?? run.resource_usage?.usage ?? {};
  const tokens = (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
  const cap = run.cost_microdollars_max;
  return [
    h(
      "p",
      { class: "crumbs" },
      link("#/runs", "Runs"),
      run.kind !== "ask" && [" / ", link(`#/projects/${encodeURIComponent(run.project)}`, run.project)],
    ),
    h(
      "div",
      { class: "view-head" },
      h(
        "div",
        null,
        h("h1", null, run.goal ? cutTitle(run.goal) : run.project),
        h("p", { class: "hint" }, mono(run.run), run.branch && [" · ", mono(run.branch)]),
      ),
      may("run") && orders(run, newest, refresh),
    ),
    h(
      "p",
      { class: "head-line" },
      status(run.status),
      run.active && run.status !== "working" && run.status !== "planning" && h("span", { class: "muted" }, "at work"),
      run.kind !== "ask" || run.passing.of > 0
        ? progress(run.passing.done, run.passing.of, "Features that pass")
        : null,
      h("span", { class: "muted" }, "begun ", when(run.created_ms)),
      tokens > 0 && h("span", { class: "muted" }, `${short(tokens)} tokens`),
      costNote(usage) && h("span", { class: "muted" }, costNote(usage), cap && ` of ${money(cap)}`),
      run.next_wake_ms && h("span", { class: "tone-wait" }, "next attempt ", when(run.next_wake_ms)),
    ),
    run.reason &&
      !["working", "planning"].includes(run.status) &&
      (run.status === "failed" ? errorBlock(run.reason, { name: "run" }) : h("p", { class: "why" }, reason(run.reason))),
    run.answer &&
      h(
        "div",
        { class: "card answer" },
        h("h2", null, "Answer"),
        plain(run.answer.answer, { code: !isWords(run.answer.answer) }),
        answerNotes(run.answer),
      ),
    tabs(
      "Parts of the run",
      TABS.map(([name, text]) => ({
        name,
        text,
        href: tabHref(run.run, name),
        count: name === "features" ? run.features.length : 0,
      })),
      part,
    ),
  ];
}

const isWords = (text) => !/^\s*[[{]/.test(text);
const cutTitle = (text) => (text.length > 120 ? `${text.slice(0, 120)}…` : text);

function answerNotes(answer) {
  return h(
    "div",
    { class: "stack-small" },
    answer.confidence != null && h("p", { class: "hint" }, `Confidence ${answer.confidence}`),
    answer.conflicts?.length > 0 &&
      h(
        "div",
        null,
        h("h3", null, "Where results contradict each other"),
        h(
          "ul",
          { class: "dots" },
          answer.conflicts.map((one) => h("li", null, one)),
        ),
      ),
    answer.unknowns?.length > 0 &&
      h(
        "div",
        null,
        h("h3", null, "What could not be found out"),
        h(
          "ul",
          { class: "dots" },
          answer.unknowns.map((one) => h("li", null, one)),
        ),
      ),
  );
}

function orders(run, newest, refresh) {
  const canResume = !run.active && run.status !== "completed" && run.status !== "abandoned";
  return h(
    "div",
    { class: "actions" },
    run.active && button("Steer", { sign: "steer", focus: "steer", run: () => steer(newest()) }),
    run.active && button("Pause", { sign: "pause", focus: "pause", run: () => pauseOrResume(run, refresh) }),
    canResume &&
      button(ENDED.has(run.status) ? "Try again" : "Resume", {
        kind: "main",
        sign: "run",
        focus: "resume",
        run: () => (ENDED.has(run.status) ? resumeDialog(run, refresh) : pauseOrResume(run, refresh)),
      }),
    !ENDED.has(run.status) && button("Give up", { kind: "danger", focus: "abandon", run: () => abandon(run, refresh) }),
  );
}

async function pauseOrResume(run, refresh) {
  if (run.active) {
    await api.order(run.run, "pause", {});
    toast("The run pauses; it goes on from its journal later.");
  } else if (!["completed", "abandoned"].includes(run.status)) {
    await api.order(run.run, "resume", { retry_failing: false, sessions: null });
    toast("The run goes on.");
  }
  await refresh();
}

function resumeDialog(run, refresh) {
  dialog("Try again", (close) => {
    const failing = check("Retry failing features", true);
    return form("Try again", [failing.element], {
      action: "Go on",
      cancel: close,
      submit: async () => {
        await api.order(run.run, "resume", { retry_failing: failing.box.checked, sessions: null });
        close();
        await refresh();
      },
    });
  });
}

function steer(run) {
  dialog("Correct the work", (close) => {
    const text = area("", { name: "text", rows: "4", maxlength: "8000" });
    const busyOnes = run.features.filter((one) => one.status === "in_progress");
    const task = select(
      [["", "all work"], ...busyOnes.map((one) => [one.id, `${one.id}: ${one.title}`])],
      "",
      { name: "task" },
    );
    return form(
      "Correct the work",
      [
        field("Correction", text, { name: "text", hint: "The agent gets it at its next step." }),
        field("For", task, { name: "task" }),
      ],
      {
        action: "Send",
        cancel: close,
        submit: async () => {
          await api.order(run.run, "steer", { task: task.value || null, text: text.value });
          close();
          toast("The correction is on its way.");
        },
      },
    );
  });
}

function abandon(run, refresh) {
  dialog("Abandon the run", (close) => {
    const reason = input({ name: "reason" });
    return form(
      "Abandon the run",
      [
        h("p", null, "What passes stays on its branch. An abandoned run does not go on."),
        field("Reason", reason, { name: "reason" }),
      ],
      {
        action: "Give up",
        danger: true,
        cancel: close,
        submit: async () => {
          await api.order(run.run, "abandon", { reason: reason.value });
          close();
          toast("The run is abandoned.");
          await refresh();
        },
      },
    );
  });
}

/** What waits for a person: approvals, and the question about an effect whose outcome nobody knows. */
function drawAsks(place, run, open, part, refresh) {
  if (part !== "live") return drawNotice(place, run, open.total + run.questions.length);
  const items = open.items.map((approval) => ({
    key: approval.id,
    mark: approval.status,
    make: () => approvalCard(approval, { done: refresh, withRun: false }),
  }));
  for (const asked of run.questions) {
    items.push({ key: asked.id, mark: asked.id, make: () => effectCard(run, asked, refresh) });
  }
  keyed(place, items, { key: (one) => one.key, mark: (one) => one.mark, make: (one) => one.make() });
}

/** Elsewhere than in the live view one line says that somebody waits. */
function drawNotice(place, run, total) {
  const text = `${plural(total, "question")} of this run ${total === 1 ? "waits" : "wait"} for an answer`;
  fill(place, total > 0 && h("p", { class: "why tone-wait" }, link(tabHref(run.run, "live"), text)));
}

function effectCard(run, asked, refresh) {
  const answer = area("", { name: "resolution", class: "code", rows: "3" });
  const send = (resolution, text) => async () => {
    await api.order(run.run, "answer", { question: asked.id, text, resolution });
    toast("Answered.");
    await refresh();
  };
  const happened = form(
    "It happened",
    [field("What the tool is to have answered, as JSON", answer, { name: "resolution" })],
    { action: "It happened", submit: () => send({ happened: answer.value }, "it happened")() },
  );
  return h(
    "article",
    { class: "approval is-open", "aria-label": "Question" },
    h("div", { class: "approval-head" }, h("h2", null, "The run waits for you")),
    plain(asked.text),
    plain(asked.answer_command, { code: true }),
    may("run") &&
      h(
        "div",
        { class: "approval-answers" },
        h(
          "div",
          { class: "actions" },
          button("It did not happen: do it", { run: send("did_not_happen", "it did not happen") }),
          button("Skip it", {
            run: () =>
              confirm(
                "Skip it",
                "It is not done, whether it happened or not, and the agent gets an error.",
                "Skip",
                send("skip", "skip it"),
                { danger: false },
              ),
          }),
        ),
        h("details", { class: "fold" }, h("summary", null, "It happened"), happened),
      ),
  );
}
