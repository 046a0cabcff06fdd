// Typed results of a source, as in a notebook: the value of its last expression, and what `display` was given.
//
// A value is one output: a picture (PNG, SVG) where it says how to be shown, JSON where it is plain data, and the text that
// `console.log` prints of it otherwise. HTML is left out: whoever shows it would run it. It bounds what it keeps; the host,
// which trusts none of it, does so again.

import { inspect } from "./inspect.js";
import { Signal } from "./jobs.js";
import { byteLength } from "./utf8.js";

/** Outputs of one source, and bytes of all of them as JSON. */
const OUTPUTS_MAX = 100;
const BYTES_MAX = 8 << 20;
const TEXT_CHARS_MAX = 100_000;
/** Levels of plain data. */
const NESTING_MAX = 50;

/** A method by this name gives a value in forms by their media types, as in notebooks of Deno. */
const DISPLAY = Symbol.for("Jupyter.display");

/** Taken before any source runs, which may put something else in their place. */
const { stringify } = JSON;
const { getOwnPropertyDescriptor, getPrototypeOf, is, keys, prototype } = Object;
const { apply, ownKeys } = Reflect;
const { isArray, prototype: listPrototype } = Array;

/** The outputs of one source, in order. */
export class Outputs {
  /** Each as a line of JSON. */
  lines = [];
  dropped = 0;
  #bytesLeft = BYTES_MAX;
  #isClosed = false;

  /** Shows a value as an output of its own. */
  add(value) {
    if (this.#isClosed) return;
    const line = this.lines.length < OUTPUTS_MAX ? outputOf(value, this.#bytesLeft) : undefined;
    const bytes = line === undefined ? Infinity : byteLength(line);
    if (bytes > this.#bytesLeft) {
      this.dropped += 1;
      return;
    }
    this.#bytesLeft -= bytes;
    this.lines.push(line);
  }

  /** After the end of the run nothing more is kept. */
  close() {
    this.#isClosed = true;
  }
}

/** One value as one output; undefined when it is longer than `bytesMax`. It is shown also if its own methods throw. */
function outputOf(value, bytesMax) {
  const room = { left: bytesMax };
  for (const make of [pictureOf, dataOf]) {
    try {
      const line = make(value, room);
      if (line !== undefined) return line;
    } catch (error) {
      if (error === room) return undefined;
      if (error instanceof Signal) throw error;
    }
  }
  return textOf(shown(value));
}

function shown(value) {
  try {
    return inspect(value);
  } catch (error) {
    if (error instanceof Signal) throw error;
    return `<${typeof value}> (it cannot be shown)`;
  }
}

function textOf(text) {
  const cut = text.length > TEXT_CHARS_MAX ? `${text.slice(0, TEXT_CHARS_MAX)}...` : text;
  return `{"kind":"text","text":${stringify(cut.toWellFormed())}}`;
}

/** A value that says how it is shown, in the first form that is known. */
function pictureOf(value, room) {
  if (typeof value !== "object" || value === null || typeof value[DISPLAY] !== "function") return undefined;
  const forms = apply(value[DISPLAY], value, []);
  const form = (name) => (typeof forms[name] === "string" ? forms[name].toWellFormed() : undefined);
  const png = form("image/png");
  if (png !== undefined) return `{"kind":"png","base64":${stringify(png.replace(/\s+/g, ""))}}`;
  const svg = form("image/svg+xml");
  if (svg !== undefined) return `{"kind":"svg","text":${stringify(svg)}}`;
  const data = forms["application/json"];
  if (data !== undefined) return dataOf(data, room);
  const text = form("text/plain");
  return text === undefined ? undefined : textOf(text);
}

// Plain data, which JSON keeps exactly.

function dataOf(value, room) {
  const json = jsonOf(value, NESTING_MAX, room);
  return json === undefined ? undefined : `{"kind":"json","value":${json}}`;
}

/** A value as JSON; undefined when JSON does not keep it. Throws `room` when it has no more of it. */
function jsonOf(value, left, room) {
  if (isScalar(value)) {
    const json = stringify(value);
    take(room, json.length);
    return json;
  }
  if (typeof value !== "object" || left === 0) return undefined;
  take(room, 2);
  return isArray(value) ? listOf(value, left - 1, room) : objectOf(value, left - 1, room);
}

function isScalar(value) {
  switch (typeof value) {
    case "string":
      return value.isWellFormed();
    case "number":
      return Number.isFinite(value) && !is(value, -0);
    case "boolean":
      return true;
    default:
      return value === null;
  }
}

function listOf(list, left, room) {
  // One with holes, or with properties beside its items, is more than a list.
  if (getPrototypeOf(list) !== listPrototype || keys(list).length !== list.length) return undefined;
  let text = "";
  for (let at = 0; at < list.length; at += 1) {
    const item = jsonOf(list[at], left, room);
    if (item === undefined) return undefined;
    text += at === 0 ? item : `,${item}`;
  }
  return `[${text}]`;
}

function objectOf(object, left, room) {
  const parent = getPrototypeOf(object);
  if (parent !== prototype && parent !== null) return undefined;
  let text = "";
  for (const name of ownKeys(object)) {
    const own = getOwnPropertyDescriptor(object, name);
    if (typeof name !== "string" || !name.isWellFormed() || !own?.enumerable || own.get || own.set) return undefined;
    const value = jsonOf(own.value, left, room);
    if (value === undefined) return undefined;
    take(room, name.length);
    text += `${text === "" ? "" : ","}${stringify(name)}:${value}`;
  }
  return `{${text}}`;
}

/** A value that many others hold could be written without an end. */
function take(room, chars) {
  room.left -= chars;
  if (room.left < 0) throw room;
}
