// One commit of a run in a dialog: its message, the tree of the files that it changed, and their lines.
//
// It is asked for when it is opened. The server bounds the texts, and what it left out is said. All of it is text of
// others.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { count, plural } from "./format.js";
import { filesDiff } from "./part_diff.js";
import { dialog, empty, failed, loading, mono, plain, when } from "./ui.js";

/** Opens the dialog. */
export async function openCommit(run, commit) {
  const place = h("div", { class: "commit" });
  const close = dialog(commit.subject || "Commit", () => place, { wide: true });
  const load = async () => {
    fill(place, loading());
    try {
      fill(place, drawCommit(await api.commit(run.run, commit.commit)));
    } catch (error) {
      fill(place, failed(error, load));
    }
  };
  await load();
  return close;
}

/** A commit with its changes. */
export function drawCommit(commit) {
  const { counts, files } = commit;
  return h(
    "div",
    null,
    h(
      "p",
      { class: "hint" },
      mono(commit.commit.slice(0, 10)),
      commit.parent === null ? " · the first commit" : [" after ", mono(commit.parent.slice(0, 10))],
      commit.feature && ` · ${commit.feature}`,
      commit.outcome && ` · ${commit.outcome}`,
      " · ",
      when(commit.at_ms),
    ),
    plain(commit.message, { label: "Message" }),
    h("p", null, countsOf(counts)),
    files.length === 0 ? empty("It changed no file.") : filesDiff(files, commit.commit.slice(0, 10)),
    commit.files_left_out > 0 &&
      h("p", { class: "hint" }, `${plural(commit.files_left_out, "more file")} changed; the list ends here.`),
  );
}

/** The counts in words; kinds of changes that did not occur are left out. */
export function countsOf({ files, added, modified, deleted, renamed, added_lines, removed_lines }) {
  const kinds = [
    [added, "new"],
    [modified, "modified"],
    [deleted, "deleted"],
    [renamed, "renamed"],
  ].filter(([number]) => number > 0);
  const told = kinds.map(([number, word]) => `${count(number)} ${word}`).join(", ");
  return `${plural(files, "file")}${told && ` (${told})`}, +${count(added_lines)} -${count(removed_lines)}`;
}
