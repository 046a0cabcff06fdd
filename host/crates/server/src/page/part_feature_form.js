// The form of a feature: its words, its rubric and its checks.
//
// It keeps nothing and sends nothing: whoever opens it is given the whole specification.

import { add, h } from "./dom.js";
import { words } from "./format.js";
import { area, button, field, form, input, select } from "./ui.js";

const CATEGORIES = ["functional", "ui", "performance", "security", "integration", "testing", "documentation"];

/** The form of a feature. `submit(spec)` gets all of it; what is not in the form stays as it was. */
export function editor(feature, { submit, cancel, isNew = false }) {
  const id = input({ name: "id", readonly: !isNew, required: isNew, prop: { value: feature.id }, class: "code" });
  const title = input({ name: "title", prop: { value: feature.title } });
  const instruction = area(feature.instruction, { name: "instruction", rows: "6", required: true });
  const categories =
    CATEGORIES.includes(feature.category) || !feature.category ? CATEGORIES : [feature.category, ...CATEGORIES];
  const category = select(
    categories.map((one) => [one, words(one)]),
    feature.category,
    { name: "category" },
  );
  const priority = input({
    type: "number",
    min: "1",
    max: "10",
    required: true,
    name: "priority",
    prop: { value: String(feature.priority) },
  });
  const depends = input({ name: "depends_on", class: "code", prop: { value: (feature.depends_on ?? []).join(", ") } });
  const criteria = rows("Criteria", "criterion", feature.criteria ?? [], criterionRow);
  const checks = rows("Checks", "check", feature.checks ?? [], checkRow);
  return form(
    isNew ? "New feature" : `Edit ${feature.id}`,
    [
      h(
        "div",
        { class: "form-row" },
        field("Name", id, { name: "id", hint: isNew ? "Letters, digits, - and _." : null }),
        field("Title", title, { name: "title" }),
      ),
      field("Instruction", instruction, { name: "instruction", hint: "The task, for the agent." }),
      h(
        "div",
        { class: "form-row" },
        field("Category", category, { name: "category" }),
        field("Priority, 1 to 10", priority, { name: "priority" }),
        field("Waits for", depends, { name: "depends_on", hint: "Names, with commas between." }),
      ),
      criteria.element,
      checks.element,
    ],
    {
      action: isNew ? "Add" : "Save",
      cancel,
      submit: () =>
        submit({
          id: id.value.trim(),
          title: title.value.trim(),
          instruction: instruction.value,
          category: category.value,
          priority: Number(priority.value),
          agent: feature.agent ?? null,
          criteria: criteria.read(),
          checks: checks.read(),
          depends_on: depends.value.split(/[\s,]+/).filter(Boolean),
        }),
    },
  );
}

/** Lines that one can add to and take from. */
function rows(title, name, values, make) {
  const own = [];
  const list = h("div", { class: "rows" });
  const put = (value) => {
    const made = make(value);
    const line = h(
      "div",
      { class: "rows-line", role: "group", "aria-label": `${name} ${own.length + 1}` },
      made.fields,
      button("Remove", {
        small: true,
        kind: "quiet",
        run: () => {
          own.splice(own.indexOf(made), 1);
          line.remove();
        },
      }),
    );
    own.push(made);
    add(list, line);
    return line;
  };
  values.forEach(put);
  const element = h(
    "fieldset",
    null,
    h("legend", null, title),
    list,
    button(`Add a ${name}`, { small: true, sign: "add", run: () => put({}).querySelector("input, textarea")?.focus() }),
  );
  return { element, read: () => own.map((one) => one.read()) };
}

function criterionRow(value) {
  const id = input({
    class: "code",
    "aria-label": "Name of the criterion",
    placeholder: "name",
    prop: { value: value.id ?? "" },
  });
  const text = input({
    "aria-label": "What must hold",
    placeholder: "what must hold",
    prop: { value: value.text ?? "" },
  });
  const check = input({
    class: "code",
    "aria-label": "Check that decides it, if one does",
    placeholder: "check",
    prop: { value: value.check ?? "" },
  });
  return {
    fields: h("div", { class: "criterion" }, id, text, check),
    read: () => ({ id: id.value.trim(), text: text.value, check: check.value.trim() || null }),
  };
}

function checkRow(value) {
  const name = input({
    class: "code",
    "aria-label": "Name of the check",
    placeholder: "name",
    prop: { value: value.name ?? "" },
  });
  const language = select(
    [
      ["python", "Python, in the sandbox"],
      ["native", "Of longhaul.toml"],
    ],
    value.language ?? "python",
    { "aria-label": "What it runs" },
  );
  const body = area(value.body ?? "", {
    class: "code",
    rows: "3",
    "aria-label": "Source, or the name in longhaul.toml",
  });
  return {
    fields: h("div", { class: "check-row" }, h("div", { class: "form-row" }, name, language), body),
    read: () => ({ name: name.value.trim(), language: language.value, body: body.value }),
  };
}
