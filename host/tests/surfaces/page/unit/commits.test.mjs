// One commit of a run: its counts, the tree of its files, and their lines, all of it text of others.

import assert from "node:assert/strict";
import test from "node:test";

import { install } from "./document.mjs";

install();
const folder = process.env.PAGE_MODULES;
const { countsOf, drawCommit, openCommit } = await import(new URL("part_commit.js", folder));

const file = (path, more = {}) => ({
  path,
  old_path: null,
  change: "modified",
  patch: `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n@@ -1 +1 @@\n-<b>one</b>\n+two\n`,
  added_lines: 1,
  removed_lines: 1,
  is_binary: false,
  is_cut: false,
  ...more,
});

const commit = (files, more = {}) => ({
  commit: "0123456789abcdef0123456789abcdef01234567",
  at_ms: 1_700_000_000_000,
  subject: "Add it",
  feature: "one",
  outcome: "passing",
  run: "r-1",
  parent: "fedcba9876543210fedcba9876543210fedcba98",
  message: "Add it\n\n<i>why</i>\n",
  files,
  files_left_out: 0,
  counts: {
    files: files.length,
    added: 0,
    modified: files.length,
    deleted: 0,
    renamed: 0,
    added_lines: 1,
    removed_lines: 1,
  },
  ...more,
});

test("counts leave out what did not occur", () => {
  const none = { added: 0, modified: 0, deleted: 0, renamed: 0, added_lines: 0, removed_lines: 0 };
  assert.equal(countsOf({ ...none, files: 1, renamed: 1 }), "1 file (1 renamed), +0 -0");
  assert.equal(
    countsOf({ files: 6, added: 1, modified: 2, deleted: 3, renamed: 0, added_lines: 9, removed_lines: 8 }),
    "6 files (1 new, 2 modified, 3 deleted), +9 -8",
  );
  assert.equal(countsOf({ ...none, files: 0 }), "0 files, +0 -0");
});

test("a commit has its message, the tree of its files and their lines, none of it markup", () => {
  const drawn = drawCommit(commit([file("src/a.py"), file("src/b.py")]));
  assert.match(drawn.textContent, /0123456789 after fedcba9876 · one · passing/);
  assert.ok(drawn.textContent.includes("<i>why</i>"));
  assert.match(drawn.querySelector(".file-tree").textContent, /src\/a\.py \+1 -1b\.py \+1 -1/);
  assert.deepEqual(
    drawn.querySelectorAll(".diff-remove").map((one) => one.textContent),
    ["-<b>one</b>\n", "-<b>one</b>\n"],
  );
  assert.match(drawCommit(commit([], { parent: null })).textContent, /the first commit.*It changed no file\./s);
});

test("what is not shown is said: binary, too large, cut, left out, renamed without a change", () => {
  const drawn = (one, more = {}) => drawCommit(commit([one], more)).textContent;
  assert.match(drawn(file("a", { patch: "", is_binary: true })), /binary.*A binary file/);
  assert.match(drawn(file("a", { patch: "", is_cut: true, added_lines: 0 })), /Too large to be shown here\./);
  assert.match(drawn(file("a", { is_cut: true })), /Only the first lines of the change are shown\./);
  assert.match(drawn(file("a"), { files_left_out: 2 }), /2 more files changed; the list ends here\./);
  const renamed = file("new/b", { old_path: "old/b", change: "renamed", patch: "", added_lines: 0, removed_lines: 0 });
  assert.match(drawn(renamed), /old\/b → new\/b renamed.*No line of it changed\./);
  assert.doesNotMatch(drawn(file("a")), /Only the first|Too large|more file/);
});

test("a long change is folded, and its lines are made when it is opened", () => {
  const long = file("a", { added_lines: 500 });
  const drawn = drawCommit(commit([long]));
  assert.equal(drawn.querySelectorAll(".diff-add").length, 0);
  const fold = drawn.querySelector(".diff-file");
  fold.open = true;
  fold.dispatchEvent(new Event("toggle"));
  assert.equal(drawn.querySelectorAll(".diff-add").length, 1);
});

test("a commit is asked for when it is opened, and a refusal is said where it was asked for", async () => {
  const asked = [];
  const answers = [
    { ok: false, status: 404, json: async () => ({ detail: "run r-1 has no commit `0123`" }) },
    { ok: true, status: 200, json: async () => commit([file("a.txt")]) },
  ];
  globalThis.fetch = async (path) => (asked.push(path), answers.shift());
  for (const expected of [/run r-1 has no commit/, /a\.txt/]) {
    const close = await openCommit({ run: "r-1" }, { commit: "0123", subject: "Add it" });
    const dialog = document.querySelector("dialog");
    assert.match(dialog.textContent, /Add it/);
    assert.match(dialog.textContent, expected);
    close();
  }
  assert.deepEqual(asked, ["/api/v1/runs/r-1/commits/0123", "/api/v1/runs/r-1/commits/0123"]);
});
