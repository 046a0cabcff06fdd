// Where in the sources an error was made: `error.stack` in the form that scripts know from Node.
//
// The engine calls all evaluated text `<input>`, so each source starts at a line of its own, and the
// line tells the source. Frames of this plugin are left out.

import { describeError } from "./inspect.js";
import { reword } from "./messages.js";

const ENGINE_NAME = "<input>";
const OWN_PREFIX = "componentize-qjs:";
const FRAMES_MAX = 16;

/** In the global scope; a script may have put another `eval` in its place. */
const evaluate = globalThis.eval;

/** What was evaluated, in order: its name, its lines, and the line before its first. */
const sources = [];

export const MAIN_NAME = "<javascript>";

/** Makes errors carry stacks of this form. */
export function installStacks() {
  Error.stackTraceLimit = FRAMES_MAX;
  Error.prepareStackTrace = (error, sites) => {
    const found = frames(sites);
    reword(error, found[0]?.text, found[0]?.textColumn);
    return [describeError(error), ...found.map(showFrame)].join("\n");
  };
}

export function forgetSources() {
  sources.length = 0;
}

/** Makes room for a source; what it gives goes before the text that is evaluated. */
export function place(name, text) {
  const before = sources.reduce((sum, source) => sum + source.lines.length, 0);
  sources.push({ name, lines: text.split("\n"), before });
  return "\n".repeat(before);
}

/** Evaluates code of this plugin that is kept as text, and gives its exports. */
export function evaluateOwn(name, text) {
  return evaluate(`${place(OWN_PREFIX + name, text)}(function () { ${text}; return made; })()`);
}

/** The columns of a rewritten source are not those that its author sees. */
export function markRewritten(name, text) {
  sources.findLast((source) => source.name === name).rewritten = text.split("\n");
}

/** Where the running code is, innermost first. */
export function here() {
  const { prepareStackTrace, stackTraceLimit } = Error;
  try {
    Error.stackTraceLimit = 1_000;
    Error.prepareStackTrace = (_, sites) => frames(sites);
    return new Error().stack;
  } finally {
    Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  }
}

/** The line that an error comes from, with a mark below it, as far as its stack tells. */
export function excerpt(stack) {
  const [, name, line, column] = /^ {4}at (?:[^()]* \()?([^\s()]+?):(\d+)(?::(\d+))?\)?$/m.exec(stack) ?? [];
  const source = sources.find((source) => source.name === name);
  const text = source?.lines[line - 1];
  if (text === undefined || text.length > 200) return "";
  const mark = column === undefined ? "" : `${text.slice(0, Math.max(column - 1, 0)).replace(/[^\t]/g, " ")}^\n`;
  return `${name}:${line}\n${text}\n${mark}\n`;
}

function frames(sites) {
  const found = sites.map((site) =>
    locate({
      file: site.getFileName(),
      name: site.getFunctionName(),
      line: site.getLineNumber(),
      column: site.getColumnNumber(),
    }),
  );
  const isOwn = (frame) => typeof frame?.file === "string" && frame.file.startsWith(OWN_PREFIX);
  const isNative = (frame) => typeof frame.file !== "string";
  // A native frame right above one of ours was called by us: the `eval` of the source, for one.
  const kept = found.filter((frame, at) => !isOwn(frame) && !(isNative(frame) && isOwn(found[at + 1])));
  return kept;
}

function locate(frame) {
  if (frame.file !== ENGINE_NAME) return frame;
  const source = sources.findLast((source) => source.before < frame.line);
  if (source === undefined) return frame;
  const line = frame.line - source.before;
  const text = (source.rewritten ?? source.lines)[line - 1];
  const column = source.rewritten ? undefined : frame.column;
  return { ...frame, file: source.name, line, column, text, textColumn: frame.column };
}

function showFrame({ file, name, line, column }) {
  const at = typeof file === "string" ? [file, line, column].filter((part) => part !== undefined).join(":") : "native";
  return name && name !== "<eval>" && name !== "<anonymous>" ? `    at ${name} (${at})` : `    at ${at}`;
}
