// Decisions of a project with their reasons and outcomes; a person can record an outcome and its lesson.

import * as api from "./api.js";
import { fill, h, keyed } from "./dom.js";
import { live } from "./live.js";
import { may } from "./session.js";
import {
  area,
  button,
  chip,
  dialog,
  empty,
  field,
  form,
  input,
  link,
  mono,
  plain,
  redraw,
  select,
  status,
  toast,
  when,
} from "./ui.js";

const OUTCOMES = [
  ["open", "outcome open"],
  ["success", "right"],
  ["partial", "right in part"],
  ["failure", "wrong"],
  ["reverted", "taken back"],
];

export async function decisions(ctx, place, run) {
  let question = "";
  const search = input({
    type: "search",
    placeholder: "Find those that bear on a question",
    "aria-label": "Question",
    data: { search: "" },
  });
  const list = h("div", { class: "stack" });
  const none = h("div");
  const ask = h("form", { class: "toolbar", role: "search" }, search, button("Find", { type: "submit" }));
  fill(place, h("h2", { class: "unseen" }, "Decisions"), ask, none, list);
  const { refresh } = await live(ctx, {
    place: list,
    everyMs: 30_000,
    wants: (line) => ["session_complete", "task_done"].includes(line.type),
    load: (signal) => api.decisions(run, question, signal),
    draw: ({ items }) => {
      keyed(list, items, {
        key: (one) => one.id,
        mark: (one) => JSON.stringify(one),
        make: (one) => card(run, one, question, () => refresh()),
      });
      redraw(
        none,
        items.length === 0 && empty(question ? "No decision bears on this." : "No decision is recorded yet."),
      );
    },
  });
  ask.addEventListener("submit", (event) => {
    event.preventDefault();
    question = search.value.trim();
    refresh();
  });
}

function card(run, one, question, refresh) {
  return h(
    "article",
    { class: "card decision" },
    h(
      "div",
      { class: "card-head" },
      h("h3", null, one.decision),
      status(one.outcome, OUTCOMES.find(([name]) => name === one.outcome)?.[1] ?? one.outcome),
    ),
    one.context && plain(one.context),
    one.reasoning && h("div", null, h("h4", null, "Why"), plain(one.reasoning)),
    one.lesson && h("div", null, h("h4", null, "Learnt"), plain(one.lesson)),
    h(
      "p",
      { class: "hint" },
      one.by,
      one.feature && ` · ${one.feature}`,
      " · ",
      link(`#/runs/${one.run}`, mono(one.run)),
      " · ",
      when(one.at_ms),
      one.score !== null && one.score !== undefined && ` · score ${one.score}`,
      question && one.match_reason && ` · chosen: ${one.match_reason}`,
    ),
    one.tags?.length > 0 &&
      h(
        "div",
        { class: "chips" },
        one.tags.map((tag) => chip(tag)),
      ),
    may("run") &&
      h(
        "div",
        { class: "actions" },
        button("Record the outcome", { small: true, focus: `judge-${one.id}`, run: () => judge(run, one, refresh) }),
      ),
  );
}

function judge(run, one, refresh) {
  dialog("Outcome", (close) => {
    const outcome = select(OUTCOMES, one.outcome, { name: "outcome" });
    const score = input({
      type: "number",
      min: "-1",
      max: "1",
      step: "0.1",
      name: "score",
      prop: { value: one.score === null || one.score === undefined ? "" : String(one.score) },
    });
    const lesson = area(one.lesson ?? "", { name: "lesson" });
    return form(
      "Outcome",
      [
        field("It was", outcome, { name: "outcome" }),
        field("Score, -1 to 1", score, { name: "score" }),
        field("Lesson", lesson, { name: "lesson" }),
      ],
      {
        action: "Save",
        cancel: close,
        submit: async () => {
          await api.judge(run, one.id, {
            outcome: outcome.value,
            score: score.value === "" ? null : Number(score.value),
            lesson: lesson.value.trim() || null,
          });
          close();
          toast("Kept.");
          await refresh();
        },
      },
    );
  });
}
