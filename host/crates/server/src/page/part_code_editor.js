// A field for code: Tab moves lines, Enter keeps the indentation, Ctrl+Enter runs.
//
// Escape gives Tab back to the browser until the field is entered again, so that nobody is held in it who has no mouse.

import { broken, indented } from "./code_edit.js";
import { area } from "./ui.js";

/** What is said of the keys under the field. */
export const KEYS_HINT = "Tab indents, Shift+Tab takes back, Ctrl+Enter runs. Escape and then Tab leaves the field.";

/** The field. `run()` is asked for by Ctrl+Enter. */
export function codeArea(text, { run = null, ...props } = {}) {
  const field = area(text, { class: "code", rows: "14", spellcheck: "false", autocapitalize: "off", ...props });
  let isFree = false;
  field.addEventListener("focus", () => (isFree = false));
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run?.();
    } else if (event.key === "Escape") {
      // In a dialog the key would close it; one is left with the key pressed a second time.
      if (!isFree) event.preventDefault();
      isFree = true;
    } else if (event.key === "Tab" && !isFree && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault();
      put(field, indented(field.value, field.selectionStart, field.selectionEnd, event.shiftKey));
    } else if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      put(field, broken(field.value, field.selectionStart, field.selectionEnd));
    }
  });
  return field;
}

/** Puts a text in so that the browser can take it back, where it knows how. */
function put(field, { from, to, text, start, end }) {
  field.setSelectionRange(from, to);
  if (!document.execCommand?.(text === "" ? "delete" : "insertText", false, text))
    field.setRangeText(text, from, to, "end");
  field.setSelectionRange(start, end);
}
