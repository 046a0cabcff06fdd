// A change of files: the tree of what changed, and each file with its lines.
//
// Signs at the beginning of a line say what the colours say. All of it is text of others.

import { LINES_MAX, readPatch, treeOf } from "./diff.js";
import { h } from "./dom.js";
import { count, visible } from "./format.js";
import { fold } from "./ui.js";

/** Lines of a file that are open at once; a longer one is folded. */
const OPEN_MAX = 80;

/** Draws a patch; `name` keeps what is open over a redraw, and tells files of several patches apart. */
export function diffOf(patch, name) {
  const read = readPatch(patch);
  const paths = read.files.map((file) => file.path).filter(Boolean);
  const changes = new Map(read.files.map((file) => [file.path, file]));
  return h(
    "div",
    { class: "diff" },
    paths.length > 0 && fileTree(paths, (path) => sums(changes.get(path))),
    read.files.map((file, index) =>
      fold(
        [h("code", null, file.path || "change"), sums(file)],
        () => linesOf(file, `${name}, ${file.path || index}`),
        {
          name: `diff-${name}-${index}`,
          open: read.files.length <= 3 && file.lines.length <= OPEN_MAX,
          className: "diff-file",
        },
      ),
    ),
    read.left > 0 &&
      h("p", { class: "hint" }, `The first ${count(LINES_MAX)} lines; ${count(read.left)} more are not shown.`),
  );
}

function sums(file) {
  if (!file) return null;
  return h(
    "span",
    { class: "diff-sums" },
    h("span", { class: "tone-good" }, `+${file.added}`),
    " ",
    h("span", { class: "tone-bad" }, `-${file.removed}`),
  );
}

function linesOf(file, label) {
  return h(
    "pre",
    { class: "plain code diff-lines", tabindex: "0", role: "region", "aria-label": `Change of ${label}` },
    file.lines.map(({ kind, text }) => h("span", { class: `diff-${kind}` }, `${visible(text)}\n`)),
  );
}

/** Paths as a tree; `note(path)` stands beside a file. */
export function fileTree(paths, note = () => null) {
  return h("ul", { class: "file-tree", "aria-label": "Files" }, branchesOf(treeOf(paths), note));
}

const branchesOf = (branches, note) =>
  branches.map((one) =>
    one.children.length > 0
      ? h(
          "li",
          null,
          h("span", { class: "muted" }, `${visible(one.name)}/`),
          h("ul", null, branchesOf(one.children, note)),
        )
      : h("li", null, h("code", null, visible(one.name)), " ", note(one.path)),
  );
