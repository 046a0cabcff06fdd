// Patches as files with their lines, and paths as a tree.

import assert from "node:assert/strict";
import test from "node:test";

import { install } from "./document.mjs";

install();
const folder = process.env.PAGE_MODULES;
const { readPatch, treeOf, LINES_MAX } = await import(new URL("diff.js", folder));
const { diffOf } = await import(new URL("part_diff.js", folder));
const { approvalCard } = await import(new URL("part_approvals.js", folder));

const PATCH = `diff --git a/src/a.py b/src/a.py
index 111..222 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1,3 +1,3 @@
 same
--- x
+++ y
 <b>end</b>
diff --git a/new file.txt b/new file.txt
new file mode 100644
--- /dev/null
+++ b/new file.txt
@@ -0,0 +1 @@
+one
`;

test("each file has its lines, and what looks like a head inside of a hunk is none", () => {
  const { files, left } = readPatch(PATCH);
  assert.deepEqual(
    files.map((file) => [file.path, file.added, file.removed]),
    [
      ["src/a.py", 1, 1],
      ["new file.txt", 1, 0],
    ],
  );
  assert.deepEqual(
    files[0].lines.slice(4).map((line) => line.kind),
    ["hunk", "same", "remove", "add", "same"],
  );
  assert.equal(left, 0);
});

test("no patch, a text that is none, and one beyond the cap break nothing", () => {
  assert.deepEqual(readPatch("").files, []);
  assert.deepEqual(readPatch(null).files, []);
  assert.deepEqual(
    readPatch("no patch\nat all").files.map((file) => [file.path, file.lines.length]),
    [["", 2]],
  );
  const long = readPatch(`diff --git a/x b/x\n${"+1\n".repeat(LINES_MAX)}`);
  assert.deepEqual([long.files[0].lines.length, long.left], [LINES_MAX, 1]);
});

test("paths are a tree with folders first, and a lone folder is told with the one in it", () => {
  const shape = (branches) => branches.map((one) => [one.name, one.path, shape(one.children)]);
  assert.deepEqual(shape(treeOf(["z.txt", "src/deep/a.py", "src/deep/b.py", "z.txt"])), [
    [
      "src/deep",
      "src/deep",
      [
        ["a.py", "src/deep/a.py", []],
        ["b.py", "src/deep/b.py", []],
      ],
    ],
    ["z.txt", "z.txt", []],
  ]);
  assert.deepEqual(treeOf([]), []);
});

test("a change is drawn with its tree, its sums and its lines, all of it text", () => {
  const drawn = diffOf(PATCH, "a-1");
  assert.match(drawn.querySelector(".file-tree").textContent, /src\/a\.py \+1 -1|src\/.*a\.py \+1 -1/);
  assert.deepEqual(
    drawn.querySelectorAll(".diff-add").map((one) => one.textContent),
    ["+++ y\n", "+one\n"],
  );
  assert.ok(drawn.textContent.includes(" <b>end</b>"));
});

test("the approval of a change shows it as one, and other arguments as they are", () => {
  const approval = {
    id: "a-1",
    kind: "change",
    status: "used",
    status_text: "allowed",
    run: "r-1",
    invocation: "r-1/f-one/1/commit",
    untrusted_sources: [],
    arguments: JSON.stringify({ files: ["changed src/a.py: it is a test"], patch: PATCH }),
  };
  const card = approvalCard(approval);
  assert.equal(card.querySelectorAll(".diff-file").length, 2);
  assert.equal(card.querySelector(".dots").textContent, "changed src/a.py: it is a test", "why it is protected");
  const odd = approvalCard({ ...approval, arguments: '{"files":7}' });
  assert.equal(odd.querySelectorAll(".diff-file").length, 0);
  assert.match(odd.textContent, /"files": 7/);
});
