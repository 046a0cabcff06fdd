// From an author's values to those of the contract. The engine ends the instance without a word at a
// value of the wrong type, so everything that leaves a plugin goes through here and fails by name.

import { Failed } from "./errors.js";
import { writeJson } from "./json.js";
import { show } from "./show.js";

/** A shape takes a value and the name of its place, and gives what the engine wants. */
export function text(value, place) {
  return typeof value === "string" ? value.toWellFormed() : wrong(place, "a text", value);
}

export function bool(value, place) {
  return typeof value === "boolean" ? value : wrong(place, "true or false", value);
}

export function f64(value, place) {
  return typeof value === "number" ? value : wrong(place, "a number", value);
}

export function u32(value, place) {
  const isGood = Number.isInteger(value) && value >= 0 && value < 2 ** 32;
  // The engine reads 32 bits with a sign, and takes them back without one.
  return isGood ? value | 0 : wrong(place, "a whole number from 0 to 4294967295", value);
}

export function bytes(value, place) {
  return value instanceof Uint8Array ? value : wrong(place, "a Uint8Array", value);
}

/** Any value that JSON can hold, as its text. */
export function json(value, place) {
  return writeJson(`\`${place}\``, value);
}

export function oneOf(...names) {
  return (value, place) => (names.includes(value) ? value : wrong(place, `one of ${names.join(", ")}`, value));
}

/** Nothing where the value is undefined or null. */
export function option(shape) {
  return (value, place) => (value === undefined || value === null ? null : shape(value, place));
}

/** `fallback` where nothing is given. */
export function orElse(shape, fallback) {
  return (value, place) => shape(value ?? fallback, place);
}

export function list(shape) {
  return (value, place) => {
    if (!Array.isArray(value)) return wrong(place, "an array", value);
    return value.map((item, at) => shape(item, `${place}[${at}]`));
  };
}

export function record(fields) {
  return (value, place) => {
    if (typeof value !== "object" || value === null) return wrong(place, "an object", value);
    return Object.fromEntries(
      Object.entries(fields).map(([name, shape]) => [name, shape(value[name], place === "" ? name : `${place}.${name}`)]),
    );
  };
}

/** A case with something in it is `{ case: value }`, one without is its name. */
export function variant(cases) {
  return (value, place) => {
    const isName = typeof value === "string";
    const keys = isName ? [value] : Object.keys(value ?? {});
    const [tag] = keys;
    const shape = keys.length === 1 && Object.hasOwn(cases, tag) ? cases[tag] : undefined;
    if (shape === undefined || isName !== (shape === null)) {
      const known = Object.entries(cases).map(([name, inner]) => (inner === null ? `"${name}"` : `{ ${name}: … }`));
      return wrong(place, `one of ${known.join(", ")}`, value);
    }
    return isName ? { tag } : { tag, val: shape(value[tag], `${place}.${tag}`) };
  };
}

const criterion = record({ id: text, text, check: option(text) });
const issue = record({ criterion: option(text), text });

export const task = record({
  id: orElse(text, "task"),
  instruction: text,
  context: orElse(json, {}),
  settings: orElse(json, {}),
  criteria: orElse(list(criterion), []),
  feedback: orElse(list(issue), []),
  round: orElse(u32, 1),
});

export const outcome = record({
  output: json,
  summary: orElse(text, ""),
  confidence: option(f64),
  unknowns: orElse(list(text), []),
});

const bodyOfCheck = variant({ source: record({ language: text, text }), native: text });

/** `{ python: source }` is short for source of that language. */
function checkBody(value, place) {
  const isShort = typeof value === "object" && value !== null && Object.hasOwn(value, "python");
  return bodyOfCheck(isShort ? { source: { language: "python", text: value.python } } : value, place);
}

export const workPlan = record({
  steps: list(
    record({
      id: text,
      title: text,
      instruction: text,
      category: orElse(text, "functional"),
      priority: orElse(u32, 5),
      agent: option(text),
      criteria: orElse(list(criterion), []),
      checks: orElse(list(record({ name: text, body: checkBody })), []),
      dependsOn: orElse(list(text), []),
      onFailure: orElse(variant({ retry: u32, skip: null, replan: null, abort: null }), { retry: 1 }),
    }),
  ),
  notes: orElse(text, ""),
});

export const synthesis = record({
  answer: json,
  confidence: option(f64),
  conflicts: orElse(list(text), []),
  unknowns: orElse(list(text), []),
});

export const verdict = record({
  judgements: list(record({ criterion: text, mark: oneOf("pass", "fail", "unknown"), reason: orElse(text, "") })),
  issues: orElse(list(issue), []),
});

export const entry = record({ key: text, value: json, tags: orElse(list(text), []), expiresAtMs: option(f64) });

export const hit = record({ entry, score: f64 });

export const page = record({ keys: list(text), cursor: option(text) });

function wrong(place, wanted, value) {
  throw new Failed(`\`${place}\` must be ${wanted}, not ${value === undefined ? "undefined" : show(value)}`);
}
