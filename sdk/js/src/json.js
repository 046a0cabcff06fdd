// Reading and writing JSON that others see: settings, contexts, arguments, the replies of models.
//
// Errors say what was expected and what was there. Depth is bounded: the engine's own parser exhausts the
// stack some 400 levels down, which no script can catch, and the host's stops at 128.

import { Failed, Invalid } from "./errors.js";

/** How deeply arrays and objects may be nested. */
const NESTING_MAX = 100;

/** How many `{` `firstObject` tries: a reply of nothing else must not cost its square. */
const STARTS_MAX = 1_000;

/** Reads `text`, which is called `what` in the error. */
export function readJson(what, text) {
  try {
    checkNesting(text);
    return JSON.parse(text);
  } catch (error) {
    throw new Invalid(`${what} cannot be read: ${error.message}`);
  }
}

/** Reads an object. Empty text reads as `{}`, so that settings that nobody wrote take their defaults. */
export function readObject(what, text) {
  const value = text.trim() === "" ? {} : readJson(what, text);
  if (!isObject(value)) throw new Invalid(`${what} must be a JSON object`);
  return value;
}

/** `value` as JSON; a value that JSON has no place for, such as a function, is an error. */
export function writeJson(what, value) {
  let text;
  try {
    text = JSON.stringify(value);
    if (text === undefined) throw new TypeError(`it is ${typeof value}`);
    checkNesting(text);
  } catch (error) {
    throw new Failed(`${what} is no JSON: ${error.message}`);
  }
  // A lone surrogate is written as an escape that other parsers refuse.
  return text.includes("\\ud") ? text.replace(/\\(?:u(d[89a-f][0-9a-f]{2})|.)/g, (found, lone) => (lone ? "\\ufffd" : found)) : text;
}

/**
 * The first complete JSON object in `text` that is `wanted`, found by trying every `{`. Models wrap
 * their JSON in prose, fences and false starts.
 */
export function firstObject(text, wanted = () => true) {
  let at = text.indexOf("{");
  for (let tries = 0; at >= 0 && tries < STARTS_MAX; tries += 1) {
    const value = objectAt(text, at);
    if (value !== undefined && wanted(value)) return value;
    at = text.indexOf("{", at + 1);
  }
  return undefined;
}

export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function checkNesting(text) {
  // Few brackets cannot nest deeply, and that is quickly seen.
  if (text.split(/[[{]/, NESTING_MAX + 2).length <= NESTING_MAX + 1) return;
  let depth = 0;
  for (const [mark] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    if (mark === "[" || mark === "{") depth += 1;
    else if (mark === "]" || mark === "}") depth -= 1;
    if (depth > NESTING_MAX) throw new SyntaxError(`it is nested deeper than ${NESTING_MAX} levels`);
  }
}

/** The object whose text starts at `start`, if there is a whole one. */
function objectAt(text, start) {
  let depth = 0;
  const marks = /"(?:[^"\\]|\\.)*"|[[\]{}]/gs;
  marks.lastIndex = start;
  for (let found = marks.exec(text); found !== null; found = marks.exec(text)) {
    if (found[0] === "{" || found[0] === "[") depth += 1;
    else if (found[0] === "}" || found[0] === "]") depth -= 1;
    if (depth > NESTING_MAX) return undefined;
    if (depth > 0) continue;
    try {
      return JSON.parse(text.slice(start, marks.lastIndex));
    } catch {
      return undefined;
    }
  }
  return undefined;
}
