// `console`: what it prints, and where.
//
// It keeps counts, timers and the indent of groups, and prints nothing by itself: it is given two outputs.

import { format, inspect } from "./inspect.js";

/** `out` and `err` give the outputs of the run; `now` the time in milliseconds. */
export function makeConsole({ out, err, now }) {
  let indent = "";
  const counts = new Map();
  const starts = new Map();
  const print = (output, args) => {
    if (output.isFull) return;
    const text = format(args);
    output.write(indent === "" ? `${text}\n` : `${indent}${text.replaceAll("\n", `\n${indent}`)}\n`);
  };
  const log = (...args) => print(out(), args);
  const warn = (...args) => print(err(), args);
  const since = (label) => `${label}: ${(now() - (starts.get(label) ?? now())).toFixed(3)}ms`;
  const group = (...args) => {
    if (args.length > 0) log(...args);
    indent += "  ";
  };
  return {
    log,
    info: log,
    debug: log,
    error: warn,
    warn,
    dir: (value, options) => log(inspect(value, options)),
    dirxml: log,
    table: (data, columns) => log(isTable(data) ? table(data, columns) : data),
    trace: (...args) => warn(`Trace: ${format(args)}\n${new Error().stack.split("\n").slice(1).join("\n")}`),
    assert: (condition, ...args) => {
      if (!condition) warn(args.length > 0 ? `Assertion failed: ${format(args)}` : "Assertion failed");
    },
    count: (label = "default") => {
      counts.set(label, (counts.get(label) ?? 0) + 1);
      log(`${label}: ${counts.get(label)}`);
    },
    countReset: (label = "default") => counts.delete(label),
    time: (label = "default") => starts.set(label, now()),
    timeLog: (label = "default", ...args) => log(since(label), ...args),
    timeEnd: (label = "default") => {
      log(since(label));
      starts.delete(label);
    },
    group,
    groupCollapsed: group,
    groupEnd: () => {
      indent = indent.slice(2);
    },
  };
}

function isTable(data) {
  return typeof data === "object" && data !== null;
}

/** Rows of `data` with a column for each property, in a frame. */
function table(data, wanted) {
  const shown = (value) => inspect(value, { depth: isTable(value) ? 0 : undefined });
  const isMap = data instanceof Map;
  const isIterated = isMap || data instanceof Set;
  const rows = isIterated ? [...data].map((item, at) => [String(at), item]) : Object.entries(data);
  const columns = wanted ? [...wanted] : [];
  const lines = [];
  let hasKeys = false;
  let hasValues = false;
  for (const [index, row] of rows) {
    const line = { index, cells: {}, key: "", value: "" };
    const value = isMap ? row[1] : row;
    if (isMap) [hasKeys, line.key] = [true, shown(row[0])];
    if (isTable(value) && !isMap) {
      for (const name of wanted ?? Object.keys(value)) {
        if (!columns.includes(name)) columns.push(name);
        if (Object.hasOwn(value, name)) line.cells[name] = shown(value[name]);
      }
    } else [hasValues, line.value] = [true, shown(value)];
    lines.push(line);
  }
  const head = [isIterated ? "(iteration index)" : "(index)", ...(hasKeys ? ["Key"] : []), ...columns, ...(hasValues ? ["Values"] : [])];
  const body = lines.map(({ index, key, cells, value }) => [
    index,
    ...(hasKeys ? [key] : []),
    ...columns.map((name) => cells[name] ?? ""),
    ...(hasValues ? [value] : []),
  ]);
  return framed(head, body);
}

function framed(head, body) {
  const widths = head.map((name, at) => Math.max(...[name, ...body.map((row) => row[at])].map(widthOf)) + 2);
  const padded = (text, width) => ` ${text}${" ".repeat(width - widthOf(text) - 1)}`;
  const line = (row) => `│${row.map((text, at) => padded(text, widths[at])).join("│")}│`;
  const rule = (left, middle, right) => left + widths.map((width) => "─".repeat(width)).join(middle) + right;
  return [rule("┌", "┬", "┐"), line(head), rule("├", "┼", "┤"), ...body.map(line), rule("└", "┴", "┘")].join("\n");
}

/** Columns that a text takes: wide characters of East Asia and pictures take two. */
function widthOf(text) {
  let width = 0;
  for (const char of text) width += /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f300}-\u{1faff}]/u.test(char) ? 2 : /\p{Mn}/u.test(char) ? 0 : 1;
  return width;
}
