// Forks: the tree that runs make, the answers that a person may edit, and effects in words. Pure.
//
// The server decides what may be edited and what is no answer; here is only what makes an answer easy to write.

import { pretty } from "./format.js";

/** Runs of a tree that are shown. */
export const TREE_MAX = 200;

/**
 * The tree of forks that a run is in, as rows from its root on: `{run, parent, depth, isKnown}`. `runs` are those that
 * the server listed; a parent that is not among them is a row with its name alone.
 */
export function treeOf(runs, run) {
  const known = new Map([run, ...runs].map((one) => [one.run, one]));
  let root = run.run;
  const above = new Set([root]);
  for (;;) {
    const parent = known.get(root)?.forked_from;
    if (!parent || above.has(parent)) break;
    above.add(parent);
    root = parent;
  }
  const rows = [];
  const seen = new Set();
  const walk = (name, parent, depth) => {
    if (seen.has(name) || rows.length >= TREE_MAX) return;
    seen.add(name);
    rows.push({ run: known.get(name) ?? { run: name }, parent, depth, isKnown: known.has(name) });
    for (const fork of forksOf([...known.values()], name)) walk(fork.run, name, depth + 1);
  };
  walk(root, null, 0);
  return rows;
}

/** The forks of a run, the oldest first. */
export const forksOf = (runs, run) =>
  runs.filter((one) => one.forked_from === run).sort((a, b) => a.created_ms - b.created_ms);

/** What is known of an effect after an interruption, which is what a fork has to be told of. */
const EFFECTS = {
  acts: "acts, cannot be undone",
  verifiable: "can be verified",
  idempotent: "may be repeated",
  "read-only": "reads only",
};

export const effectWords = (effect) => EFFECTS[effect] ?? effect;

/** Calls whose answers can be edited. */
const EDITABLE = new Set(["tools.call", "conversation.complete", "checks.run"]);

const AS_RECORDED = "JSON, as the journal has it.";

/**
 * The recorded answer of an entry as a text to edit: `{text, hint, read(text)}`, where `read` gives the JSON to send or
 * throws an error of the field. Null where the answer cannot be edited, or is not there.
 */
export function editable(entry) {
  if (!entry || !EDITABLE.has(entry.name) || typeof entry.answer !== "string") return null;
  const ok = okOf(entry.answer);
  if (entry.name === "conversation.complete" && typeof ok?.text === "string" && !(ok.calls?.length > 0))
    return { text: ok.text, hint: "The words of the model.", read: (text) => JSON.stringify(text) };
  if (entry.name === "tools.call" && typeof ok?.output === "string" && !ok.truncated && isJson(ok.output))
    return { text: laidOut(ok.output), hint: "The output of the tool: JSON; text goes in quotes.", read: readJson };
  return { text: laidOut(entry.answer), hint: AS_RECORDED, read: readJson };
}

function okOf(answer) {
  try {
    return JSON.parse(answer)?.Ok ?? null;
  } catch {
    return null;
  }
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** JSON over lines; a string keeps its quotes. */
const laidOut = (text) => (text.trimStart().startsWith('"') ? text : pretty(text));

function readJson(text) {
  if (!isJson(text))
    throw Object.assign(new Error('This is no JSON. Text goes in quotes, such as "done".'), { field: "answer" });
  return text;
}
