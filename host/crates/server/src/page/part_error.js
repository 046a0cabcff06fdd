// An error of others, as it was printed: its last line first, since that says what went wrong, and the whole of it below.

import { h } from "./dom.js";
import { lastLine } from "./format.js";
import { fold, plain } from "./ui.js";

/** Lines of an error that are shown at once; a longer one is folded. */
const LINES_SHOWN = 12;

/** Draws it; `label` names it for those who hear the page, and `name` keeps it open over a redraw. */
export function errorBlock(text, { label = "Error", name = null } = {}) {
  const whole = String(text ?? "");
  const last = lastLine(whole);
  const trimmed = whole.trim();
  const lines = trimmed.split("\n").length;
  const block = h("div", { class: "error-block" }, h("pre", { class: "error-last" }, plainText(last || "no text")));
  if (trimmed !== last)
    block.append(
      fold(
        lines > 1 ? `The whole error, ${lines} lines` : "The whole error",
        () => plain(whole, { code: true, label: name === null ? label : `${label}, ${name}` }),
        {
          name: name && `error-${name}`,
          open: lines <= LINES_SHOWN,
        },
      ),
    );
  return block;
}

/** The text with its hidden signs seen. */
const plainText = (text) => plain(text).textContent;
