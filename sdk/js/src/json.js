// Reading and writing JSON that others see: settings, contexts, arguments, the replies of models.
//
// Errors say what was expected and what was there. Depth is bounded: the engine's own parser exhausts the
// stack some 400 levels down, which no script can catch, and the host's stops at 128.

import { Failed, Invalid } from "./errors.js";

/** Most levels of nested arrays and objects. */
const NESTING_MAX = 100;

/** Number of `{` that `firstObject` tries: a reply of nothing else must not cost its square. */
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
  if (scan(text, 0, () => false).isDeep) throw new SyntaxError(`it is nested deeper than ${NESTING_MAX} levels`);
}

/** The object whose text starts at `start`, if there is a whole one. */
function objectAt(text, start) {
  const { end } = scan(text, start, (depth) => depth === 0);
  try {
    return end === undefined ? undefined : JSON.parse(text.slice(start, end));
  } catch {
    return undefined;
  }
}

/** Goes from bracket to bracket, past what is in quotes, until one behind which `isEnd` of the depth holds. */
function scan(text, start, isEnd) {
  const mark = /["[\]{}]/g;
  mark.lastIndex = start;
  for (let depth = 0, found = mark.exec(text); found !== null; found = mark.exec(text)) {
    if (found[0] === '"') {
      mark.lastIndex = endOfText(text, found.index);
      continue;
    }
    depth += found[0] === "{" || found[0] === "[" ? 1 : -1;
    if (depth > NESTING_MAX) return { isDeep: true };
    if (isEnd(depth)) return { end: mark.lastIndex };
  }
  return {};
}

/** The end of the quoted text at `start`. By hand: the engine's expressions need memory for each character. */
function endOfText(text, start) {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let escapes = 0;
    while (text[at - 1 - escapes] === "\\") escapes += 1;
    if (escapes % 2 === 0) return at + 1;
  }
  return text.length;
}
