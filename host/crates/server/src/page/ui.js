// The parts that views are made of: status marks, tables, forms, dialogs, short messages, things that load.
//
// A part shows what it is given and asks the server nothing. Whatever fails says so where it was asked for.

import { add, fill, h, refill } from "./dom.js";
import { ago, exact, moment, pretty, visible, words } from "./format.js";
import { icon } from "./icons.js";

/** Longest text that is put into the document at once, in characters; the rest is a button away. */
const TEXT_CHARS_MAX = 20_000;

/** How a status looks: its tone and its sign. The word stands beside it. */
const LOOKS = {
  not_started: ["quiet", "open"],
  in_progress: ["busy", "work"],
  passing: ["good", "done"],
  failing: ["bad", "bad"],
  blocked: ["wait", "wait"],
  dropped: ["quiet", "drop"],
  new: ["quiet", "open"],
  planning: ["busy", "work"],
  working: ["busy", "work"],
  parked: ["wait", "wait"],
  paused: ["quiet", "pause"],
  completed: ["good", "done"],
  incomplete: ["wait", "info"],
  failed: ["bad", "bad"],
  abandoned: ["quiet", "drop"],
  active: ["busy", "run"],
  initializing: ["busy", "work"],
  inactive: ["quiet", "pause"],
  pending: ["quiet", "schedule"],
  running: ["busy", "work"],
  open: ["wait", "wait"],
  answered: ["good", "done"],
  used: ["good", "done"],
  withdrawn: ["quiet", "drop"],
  accepted: ["good", "done"],
  rejected: ["bad", "bad"],
  success: ["good", "done"],
  partial: ["wait", "info"],
  failure: ["bad", "bad"],
  reverted: ["quiet", "drop"],
  enabled: ["busy", "schedule"],
};

/** A status: sign and word. */
export function status(name, text = words(name)) {
  const [tone, sign] = LOOKS[name] ?? ["quiet", "info"];
  return h(
    "span",
    { class: ["status", `tone-${tone}`] },
    icon(sign, name === "working" || name === "in_progress" ? "turning" : ""),
    h("span", null, text),
  );
}

export const toneOf = (name) => (LOOKS[name] ?? ["quiet"])[0];
export const signOf = (name) => (LOOKS[name] ?? ["", "info"])[1];

/** A moment, said as how long ago it is; the exact one is its title. It is kept true by `tick`. */
export function when(ms, { absolute = false } = {}) {
  if (typeof ms !== "number") return h("span", { class: "muted" }, "–");
  return h(
    "time",
    { datetime: exact(ms), title: exact(ms), data: absolute ? {} : { ago: ms } },
    absolute ? moment(ms) : ago(ms, Date.now()),
  );
}

/** Brings every "ago" below an element up to date. */
export function tick(root = document) {
  const nowMs = Date.now();
  for (const element of root.querySelectorAll("time[data-ago]")) {
    const text = ago(Number(element.dataset.ago), nowMs);
    if (element.textContent !== text) element.textContent = text;
  }
}

export const mono = (text, props) => h("code", { class: "mono", ...props }, text);
export const muted = (...children) => h("span", { class: "muted" }, ...children);
export const link = (href, ...children) => h("a", { href }, ...children);
export const chip = (text, tone = "") => h("span", { class: ["chip", tone && `tone-${tone}`] }, text);

/** A button. `run` may be asynchronous: the button waits for it, and a failure is said. */
export function button(
  label,
  {
    run,
    kind = "",
    sign = null,
    small = false,
    title = null,
    focus = null,
    disabled = false,
    type = "button",
    ...props
  } = {},
) {
  const element = h(
    "button",
    {
      type,
      class: ["button", kind && `button-${kind}`, small && "button-small"],
      title,
      data: { focus },
      disabled,
      ...props,
    },
    sign && icon(sign),
    h("span", null, label),
  );
  if (run) element.addEventListener("click", (event) => busy(element, () => run(event)));
  return element;
}

