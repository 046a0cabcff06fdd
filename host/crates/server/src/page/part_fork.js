// The form of a fork: first what it would share and repeat, as the server plans it, then what is changed in it.
//
// Nothing is made before the form is sent. An answer that is edited goes to the server as JSON; which one, and what the
// server refuses, stands under its field.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { cost, instant, oneLine, plural, short } from "./format.js";
import { editable, effectWords } from "./forks.js";
import { besideHref, entryOf } from "./points.js";
import { may } from "./session.js";
import { announce, area, button, check, chip, dialog, facts, failed, field, form, input, loading, mono } from "./ui.js";

/** Pieces of shared work that are listed. */
const SHARED_MAX = 20;

/** The forms of a point. */
const FORMS = "event:N, entry:KEY:N, step:N, feature:ID, commit:HEX or time:2026-11-22T01:00:00Z";

/** Characters of the call whose answer is edited. */
const SUMMARY_CHARS = 80;

/** Opens the form for a point of a run. */
export function openFork(ctx, run, point) {
  const stop = new AbortController();
  const signal = AbortSignal.any([ctx.signal, stop.signal]);
  const box = h("div", { class: "stack" });
  dialog(
    "Fork here",
    (close) => {
      fill(box, forkForm(run, point, signal, close));
      return box;
    },
    { wide: true },
  );
  box.closest("dialog").addEventListener("close", () => stop.abort());

  function forkForm(of, at, until, close) {
    const plan = h("div", { class: "stack" }, loading());
    const answer = new Answer(of, until);
    const own = {
      at: input({ name: "at", class: "code", required: true, prop: { value: at } }),
      message: area("", { name: "message", rows: "3" }),
      model: input({ name: "model", class: "code" }),
      branch: input({ name: "branch", class: "code" }),
      plugins: input({ name: "plugins", class: "code" }),
      repeat: check("Repeat what the run did after the point without asking a person", false),
    };
    const request = () => bodyOf(own, answer);
    const tell = async () => {
      try {
        const told = await api.fork(of.run, { ...request(), dry_run: true }, until);
        if (!until.aborted) fill(plan, drawPlan(told.plan));
      } catch (error) {
        if (!until.aborted) fill(plan, failed(error, tell));
      }
    };
    const changed = () => void tell();
    for (const one of [own.message, own.model, own.branch, own.plugins]) one.addEventListener("change", changed);
    answer.onChange = changed;
    own.at.addEventListener("change", () => void answer.look(own.at.value.trim()).then(tell));
    answer.look(at);
    tell();
    return [
      plan,
      form(
        "Fork",
        [
          field("Point", own.at, { name: "at", hint: FORMS }),
          answer.place,
          field("Word to the agents", own.message, {
            name: "message",
            hint: "Those at work at the point read it at their next step.",
          }),
          h(
            "div",
            { class: "form-row" },
            field("Model", own.model, { name: "model", hint: "It answers in the place of all others." }),
            field("Branch", own.branch, { name: "branch", hint: "Empty: a name is found." }),
            field("Plugins as installed now", own.plugins, { name: "plugins", hint: "Names, with commas between." }),
          ),
          may("approve") && own.repeat.element,
        ],
        {
          action: "Make the fork",
          cancel: close,
          submit: async () => {
            const made = await api.fork(of.run, request(), until);
            fill(box, drawMade(of, made, close));
            box.querySelector("a")?.focus();
            announce("The fork is made");
          },
        },
      ),
    ];
  }
}

/** The request that the fields make; throws an error of the field at fault. */
function bodyOf(own, answer) {
  const text = (control) => control.value.trim() || null;
  return {
    at: own.at.value.trim(),
    answer: answer.read(),
    message: text(own.message),
    model: text(own.model),
    branch: text(own.branch),
    plugins: own.plugins.value.split(/[\s,]+/).filter(Boolean),
    repeat_effects: own.repeat.box.checked,
    dry_run: false,
  };
}

/** The recorded answer at the point, to be edited, where the point has one. */
class Answer {
  onChange = () => {};
  place = h("div");
  #control = null;
  #known = null;

  constructor(run, signal) {
    this.run = run;
    this.signal = signal;
  }

