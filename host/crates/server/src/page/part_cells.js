// The steps of a graph as cells: source, what it printed, its last value, what went wrong and where; edited and run in place.
//
// While somebody edits a cell, news about it do not take the text away. A source that does not parse is kept by the server
// and said to be broken; nothing is run of it.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { bytes, count, duration } from "./format.js";
import { failureText, graphHref, hasFailed, lookOf, placeOf, runWords, stateWords } from "./graphs.js";
import { KEYS_HINT, codeArea } from "./part_code_editor.js";
import { errorBlock } from "./part_error.js";
import { button, check, confirm, facts, field, form, link, mono, muted, plain, status, toast } from "./ui.js";

/** What is drawn of a cell: a cell whose text stays is left as it is. */
export const cellMark = (graph, step, { chosen, found, mayChange }) =>
  JSON.stringify([graph, step, chosen === step.id, found ?? null, mayChange]);

/** Draws a cell. `own`: `{graph, sources, chosen, found, mayChange, run, note, refresh, diagnose}`. */
export function cell(step, own) {
  const editing = h("div");
  const source = plain(step.source || "(empty)", { code: true, exact: true, label: `Source of ${step.id}` });
  const element = h(
    "article",
    {
      class: ["card", "cell", `is-${lookOf(step.state)}`, own.chosen === step.id && "is-chosen"],
      "aria-label": `Step ${step.id}`,
    },
    h(
      "div",
      { class: "card-head" },
      h("h3", null, link(graphHref(own.graph, step.id), step.id)),
      status(lookOf(step.state), stateWords(step.state)),
    ),
    needs(step, own.graph),
    source,
    editing,
    // What a run prints as it comes, in the place of what the last one came to.
    h("div", { class: "cell-live" }),
    h("div", { class: "cell-result" }, result(step, own)),
    own.found && diagnosis(own.found, own.graph),
    costs(step),
    actions(step, own, () => edit(element, editing, source, step, own)),
  );
  return element;
}

function needs(step, graph) {
  const known = [
    ["Needs", step.needs.map((id, at) => [at > 0 && ", ", link(graphHref(graph, id), id)])],
    ["Reads", step.reads.join(", ")],
    ["Writes", step.writes.join(", ")],
    ["Files", step.files.join(", ")],
    ["Not kept", step.unstorable.join(", ")],
  ];
  const shown = known.filter(([, value]) => value.length > 0);
  return shown.length > 0 && facts(shown);
}

/** What its last run printed and ended with, or what went wrong. */
function result(step, own) {
  const part = (title, inner) => h("div", null, h("h4", null, title), inner);
  return [
    step.failure && failure(step, own),
    step.stdout !== "" &&
      part("Printed", plain(step.stdout, { code: true, exact: true, label: `Output of ${step.id}` })),
    typeof step.value === "string" &&
      part("Value", plain(step.value, { code: true, exact: true, label: `Value of ${step.id}` })),
    step.stderr !== "" &&
      part("Printed as errors", plain(step.stderr, { code: true, exact: true, label: `Standard error of ${step.id}` })),
  ];
}

function failure(step, own) {
  return h(
    "div",
    { class: "stack-small" },
    errorBlock(failureText(step.failure), { label: "Error", name: `step ${step.id}` }),
    place(placeOf(step, own.sources), own.graph),
  );
}

/** Where it failed: the step, the line and its text. */
function place(frame, graph) {
  if (!frame) return null;
  return h(
    "p",
    { class: "cell-place" },
    `at line ${frame.line} of `,
    link(graphHref(graph, frame.step), frame.step),
    frame.function && [" in ", mono(frame.function)],
    frame.source && h("code", { class: "sub" }, frame.source),
  );
}

/** What the diagnosis found: the innermost place, the values around it, and the step that is likely at fault. */
function diagnosis(found, graph) {
  return h(
    "div",
    { class: "why stack-small" },
    h("h4", null, "Diagnosis"),
    h("p", null, "Likely at fault: ", link(graphHref(graph, found.cause), found.cause), `; ${found.reason}`),
    place(found.frame, graph),
    found.values.length > 0 &&
      h(
        "ul",
        { class: "dots" },
        found.values.map((one) =>
          h(
            "li",
            null,
            mono(`${one.name} = ${one.text}`),
            one.producer && [" from ", link(graphHref(graph, one.producer), one.producer)],
          ),
        ),
      ),
  );
}

function costs(step) {
  if (step.duration_ms === 0 && step.fuel_used === 0) return null;
  const parts = [duration(step.duration_ms), `${count(step.fuel_used)} fuel`, bytes(step.memory_bytes_peak)];
  return h("p", { class: "hint" }, `Last run: ${parts.join(" · ")}`);
}

function actions(step, own, startEdit) {
  if (!own.mayChange) return null;
  const one = (label, run, more = {}) =>
    button(label, { small: true, focus: `${label}-${step.id}`, "aria-label": `${label}: ${step.id}`, run, ...more });
  const isUnknown = step.state === "unknown";
  return h(
    "div",
    { class: "actions" },
    isUnknown
      ? one("Run again", () => askAgain(step, own))
      : one("Run", () => own.run({ from: step.id }), { sign: "run" }),
    one("Edit", startEdit),
    hasFailed(step) && one("Diagnose", () => own.diagnose(step.id)),
    one("Remove", () => askRemove(step, own), { kind: "danger" }),
  );
}

const askAgain = (step, own) =>
  confirm(
    `Run ${step.id} again`,
    "It acts on files or hosts and was interrupted: its effects may have happened already.",
    "Run it again",
    () => own.run({ again: step.id }),
  );

const askRemove = (step, own) =>
  confirm(`Remove ${step.id}`, "Steps that read its values become stale.", "Remove", async () => {
    await api.removeStep(own.graph, step.id);
    await own.refresh();
  });

/** Puts the editor in the place of the source. */
function edit(element, place, source, step, own) {
  if (element.hasAttribute("data-held")) return;
  element.setAttribute("data-held", "");
  source.hidden = true;
  const code = codeArea(step.source, { name: "source", rows: rowsFor(step.source), run: () => asked.requestSubmit() });
  const then = check("Run it and the stale steps then", true, { name: "run" });
  const end = () => {
    element.removeAttribute("data-held");
    source.hidden = false;
    fill(place);
  };
  const asked = form(
    `Source of ${step.id}`,
    [field("Source", code, { name: "source", hint: KEYS_HINT }), then.element],
    {
      action: "Save",
      cancel: end,
      submit: async () => {
        const { changes, run } = await api.changeStep(own.graph, step.id, {
          source: code.value,
          run: then.box.checked,
        });
        end();
        if (run) own.note(run);
        toast(changed(step.id, changes, run), changes.failure || run?.failed.length > 0 ? "bad" : "good");
        await own.refresh();
      },
    },
  );
  fill(place, asked);
  code.focus();
}

const rowsFor = (source) => String(Math.min(24, Math.max(4, source.split("\n").length + 1)));

/** What a change came to, in a line. */
export function changed(id, changes, run) {
  if (changes.failure) return `${id} is kept and does not parse: ${changes.failure.message}`;
  if (run) return `${id} is changed: ${runWords(run)}.`;
  return changes.stale.length > 0
    ? `Stale now: ${changes.stale.join(", ")}.`
    : `${id} is changed, and nothing is stale.`;
}

/** A note for cells that nobody changes here. */
export const onlyItsAgent = () => muted("This graph belongs to an agent, which alone changes it.");
