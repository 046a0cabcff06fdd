// Shortcuts of the keyboard, and the list of them.
//
// A key that is typed into a field is text and never a shortcut, and keys with Ctrl, Alt or Meta belong to the browser,
// but for the one that opens the palette.

import { h } from "./dom.js";
import { dialog } from "./ui.js";

/** How long the second key of a pair is waited for. */
const PAIR_MS = 1_200;

const general = new Map();
let own = new Map();
let first = null;
let firstTimer = null;

/** Shortcuts of the whole page: `[["g r", "Go to runs", run], …]`. */
export function always(list) {
  for (const [keys, text, run] of list) general.set(keys, { text, run });
}

/** Shortcuts of the open view, in place of those of the one before. */
export function ofView(list) {
  own = new Map(list.map(([keys, text, run]) => [keys, { text, run }]));
}

/** Starts to listen. */
export function start() {
  document.addEventListener("keydown", pressed);
}

function pressed(event) {
  if (event.isComposing || event.defaultPrevented) return;
  if (isPalette(event)) {
    if (document.querySelector("dialog[open]")) return;
    event.preventDefault();
    return void general.get(PALETTE)?.run();
  }
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (typing(event.target) || document.querySelector("dialog[open]")) return;
  const keys = first === null ? event.key : `${first} ${event.key}`;
  clearTimeout(firstTimer);
  first = null;
  const found = own.get(keys) ?? general.get(keys);
  if (found) {
    event.preventDefault();
    found.run();
  } else if ([...own.keys(), ...general.keys()].some((one) => one.startsWith(`${event.key} `))) {
    first = event.key;
    firstTimer = setTimeout(() => (first = null), PAIR_MS);
  }
}

/** The one shortcut with a key that is the browser's, which works in fields, too. */
export const PALETTE = "Ctrl+K";

const isPalette = ({ key, ctrlKey, metaKey, altKey, shiftKey }) =>
  (ctrlKey || metaKey) && !altKey && !shiftKey && key.toLowerCase() === "k";

function typing(target) {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable) return true;
  const tag = target.tagName;
  if (tag === "INPUT") return !["checkbox", "radio", "button", "submit"].includes(target.type);
  return tag === "TEXTAREA" || tag === "SELECT";
}

/** Shows all of them. */
export function showHelp() {
  const list = (entries) =>
    h(
      "dl",
      { class: "keys" },
      [...entries].map(([keys, { text }]) =>
        h(
          "div",
          null,
          h(
            "dt",
            null,
            keys.split(" ").map((key) => h("kbd", null, key === " " ? "space" : key)),
          ),
          h("dd", null, text),
        ),
      ),
    );
  dialog("Keyboard", () => [
    own.size > 0 && [h("h3", null, "Here"), list(own)],
    h("h3", null, "Everywhere"),
    list(general),
    h("p", { class: "hint" }, "Tab and Shift+Tab go through everything that can be pressed. Enter opens it."),
  ]);
}

/** Moves the focus among elements, for `j` and `k`. */
export function step(selector, by) {
  const all = [...document.querySelectorAll(selector)].filter((one) => one.getClientRects().length > 0);
  if (all.length === 0) return;
  const at = all.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
  all[next].focus();
  all[next].scrollIntoView({ block: "nearest" });
}