  async look(point) {
    this.#control = null;
    this.#known = null;
    fill(this.place);
    const named = entryOf(point);
    if (!named) return;
    try {
      const entry = await api.entry(this.run.run, named.key, named.number, this.signal);
      if (!this.signal.aborted && entry) this.#draw(entry);
    } catch {
      // The plan says what is wrong with the point.
    }
  }

  #draw(entry) {
    this.#known = editable(entry);
    if (!this.#known)
      return void fill(
        this.place,
        h("p", { class: "hint" }, `The answer of entry ${entry.number}, ${entry.name}, cannot be edited.`),
      );
    this.#control = area(this.#known.text, { name: "answer", rows: "8", class: "code", spellcheck: "false" });
    this.#control.addEventListener("change", () => this.onChange());
    fill(
      this.place,
      field(`Answer of entry ${entry.number}: ${oneLine(entry.summary, SUMMARY_CHARS)}`, this.#control, {
        name: "answer",
        hint: `${this.#known.hint} Left as it is, it is answered as before.`,
      }),
    );
  }

  /** The JSON to send; null where it is as recorded. */
  read() {
    if (!this.#control || this.#control.value === this.#known.text) return null;
    return this.#known.read(this.#control.value);
  }
}

/** What the server plans. */
export function drawPlan(plan) {
  const usage = plan.inherited_usage.usage;
  const tokens = (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
  return h(
    "div",
    { class: "stack fork-plan" },
    facts([
      ["Point", mono(plan.at)],
      ["Time", instant(plan.at_ms)],
      ["Features that pass", `${plan.passing.done} of ${plan.passing.of}`],
      ["Branch", plan.branch && mono(plan.branch)],
      ["From commit", plan.commit && mono(plan.commit.slice(0, 10))],
      ["Inherited, not paid again", `${cost(usage)}, ${short(tokens)} tokens`],
      ["Model of all", plan.model],
    ]),
    part(
      "Shared",
      plan.shared.length === 0
        ? h("p", { class: "muted" }, "No work was under way at the point.")
        : list([
            ...plan.shared
              .slice(0, SHARED_MAX)
              .map((one) => [
                mono(one.key),
                `: ${plural(one.entries, "answer")} from the journal `,
                one.edited && chip("the last one is yours", "wait"),
              ]),
            ...rest(plan.shared.length - SHARED_MAX, "more pieces of work"),
          ]),
    ),
    part(
      "What the run did after the point, which no fork undoes",
      plan.later_effects.length === 0
        ? h("p", { class: "muted" }, "It had no effects after that point.")
        : list([
            ...plan.later_effects.map((one) => [
              `${one.count} `,
              mono(one.call),
              " ",
              chip(effectWords(one.effect), one.effect === "acts" ? "wait" : ""),
            ]),
            ...rest(plan.later_effects_omitted, "more"),
          ]),
    ),
    plan.replaced_plugins.length > 0 &&
      part("Plugins as they are installed now", list(plan.replaced_plugins.map((one) => [mono(one)]))),
    plan.notes.length > 0 && part("Notes", list(plan.notes)),
  );
}

const part = (title, ...children) => h("div", null, h("h3", null, title), children);
const rest = (number, what) => (number > 0 ? [[`and ${number} ${what}`]] : []);
const list = (rows) =>
  h(
    "ul",
    { class: "dots" },
    rows.map((row) => h("li", null, row)),
  );

function drawMade(run, made, close) {
  const to = (href, text) => h("a", { href, on: { click: () => close() } }, text);
  return h(
    "div",
    { class: "stack" },
    h(
      "p",
      { class: "fork-made" },
      "Forked as ",
      to(`#/runs/${made.run}`, made.run),
      ". It is paused: resume it to have it go on.",
    ),
    h(
      "div",
      { class: "actions" },
      to(besideHref(run.run, made.run), "Compare both"),
      button("Resume it", {
        small: true,
        kind: "main",
        sign: "run",
        run: async () => {
          await api.order(made.run, "resume", { retry_failing: false, sessions: null });
          close();
          location.hash = `#/runs/${made.run}`;
        },
      }),
    ),
  );
}
