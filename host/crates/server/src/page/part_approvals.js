// One question to a person about a call of a tool, or of an agent, and its answer in place.
//
// The call of the agent is shown as it is, never as HTML. A correction that would be read as a yes or a no is refused,
// since there are buttons for both. The answer holds what the person pressed and nothing more.

import * as api from "./api.js";
import { add, fill, h } from "./dom.js";
import { oneLine, visible, words } from "./format.js";
import { icon } from "./icons.js";
import { diffOf } from "./part_diff.js";
import { may } from "./session.js";
import {
  announce,
  area,
  button,
  chip,
  facts,
  field,
  form,
  input,
  link,
  mono,
  plain,
  status,
  toast,
  when,
} from "./ui.js";

/** Words that the server reads as a decision and not as a correction. */
const DECISIONS = /^(y|yes|n|no|a|allow)$|^n\s/i;

/** Whether a text can be sent as a correction. */
export const isCorrection = (text) => text.trim() !== "" && !DECISIONS.test(text.trim());

const EFFECTS = {
  "read-only": "changes nothing",
  idempotent: "acts, once however often it is sent",
  verifiable: "changes files; can be verified",
  acts: "acts, and cannot be taken back",
};

/** The card of one approval. `done()` is called when it was answered. */
export function approvalCard(approval, { done, withRun = true } = {}) {
  const isOpen = approval.status === "open";
  const name = `${approval.tool}.${approval.function}`;
  const isQuestion = approval.kind === "question";
  const isChange = approval.kind === "change";
  const wants = isChange
    ? "A feature changes protected files"
    : [approval.agent, " wants to call ", h("code", null, name)];
  const title = isQuestion ? [approval.agent, " asks"] : wants;
  const card = h(
    "article",
    {
      class: ["approval", isOpen && "is-open"],
      "aria-label": isQuestion ? `Question of ${approval.agent}` : `Call of ${name}`,
    },
    h(
      "div",
      { class: "approval-head" },
      icon("approval"),
      h("h2", null, title),
      h("span", { class: "muted" }, when(approval.at_ms)),
    ),
  );
  add(card, isQuestion ? plain(questionOf(approval.arguments)) : isChange ? changeOf(approval) : argumentsOf(approval));
  add(
    card,
    facts([
      [
        "Effect",
        isQuestion
          ? null
          : [
              EFFECTS[approval.effect] ?? words(approval.effect),
              approval.runs_commands && [" ", chip("runs commands", "wait")],
            ],
      ],
      ["Untrusted sources", approval.untrusted_sources?.length ? approval.untrusted_sources.join(", ") : null],
      ["Plugin", approval.plugin],
      ["Run", withRun ? link(`#/runs/${approval.run}`, mono(approval.run)) : null],
      ["Work", oneLine(String(approval.invocation).split("/").slice(1).join("/"), 80)],
      ["Approval", mono(approval.id)],
    ]),
  );
  if (!isOpen)
    add(
      card,
      h(
        "p",
        null,
        status(approval.status),
        " ",
        h("span", { class: "muted" }, approval.status_text, approval.decided_ms && [" · ", when(approval.decided_ms)]),
      ),
    );
  else if (may("approve")) add(card, isQuestion ? reply(approval, done) : decide(approval, done));
  else add(card, h("p", { class: "hint" }, "To answer, log in with a token that has the scope approve."));
  return card;
}

const argumentsOf = (approval) =>
  plain(approval.arguments, { code: true, label: `Arguments of the call, ${approval.id}` });

/** Why each file of a change is protected, and how they differ, out of the arguments of its approval. */
function changeOf(approval) {
  try {
    const { files, patch } = JSON.parse(approval.arguments);
    if (Array.isArray(files) && typeof patch === "string") {
      const reasons = files.map((line) => h("li", null, visible(line)));
      return h("div", { class: "stack-small" }, h("ul", { class: "dots" }, reasons), diffOf(patch, approval.id));
    }
  } catch {
    // It is shown as it is.
  }
  return plain(approval.arguments, { code: true, label: `The change, ${approval.id}` });
}

/** What an agent asks, out of the arguments of its call. */
function questionOf(text) {
  try {
    const read = JSON.parse(text);
    return typeof read?.question === "string" ? read.question : text;
  } catch {
    return text;
  }
}

function decide(approval, done) {
  const say = (text, words) => () => send(approval, text, words, done);
  const more = h("div");
  const ask = (label, action, make, hint) => () => {
    const text = input({ name: "text", maxlength: "4000" });
    fill(
      more,
      form(label, [field(label, text, { name: "text", hint })], {
        action,
        cancel: () => fill(more),
        submit: async () => {
          await send(approval, make(text.value), action, done);
        },
      }),
    );
    text.focus();
  };
  return h(
    "div",
    { class: "approval-answers" },
    h(
      "div",
      { class: "actions" },
      button("Allow once", { kind: "main", sign: "done", focus: `y-${approval.id}`, run: say("y", "Allowed once") }),
      // Where no rule can be made of the call, the server refuses it.
      approval.can_create_rule &&
        button("Allow for this run", {
          focus: `a-${approval.id}`,
          title: "By a rule for what is like it, until the run ends",
          run: say("a", "Allowed for this run"),
        }),
      button("Deny", { kind: "danger", focus: `n-${approval.id}`, run: say("n", "Denied") }),
      button("Deny with a reason…", {
        kind: "quiet",
        focus: `r-${approval.id}`,
        run: ask(
          "Reason",
          "Deny",
          (text) => (text.trim() ? `n ${text.trim().replace(/\s+/g, " ")}` : "n"),
          "The agent gets the refusal.",
        ),
      }),
      button("Say what to do instead…", {
        kind: "quiet",
        focus: `i-${approval.id}`,
        run: ask("What to do instead", "Send", correction, "The call is not made; the agent gets this text instead."),
      }),
    ),
    more,
  );
}

function correction(text) {
  if (!isCorrection(text))
    throw Object.assign(
      new Error("That would be read as a decision, or as nothing. Use the buttons, or write a sentence."),
      { field: "text" },
    );
  return text.trim();
}

function reply(approval, done) {
  const text = area("", { name: "text", rows: "2", maxlength: "8000", id: `reply-${approval.id}` });
  return form("Reply", [field("Your reply", text, { name: "text", hint: "The agent gets it as it is." })], {
    action: "Reply",
    submit: () => send(approval, text.value, "Replied", done),
  });
}

async function send(approval, text, said, done) {
  const answered = await api.answerApproval(approval.id, text);
  let more = answered.rule ? "A rule allows what is like it for the rest of the run." : "";
  if (answered.active === false && may("run")) more = `${more} ${await goOn(approval.run)}`.trim();
  announce(said);
  toast(`${said}. ${more}`.trim());
  await done?.();
}

/** A run that waits with nothing but this goes on at once. */
async function goOn(run) {
  try {
    const open = await api.approvals({ open: true, run, limit: 1 });
    if (open.total > 0) return "The run waits for further answers.";
    await api.order(run, "resume", { retry_failing: false, sessions: null });
    return "The run goes on.";
  } catch (error) {
    return error.status === 409 ? "" : `The run does not go on by itself: ${error.message}`;
  }
}
