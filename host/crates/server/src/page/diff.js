// A patch as files with their lines, and paths as a tree. Pure.
//
// It reads the unified form that git writes. What does not look like it stays a line that says nothing of a change, and
// nothing of a patch is left out but what is above the cap, which is counted.

/** Most lines of a patch that are read. */
export const LINES_MAX = 5_000;

/**
 * `{files, left}`: files `{path, added, removed, lines}`, lines `{kind, text}` of the kinds `add`, `remove`, `hunk`,
 * `head` and `same`; `left` is how many lines are beyond the cap.
 */
export function readPatch(text) {
  const lines = String(text ?? "")
    .replace(/\n$/, "")
    .split("\n");
  const files = [];
  let file = null;
  let inHunk = { old: 0, new: 0 };
  const begin = (path) => {
    file = { path, added: 0, removed: 0, lines: [] };
    files.push(file);
  };
  for (const line of lines.slice(0, LINES_MAX)) {
    const isInside = inHunk.old > 0 || inHunk.new > 0;
    if (!isInside && line.startsWith("diff --git ")) begin(pathOf(line));
    else if (file === null && line !== "") begin("");
    if (file === null) continue;
    const kind = kindOf(line, isInside);
    if (kind === "hunk") inHunk = lengthsOf(line);
    if (isInside) {
      if (kind !== "add") inHunk.old -= 1;
      if (kind !== "remove") inHunk.new -= 1;
    }
    if (kind === "add") file.added += 1;
    if (kind === "remove") file.removed += 1;
    if (kind === "head" && line.startsWith("+++ ") && line !== "+++ /dev/null") file.path = withoutSide(line.slice(4));
    file.lines.push({ kind, text: line });
  }
  return { files, left: Math.max(0, lines.length - LINES_MAX) };
}

/** Inside of a hunk the first sign decides, so that a removed line `-- x` is no head. */
function kindOf(line, isInside) {
  if (isInside) return { "+": "add", "-": "remove" }[line[0]] ?? "same";
  if (line.startsWith("@@")) return "hunk";
  return "head";
}

function lengthsOf(line) {
  const found = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
  if (!found) return { old: 0, new: 0 };
  return { old: Number(found[1] ?? 1), new: Number(found[2] ?? 1) };
}

const pathOf = (line) => withoutSide(line.slice("diff --git ".length).split(" b/").at(-1));
const withoutSide = (path) => path.replace(/^[ab]\//, "").replace(/\t.*$/, "");

/** Paths as a tree: `[{name, path, children}]`, folders first; a folder with one folder in it is told as one. */
export function treeOf(paths) {
  const root = new Map();
  for (const path of [...new Set(paths)]) {
    let level = root;
    for (const part of String(path).split("/").filter(Boolean)) {
      if (!level.has(part)) level.set(part, new Map());
      level = level.get(part);
    }
  }
  return branches(root, "");
}

function branches(level, above) {
  const all = [...level].map(([name, below]) => joined(name, below, above));
  return all.sort(
    (a, b) => Number(a.children.length === 0) - Number(b.children.length === 0) || a.name.localeCompare(b.name),
  );
}

function joined(name, below, above) {
  let [own, inside] = [name, below];
  while (inside.size === 1 && [...inside.values()][0].size > 0) {
    const [next, further] = [...inside][0];
    own = `${own}/${next}`;
    inside = further;
  }
  const path = above ? `${above}/${own}` : own;
  return { name: own, path, children: branches(inside, path) };
}