/** Runs something a person asked for; until it is done the button cannot be pressed again. */
export async function busy(element, work) {
  if (element.getAttribute("aria-busy") === "true") return;
  element.setAttribute("aria-busy", "true");
  try {
    await work();
  } catch (error) {
    if (error?.name !== "AbortError") complain(error);
  } finally {
    element.removeAttribute("aria-busy");
  }
}

/** Says something to those who hear the page. */
export function announce(text) {
  const place = document.getElementById("said");
  if (place) fill(place, text);
}

const TOAST_MS = 7_000;
const TOASTS_MAX = 4;

/** A short message at the edge. */
export function toast(text, tone = "good") {
  const place = document.getElementById("toasts");
  const element = h(
    "div",
    { class: ["toast", `tone-${tone}`], role: tone === "bad" ? "alert" : "status" },
    icon(tone === "bad" ? "bad" : "done"),
    h("span", null, text),
  );
  element.append(button("Dismiss", { kind: "quiet", small: true, run: () => element.remove() }));
  place.append(element);
  while (place.childElementCount > TOASTS_MAX) place.firstElementChild.remove();
  if (tone !== "bad") setTimeout(() => element.remove(), TOAST_MS);
}

/** Says what went wrong. */
export function complain(error) {
  toast(error?.message ?? String(error), "bad");
}

