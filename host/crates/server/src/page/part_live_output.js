// Output as it comes: of code that a person runs, and the texts of any output that grows.
//
// What was printed stays there when no result comes, since that is then all that is known.

import { fill, h } from "./dom.js";
import { visible } from "./format.js";
import { print } from "./live_output.js";
import { muted, section, status } from "./ui.js";

/** How near to its end a text is for it to stay there, in pixels. */
const NEAR_END = 40;

/** How seldom what nobody looks at is drawn, in milliseconds. */
const UNSEEN_MS = 500;

/** Calls `draw` once for however often it is asked to: in the next frame, or after a while where nobody looks. */
export function soon(draw) {
  let isPlanned = false;
  const now = () => {
    isPlanned = false;
    draw();
  };
  return () => {
    if (isPlanned) return;
    isPlanned = true;
    if (document.hidden) setTimeout(now, UNSEEN_MS);
    else requestAnimationFrame(now);
  };
}

/** Puts a text in so that one that was read at its end stays there. */
export function showText(box, title, label, text, level = 4) {
  if (text === "") {
    if (box.childElementCount > 0) fill(box);
    return;
  }
  if (box.childElementCount === 0) {
    const props = { class: "plain code", tabindex: "0", role: "region", "aria-label": label };
    fill(box, h(`h${level}`, null, title), h("pre", props));
  }
  const pre = box.querySelector("pre");
  const shown = visible(text);
  if (pre.textContent === shown) return;
  const isAtEnd = pre.scrollHeight - pre.scrollTop - pre.clientHeight < NEAR_END;
  fill(pre, shown);
  if (isAtEnd) pre.scrollTop = pre.scrollHeight;
}

/** Output of code that runs. `take(event)` adds what came; `end(look, words)` says how it ended without a result. */
export function liveOutput() {
  const entry = { stdout: "", stderr: "", isCut: false };
  let told = ["working", "running"];
  let drawn = null;
  const head = h("p", { class: "head-line", role: "status" });
  const [stdout, stderr] = [h("div", { class: "stack-small" }), h("div", { class: "stack-small" })];
  const draw = () => {
    const words = `${told[1]} ${entry.isCut}`;
    if (drawn !== words) fill(head, status(...told), entry.isCut && muted("Only the end of the output is shown."));
    drawn = words;
    showText(stdout, "Printed", "Standard output, as it comes", entry.stdout, 3);
    showText(stderr, "Printed as errors", "Standard error, as it comes", entry.stderr, 3);
  };
  const plan = soon(draw);
  draw();
  return {
    element: section("Output", { id: "s-output" }, head, stdout, stderr),
    isEmpty: () => entry.stdout === "" && entry.stderr === "",
    take: ({ type, data }) => {
      if (type === "stdout" || type === "stderr") print(entry, { stream: type, text: data.text });
      else if (type === "lagged") entry.isCut = true;
      plan();
    },
    end: (look, words) => {
      told = [look, words];
      draw();
    },
  };
}
