// The transcript of an agent: its conversations message by message, and its other calls.
//
// All of it was written by models and tools, and is text. Long conversations are shown in parts.

import { add, h } from "./dom.js";
import { count, plural } from "./format.js";
import { messageOf, whoSays } from "./trajectories.js";
import { button, chip, empty, fold, link, mono, muted, plain, section, table } from "./ui.js";

/** Messages of a conversation that are shown at once. */
const SHOWN = 60;

/** Lines of a text beyond which it is folded. */
const LINES_OPEN = 40;

/** Draws the conversations, and why they may lack something. */
export function transcript(one) {
  const many = one.conversations.length;
  return section(
    "Transcript",
    { id: "s-transcript", count: many > 1 ? plural(many, "conversation") : null },
    one.incomplete && h("p", { class: "why" }, `Not whole: ${one.incomplete}`),
    many === 0 && empty("It asked no model, so there are no messages."),
    one.conversations.map((messages, at) => conversation(messages, at + 1, many)),
  );
}

function conversation(messages, number, many) {
  const list = h("ol", { class: "messages", "aria-label": `Messages of conversation ${number}` });
  const foot = h("div");
  const show = (from) => {
    const next = messages.slice(from, from + SHOWN);
    add(
      list,
      next.map((message, at) => drawMessage(messageOf(message), from + at + 1, number)),
    );
    const rest = messages.length - from - next.length;
    if (rest <= 0) return foot.remove();
    const more = button(`Show more of ${count(rest)}`, {
      small: true,
      run: () => {
        more.remove();
        show(from + next.length);
      },
    });
    add(foot, more);
  };
  show(0);
  return h("div", { class: "stack-small" }, many > 1 && h("h3", null, `Conversation ${number}`), list, foot);
}

function drawMessage(message, number, conversation) {
  const label = `Message ${number} of conversation ${conversation}`;
  return h(
    "li",
    { class: ["message", `is-${message.role.replace(/[^a-z]/g, "")}`] },
    h(
      "p",
      { class: "message-head" },
      h("b", null, whoSays(message.role)),
      muted(`${number}`),
      message.answers && muted(`answers ${message.answers}`),
    ),
    message.thoughts && fold("Thoughts", () => plain(message.thoughts, { label: `Thoughts, ${label}` })),
    message.text && textOf(message.text, label),
    message.calls.map((call, at) =>
      h(
        "div",
        { class: "message-call" },
        h("p", null, "asks for ", mono(call.name)),
        call.arguments && plain(call.arguments, { code: true, label: `Arguments ${at + 1}, ${label}` }),
      ),
    ),
  );
}

function textOf(text, label) {
  const lines = text.split("\n").length;
  return lines <= LINES_OPEN
    ? plain(text, { label })
    : fold(`${count(lines)} lines, the first: ${text.slice(0, 80).split("\n")[0]}`, () => plain(text, { label }));
}

/** Draws the calls beside those of models. */
export function calls(one) {
  return section(
    "Calls",
    { id: "s-calls", count: one.steps.length },
    one.steps.length === 0
      ? empty("It called nothing but its model.")
      : table("Calls", columnsOf(one), one.steps, { rowKey: (step) => step.entry }),
  );
}

const columnsOf = (one) => [
  {
    name: "Entry",
    cell: (step) =>
      link(`#/runs/${encodeURIComponent(one.run)}/journal?i=${encodeURIComponent(one.id)}`, String(step.entry)),
  },
  { name: "Call", cell: (step) => mono(step.name) },
  { name: "What", wide: true, cell: (step) => step.summary },
  { name: "Answer", cell: (step) => (step.failed ? chip("failed", "bad") : muted("ok")) },
];
