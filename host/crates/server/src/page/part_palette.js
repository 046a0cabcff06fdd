// The command palette: one field that leads to every place, project, run and graph, by keyboard.
//
// Places are known to the page; projects, runs and graphs are asked for while one types. It goes to places alone: what changes
// something is asked for where it is seen.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { words } from "./format.js";
import { graphHref } from "./graphs.js";
import { TABS, tabHref } from "./part_run_head.js";
import { dialog, input } from "./ui.js";

/** Most entries that are shown. */
const SHOWN = 12;

/** Pause after a key, in which more may come. */
const TYPING_MS = 180;

/** Those whose text has all the words, the ones that begin with them first; at most `most`. */
export function ranked(entries, text, most = SHOWN) {
  const wanted = text.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const place = ({ name, note }) => {
    const own = `${name} ${note ?? ""}`.toLowerCase();
    if (!wanted.every((word) => own.includes(word))) return null;
    return wanted.length > 0 && name.toLowerCase().startsWith(wanted[0]) ? 0 : 1;
  };
  const found = entries
    .map((entry, index) => ({ entry, index, rank: place(entry) }))
    .filter((one) => one.rank !== null);
  found.sort((a, b) => a.rank - b.rank || a.index - b.index);
  return found.slice(0, most).map((one) => one.entry);
}

/** The parts of the run that is open. */
export function partsOf(hash) {
  const run = /^#\/runs\/(r-[0-9a-f]+)/.exec(hash)?.[1];
  if (!run) return [];
  return TABS.map(([name, text]) => ({ name: text, note: `this run, ${run}`, href: tabHref(run, name) }));
}

/** Opens it. `places`: `[{name, href}]`. */
export function openPalette(places) {
  const known = [...partsOf(location.hash), ...places.map((one) => ({ ...one, note: "place" }))];
  let found = [];
  let shown = [];
  let at = 0;
  let timer = null;
  const stop = new AbortController();
  const list = h("ul", { class: "palette-list", role: "listbox", id: "palette-list", "aria-label": "Places" });
  const field = input({
    type: "text",
    role: "combobox",
    placeholder: "Go to a place, a project, a run or a graph",
    "aria-label": "Go to",
    "aria-controls": "palette-list",
    "aria-expanded": "true",
    "aria-autocomplete": "list",
  });
  const close = dialog("Go to", () => [field, list]);
  const box = field.closest("dialog");
  box.addEventListener("close", () => stop.abort());

  const draw = () => {
    shown = ranked([...known, ...found], field.value);
    at = Math.min(at, Math.max(0, shown.length - 1));
    fill(
      list,
      shown.map((entry, index) => row(entry, index, index === at, close)),
      shown.length === 0 &&
        h("li", { class: "muted", role: "option", "aria-selected": "false" }, "Nothing has that name."),
    );
    if (shown.length > 0) field.setAttribute("aria-activedescendant", `palette-${at}`);
    else field.removeAttribute("aria-activedescendant");
  };
  const ask = async () => {
    try {
      found = await things(field.value.trim(), stop.signal);
    } catch {
      // The places are there all the same.
      return;
    }
    if (!stop.signal.aborted) draw();
  };
  field.addEventListener("input", () => {
    at = 0;
    draw();
    clearTimeout(timer);
    timer = setTimeout(() => !stop.signal.aborted && ask(), TYPING_MS);
  });
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) at = (at + step + shown.length) % Math.max(1, shown.length);
    else if (event.key === "Enter" && shown[at]) go(shown[at], close);
    else return;
    event.preventDefault();
    if (step) draw();
  });
  draw();
  ask();
}

function row(entry, index, isChosen, close) {
  const element = h(
    "li",
    { role: "option", id: `palette-${index}`, class: isChosen && "is-chosen", "aria-selected": String(isChosen) },
    h("span", null, entry.name),
    h("span", { class: "muted" }, entry.note),
  );
  element.addEventListener("click", () => go(entry, close));
  return element;
}

function go(entry, close) {
  close();
  location.hash = entry.href;
}

/** Projects, runs and graphs that a text may mean. */
async function things(search, signal) {
  const [projects, runs, graphs] = await Promise.all([
    api.projects({ limit: 200 }, signal),
    api.runs({ search, limit: SHOWN }, signal),
    api.graphs({ limit: 200 }, signal),
  ]);
  return [
    ...projects.items.map((one) => ({
      name: one.project,
      note: `project, ${words(one.status)}`,
      href: `#/projects/${encodeURIComponent(one.project)}`,
    })),
    ...runs.items.map((one) => ({
      name: one.title || one.run,
      note: `run ${one.run} of ${one.project}, ${words(one.status)}`,
      href: `#/runs/${one.run}`,
    })),
    ...graphs.items.map((one) => ({ name: one.name, note: "graph", href: graphHref(one.name) })),
  ];
}
