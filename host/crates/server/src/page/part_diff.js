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

/** What stands beside the path of a file whose lines did not just change. */
const WORDS = { added: "new", deleted: "deleted", renamed: "renamed" };

/**
 * Draws the files of a commit, each a patch of its own: `{path, old_path, change, patch, added_lines, removed_lines,
 * is_binary, is_cut}`. `name` keeps what is open over a redraw.
 */
export function filesDiff(files, name) {
  const changes = new Map(files.map((file) => [file.path, file]));
  return h(
    "div",
    { class: "diff" },
    fileTree([...changes.keys()], (path) => changes.has(path) && noteOf(changes.get(path))),
    files.map((file, index) =>
      fold(
        [
          h("code", null, file.old_path ? `${visible(file.old_path)} → ${visible(file.path)}` : visible(file.path)),
          noteOf(file),
        ],
        () => fileDiff(file, name),
        {
          name: `diff-${name}-${index}`,
          open: files.length <= 3 && file.added_lines + file.removed_lines <= OPEN_MAX,
          className: "diff-file",
        },
      ),
    ),
  );
}

const noteOf = (file) => [
  WORDS[file.change] && h("span", { class: "muted" }, ` ${WORDS[file.change]}`),
  file.is_binary
    ? h("span", { class: "muted" }, " binary")
    : sums({ added: file.added_lines, removed: file.removed_lines }),
];

function fileDiff(file, name) {
  const hint = (text) => h("p", { class: "hint" }, text);
  if (file.is_binary) return hint("A binary file: it has no lines to show.");
  if (!file.patch) return hint(file.is_cut ? "Too large to be shown here." : "No line of it changed.");
  const { files, left } = readPatch(file.patch);
  return h(
    "div",
    null,
    files.map((one) => linesOf(one, `${name}, ${file.path}`)),
    (file.is_cut || left > 0) && hint("Only the first lines of the change are shown."),
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