/** A region of a view with a heading. */
export function section(title, { actions = [], id = null, className = "", level = 2, count = null } = {}, ...children) {
  const name = id ?? `s-${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  const head = h(
    "div",
    { class: "section-head" },
    h(`h${level}`, { id: name }, title, count !== null && h("span", { class: "count" }, String(count))),
    h("div", { class: "actions" }, actions),
  );
  return h("section", { class: ["section", className], "aria-labelledby": name }, head, children);
}

/** Nothing there yet, and what would make something be there. */
export function empty(text, ...more) {
  return h("div", { class: "empty" }, h("p", null, text), more);
}

export const loading = () => h("p", { class: "loading", role: "status" }, "Loading…");

/** What could not be loaded, with a way to try again. */
export function failed(error, retry) {
  return h(
    "div",
    { class: "failed", role: "alert" },
    icon("bad"),
    h("p", null, error?.message ?? String(error)),
    retry && button("Try again", { small: true, run: retry }),
  );
}

/**
 * A table. Columns: `{name, cell(row), numeric, wide, hide, bare}`; `bare` hides the name of one that holds buttons; `hide: "phone"` leaves it out on narrow screens. The
 * first column is each row's header. Roles are said, since rows are set as cards on narrow screens.
 */
export function table(label, columns, rows, { rowKey = null, rowClass = null } = {}) {
  const classes = (column) => [
    column.numeric && "numeric",
    column.wide && "wide",
    column.hide && `hide-${column.hide}`,
  ];
  const head = columns.map((column) =>
    h(
      "th",
      { scope: "col", role: "columnheader", class: classes(column) },
      column.bare ? h("span", { class: "unseen" }, column.name) : column.name,
    ),
  );
  const body = rows.map((row) =>
    h(
      "tr",
      { role: "row", class: rowClass?.(row), data: { key: rowKey?.(row) ?? null } },
      columns.map((column, index) =>
        index === 0
          ? h("th", { scope: "row", role: "rowheader", class: classes(column) }, column.cell(row))
          : h(
              "td",
              { role: "cell", class: classes(column), data: { label: column.bare ? "" : column.name } },
              column.cell(row),
            ),
      ),
    ),
  );
  return h(
    "div",
    { class: "table-box", tabindex: "0", role: "group", "aria-label": label },
    h(
      "table",
      { role: "table" },
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)),
      h("tbody", { role: "rowgroup" }, body),
    ),
  );
}

/** Names and values in two columns. */
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h(
    "dl",
    { class: "facts" },
    shown.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
  );
}

/** A share of a whole, as a bar with its numbers beside it. */
export function progress(done, of, label) {
  const share = of > 0 ? done / of : 0;
  return h(
    "span",
    { class: "progress" },
    h(
      "span",
      {
        class: ["progress-bar", done === of && of > 0 && "is-full"],
        role: "img",
        "aria-label": `${label}: ${done} of ${of}`,
        vars: { "--share": share },
      },
      h("span"),
    ),
    h("span", { class: "progress-words", "aria-hidden": "true" }, `${done}/${of}`),
  );
}

/** A text of others, as it is: kept lines, nothing of it read as markup, long ones in parts. `code` sets JSON out, unless `exact`. */
export function plain(text, { code = false, exact = false, charsMax = TEXT_CHARS_MAX, label = null } = {}) {
  const whole = visible(code && !exact ? pretty(text) : text);
  const props = label ? { tabindex: "0", role: "region", "aria-label": label } : {};
  const element = h("pre", { class: code ? "plain code" : "plain", ...props }, whole.slice(0, charsMax));
  if (whole.length <= charsMax) return element;
  let shown = charsMax;
  const more = button(`Show more of ${whole.length} characters`, {
    small: true,
    kind: "quiet",
    run: () => {
      element.append(whole.slice(shown, shown + TEXT_CHARS_MAX));
      shown += TEXT_CHARS_MAX;
      if (shown >= whole.length) more.remove();
    },
  });
  return h("div", null, element, more);
}

/** Something folded. Its content is made when it is opened the first time. `name` keeps it open over a redraw. */
export function fold(summary, make, { name = null, open = false, className = "" } = {}) {
  const box = h("details", { class: ["fold", className], data: { open: name }, open }, h("summary", null, summary));
  let made = false;
  const build = () => {
    if (made || !box.open) return;
    made = true;
    add(box, make());
  };
  box.addEventListener("toggle", build);
  build();
  return box;
}

let fieldNumber = 0;

/** A labelled field. `control` is an input, a select or a text area; the error of the server goes under it. */
export function field(label, control, { hint = null, name = null } = {}) {
  fieldNumber += 1;
  const id = control.id || `field-${fieldNumber}`;
  control.id = id;
  const described = [];
  const parts = [h("label", { for: id }, label), control];
  if (hint) {
    described.push(`${id}-hint`);
    parts.push(h("p", { class: "hint", id: `${id}-hint` }, hint));
  }
  described.push(`${id}-error`);
  parts.push(h("p", { class: "field-error", id: `${id}-error`, data: { field: name ?? "" } }));
  control.setAttribute("aria-describedby", described.join(" "));
  return h("div", { class: "field" }, parts);
}

export const input = (props = {}) => h("input", { type: "text", autocomplete: "off", spellcheck: "false", ...props });
export const area = (text = "", props = {}) => h("textarea", { rows: "4", ...props, prop: { value: text } });
export function select(options, chosen, props = {}) {
  return h(
    "select",
    props,
    options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)),
  );
}
export function check(label, checked, props = {}) {
  const box = h("input", { type: "checkbox", ...props, prop: { checked } });
  return { box, element: h("label", { class: "check" }, box, h("span", null, label)) };
}

/**
 * The fault of a value in a control, by the control's own bounds; null where there is none. `step` is the step of the
 * arrows of a number: only where there is none, the number has to be whole.
 */
export function fault({ type, validity, min, max, step }) {
  if (!validity || validity.valid) return null;
  if (type !== "number") return validity.valueMissing ? "Fill this in." : null;
  const isOut = validity.valueMissing || validity.badInput || validity.rangeUnderflow || validity.rangeOverflow;
  if (!isOut && (step || !validity.stepMismatch)) return null;
  return `Write a ${step ? "number" : "whole number"}${bounds(min, max)}.`;
}

function bounds(min, max) {
  if (min && max) return ` from ${min} to ${max}`;
  if (min) return `, at least ${min}`;
  return max ? `, at most ${max}` : "";
}

/**
 * A form. What is outside of the bounds of its field is said under that field and not sent, since the server takes some
 * of it in silence: of a priority of 99 it makes 10. `submit()` is asynchronous; where the server names the field at
 * fault its words go under that field and the focus goes there, and otherwise under the form.
 */
export function form(label, fields, { submit, action = "Save", cancel = null, danger = false }) {
  const error = h("p", { class: "form-error", role: "alert" });
  const send = button(action, { kind: danger ? "danger" : "main", type: "submit" });
  const element = h(
    "form",
    { class: "form", "aria-label": label, novalidate: true },
    fields,
    error,
    h("div", { class: "form-actions" }, send, cancel && button("Cancel", { run: cancel })),
  );
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    fill(error);
    for (const one of element.querySelectorAll(".field-error")) fill(one);
    for (const one of element.querySelectorAll("[aria-invalid]")) one.removeAttribute("aria-invalid");
    if (send.getAttribute("aria-busy") === "true") return;
    if (blameFaulty(element, error)) return;
    send.setAttribute("aria-busy", "true");
    try {
      await submit();
    } catch (problem) {
      if (!atField(element, problem)) fill(error, problem?.message ?? String(problem));
    } finally {
      send.removeAttribute("aria-busy");
    }
  });
  return element;
}

/** Says of each control at fault what is wrong with it, and goes to the first; false where there is none. */
function blameFaulty(element, error) {
  const wrong = [...element.elements].filter((control) => fault(control) !== null);
  for (const control of wrong) blame(control, document.getElementById(`${control.id}-error`) ?? error, fault(control));
  wrong[0]?.focus();
  return wrong.length > 0;
}

function blame(control, place, text) {
  fill(place, text);
  control?.setAttribute("aria-invalid", "true");
}

function atField(element, problem) {
  const name = problem?.field;
  if (!name) return false;
  const own = (one) =>
    one.dataset.field !== "" &&
    (one.dataset.field === name ||
      name.startsWith(`${one.dataset.field}.`) ||
      name.startsWith(`${one.dataset.field}[`) ||
      name.endsWith(`.${one.dataset.field}`));
  const place = [...element.querySelectorAll(".field-error")].find(own);
  if (!place) return false;
  const control = document.getElementById(place.id.replace(/-error$/, ""));
  blame(control, place, problem.message);
  control?.focus();
  return true;
}

/** Opens a dialog; Escape and the close button end it. Returns how to close it. */
export function dialog(title, make, { wide = false } = {}) {
  const before = document.activeElement;
  const element = h("dialog", { class: ["dialog", wide && "dialog-wide"], "aria-labelledby": "dialog-title" });
  const close = () => element.close();
  add(
    element,
    h(
      "div",
      { class: "dialog-head" },
      h("h2", { id: "dialog-title" }, title),
      button("Close", { kind: "quiet", small: true, run: close }),
    ),
    h("div", { class: "dialog-body" }, make(close)),
  );
  element.addEventListener("close", () => {
    element.remove();
    if (before?.isConnected) before.focus();
  });
  document.body.append(element);
  element.showModal();
  element.querySelector("input, textarea, select")?.focus();
  return close;
}

/** Asks before something that cannot be taken back. */
export function confirm(title, text, action, run, { danger = true } = {}) {
  dialog(title, (close) =>
    form(title, [h("p", null, text)], {
      action,
      danger,
      cancel: close,
      submit: async () => {
        await run();
        close();
      },
    }),
  );
}

/** Buttons that switch between the parts of a view; each is a link, so that it can be kept and gone back to. */
export function tabs(label, items, current) {
  return h(
    "nav",
    { class: "tabs", "aria-label": label },
    items.map(({ name, href, text, count }) =>
      h(
        "a",
        { href, "aria-current": name === current ? "page" : null, data: { focus: `tab-${name}` } },
        text,
        count ? h("span", { class: "count" }, String(count)) : null,
      ),
    ),
  );
}

/** Pages of a list that the server cuts: earlier, later, and where one is. */
export function pager({ offset, limit, total }, go) {
  if (total <= limit && offset === 0) return null;
  const last = Math.min(total, offset + limit);
  return h(
    "nav",
    { class: "pager", "aria-label": "Pages" },
    button("Previous", {
      small: true,
      focus: "previous",
      disabled: offset === 0,
      run: () => go(Math.max(0, offset - limit)),
    }),
    h("span", { class: "muted" }, `${total === 0 ? 0 : offset + 1}–${last} of ${total}`),
    button("Next", { small: true, focus: "next", disabled: last >= total, run: () => go(offset + limit) }),
  );
}

/** What is drawn anew in place: keeps the focus and what is folded open. */
export const redraw = refill;
