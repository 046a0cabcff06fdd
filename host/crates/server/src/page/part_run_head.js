// The head of a run: what it is about, how it stands, what it came to, and the orders that it can be given.
//
// Beside the live view the head is short, so that what one looks for is not below it. Orders are carried out by the
// server, which may refuse them.

import * as api from "./api.js";
import { h } from "./dom.js";
import { asText, costNote, money, reason, short } from "./format.js";
import { errorBlock } from "./part_error.js";
import { origin } from "./part_forks.js";
import { ENDED, activity } from "./part_runs.js";
import { may } from "./session.js";
import {
  area,
  button,
  check,
  dialog,
  field,
  form,
  input,
  link,
  mono,
  plain,
  progress,
  select,
  status,
  tabs,
  toast,
  when,
} from "./ui.js";

/** The parts of a run: the name in the address, and in words. */
export const TABS = [
  ["live", "Live"],
  ["features", "Features"],
  ["time", "Time axis"],
  ["journal", "Journal"],
  ["decisions", "Decisions"],
  ["memory", "Memory"],
  ["costs", "Costs"],
  ["result", "Commits and report"],
  ["compare", "Compare"],
  ["past", "Past"],
  ["plugins", "Plugins"],
];

/** The keys of the parts, in their order. */
export const TAB_KEYS = [..."1234567890", "u"];

/** The address of a part. */
export const tabHref = (id, name) => (name === "live" ? `#/runs/${id}` : `#/runs/${id}/${name}`);

/** Draws it; `newest()` gives the run as it is when a button is pressed. */
export function runHead(run, part, newest, refresh) {
  const isShort = part !== "live";
  const { usage } = run;
  const tokens = (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
  const cap = run.cost_microdollars_max;
  return [
    h(
      "p",
      { class: "crumbs" },
      link("#/runs", "Runs"),
      run.kind !== "ask" && [" / ", link(`#/projects/${encodeURIComponent(run.project)}`, run.project)],
      isShort && [" / ", mono(run.run)],
    ),
    h(
      "div",
      { class: "view-head" },
      h(
        "div",
        null,
        h("h1", null, cutTitle(run.goal || run.title || run.project)),
        !isShort && h("p", { class: "hint" }, mono(run.run), run.branch && [" · ", mono(run.branch)]),
        origin(run),
      ),
      may("run") && orders(run, newest, refresh),
    ),
    h(
      "p",
      { class: "head-line" },
      status(run.status),
      activity(run),
      run.kind !== "ask" || run.passing.of > 0
        ? progress(run.passing.done, run.passing.of, "Features that pass")
        : null,
      !isShort && h("span", { class: "muted" }, "started ", when(run.created_ms)),
      tokens > 0 && h("span", { class: "muted" }, `${short(tokens)} tokens`),
      costNote(usage) && h("span", { class: "muted" }, costNote(usage), cap && ` of ${money(cap)}`),
      run.next_wake_ms && h("span", { class: "tone-wait" }, "next attempt ", when(run.next_wake_ms)),
      typeof run.archived_ms === "number" && h("span", { class: "muted" }, "archived ", when(run.archived_ms)),
    ),
    run.reason &&
      !isShort &&
      !["working", "planning"].includes(run.status) &&
      (run.status === "failed"
        ? errorBlock(run.reason, { name: "run" })
        : h("p", { class: "why" }, reason(run.reason))),
    run.answer &&
      !isShort &&
      h(
        "div",
        { class: "card answer" },
        h("h2", null, "Answer"),
        plain(asText(run.answer.answer)),
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

/** Pauses a run that is worked on, and has another one go on. */
export async function pauseOrResume(run, refresh) {
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

/** Asks for a correction of the work. */
export function steer(run) {
  dialog("Correct the work", (close) => {
    const text = area("", { name: "text", rows: "4", maxlength: "8000" });
    const busyOnes = run.features.filter((one) => one.status === "in_progress");
    const task = select([["", "all work"], ...busyOnes.map((one) => [one.id, `${one.id}: ${one.title}`])], "", {
      name: "task",
    });
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
