// `require("assert")`, since a check is mostly that. The strict comparisons are what Node's are, for
// plain values, arrays, maps, sets, dates, errors and typed arrays; the loose ones compare with `==`.

import { inspect } from "./inspect.js";

const show = (value) => inspect(value, { depth: 4 });

export class AssertionError extends Error {
  constructor({ message, actual, expected, operator }) {
    super(message);
    this.name = "AssertionError";
    Object.assign(this, { code: "ERR_ASSERTION" });
    for (const [name, value] of Object.entries({ actual, expected, operator })) {
      Object.defineProperty(this, name, { value, configurable: true, writable: true });
    }
  }
}

export function assert(value, message) {
  if (!value) fail(message, `The expression evaluated to a falsy value: ${show(value)}`, value, true, "==");
}

Object.assign(assert, {
  AssertionError,
  ok: assert,
  equal: (actual, expected, message) =>
    check(actual == expected || (actual !== actual && expected !== expected), message, actual, expected, "=="),
  notEqual: (actual, expected, message) => check(actual != expected, message, actual, expected, "!="),
  strictEqual: (actual, expected, message) => check(Object.is(actual, expected), message, actual, expected, "strictEqual"),
  notStrictEqual: (actual, expected, message) =>
    check(!Object.is(actual, expected), message, actual, expected, "notStrictEqual"),
  deepEqual: (actual, expected, message) => check(isDeepEqual(actual, expected, false), message, actual, expected, "deepEqual"),
  notDeepEqual: (actual, expected, message) =>
    check(!isDeepEqual(actual, expected, false), message, actual, expected, "notDeepEqual"),
  deepStrictEqual: (actual, expected, message) =>
    check(isDeepEqual(actual, expected, true), message, actual, expected, "deepStrictEqual"),
  notDeepStrictEqual: (actual, expected, message) =>
    check(!isDeepEqual(actual, expected, true), message, actual, expected, "notDeepStrictEqual"),
  match: (text, pattern, message) => check(pattern.test(text), message, text, pattern, "match"),
  doesNotMatch: (text, pattern, message) => check(!pattern.test(text), message, text, pattern, "doesNotMatch"),
  fail: (message = "Failed") => fail(message, "Failed", undefined, undefined, "fail"),
  throws(action, expected, message) {
    let error;
    try {
      action();
    } catch (thrown) {
      error = { thrown };
    }
    if (error === undefined) {
      fail(typeof expected === "string" ? expected : message, "Missing expected exception.", undefined, expected, "throws");
    }
    if (!isExpected(error.thrown, expected)) throw error.thrown;
  },
  doesNotThrow(action, message) {
    try {
      action();
    } catch (error) {
      fail(message, `Got unwanted exception.\nActual message: "${error?.message}"`, error, undefined, "doesNotThrow");
    }
  },
  rejects(promise, expected, message) {
    const pending = typeof promise === "function" ? promise() : promise;
    return pending.then(
      () => fail(message, "Missing expected rejection.", undefined, expected, "rejects"),
      (error) => {
        if (!isExpected(error, expected)) throw error;
      },
    );
  },
  ifError(value) {
    if (value !== null && value !== undefined) throw value;
  },
});
assert.strict = Object.assign((value, message) => assert(value, message), assert, {
  equal: assert.strictEqual,
  notEqual: assert.notStrictEqual,
  deepEqual: assert.deepStrictEqual,
  notDeepEqual: assert.notDeepStrictEqual,
});
assert.strict.strict = assert.strict;

const SAYINGS = {
  "==": "loosely equal",
  "!=": "not loosely equal",
  strictEqual: "strictly equal",
  notStrictEqual: "not strictly equal",
  deepEqual: "loosely deep-equal",
  notDeepEqual: "not loosely deep-equal",
  deepStrictEqual: "strictly deep-equal",
  notDeepStrictEqual: "not strictly deep-equal",
  match: "matching",
  doesNotMatch: "not matching",
};

function check(isGood, message, actual, expected, operator) {
  if (isGood) return;
  const text = `Expected values to be ${SAYINGS[operator]}:\n\n${show(actual)} !== ${show(expected)}\n`;
  fail(message, text, actual, expected, operator);
}

function fail(message, fallback, actual, expected, operator) {
  if (message instanceof Error) throw message;
  throw new AssertionError({ message: message ?? fallback, actual, expected, operator });
}

function isExpected(error, expected) {
  if (expected === undefined || typeof expected === "string") return true;
  if (expected instanceof RegExp) return expected.test(String(error));
  if (typeof expected === "function") {
    if (expected.prototype !== undefined && error instanceof expected) return true;
    return !(expected === Error || expected.prototype instanceof Error) && expected(error) === true;
  }
  return Object.keys(expected).every((key) =>
    expected[key] instanceof RegExp && typeof error?.[key] === "string"
      ? expected[key].test(error[key])
      : isDeepEqual(error?.[key], expected[key], true),
  );
}

/** Cycles are followed once: a pair that is being compared counts as equal. */
export function isDeepEqual(actual, expected, isStrict, pairs = []) {
  if (Object.is(actual, expected)) return true;
  if (typeof actual !== "object" || typeof expected !== "object" || actual === null || expected === null) {
    return !isStrict && (actual == expected || (actual !== actual && expected !== expected));
  }
  if (isStrict && Object.getPrototypeOf(actual) !== Object.getPrototypeOf(expected)) return false;
  const kind = (value) => Object.prototype.toString.call(value);
  if (kind(actual) !== kind(expected) || Array.isArray(actual) !== Array.isArray(expected)) return false;
  if (pairs.some(([one, other]) => one === actual && other === expected)) return true;
  const deeper = [...pairs, [actual, expected]];
  const equal = (one, other) => isDeepEqual(one, other, isStrict, deeper);
  if (actual instanceof Date && actual.getTime() !== expected.getTime()) return false;
  if (actual instanceof RegExp && String(actual) !== String(expected)) return false;
  if (actual instanceof Error && (actual.message !== expected.message || actual.name !== expected.name)) return false;
  if (actual instanceof Number || actual instanceof String || actual instanceof Boolean) {
    if (!Object.is(actual.valueOf(), expected.valueOf())) return false;
  }
  if (actual instanceof Set) {
    if (actual.size !== expected.size) return false;
    return [...actual].every((item) => expected.has(item) || [...expected].some((other) => equal(item, other)));
  }
  if (actual instanceof Map) {
    if (actual.size !== expected.size) return false;
    return [...actual].every(([key, item]) =>
      expected.has(key)
        ? equal(item, expected.get(key))
        : [...expected].some(([otherKey, other]) => equal(key, otherKey) && equal(item, other)),
    );
  }
  const keys = Object.keys(actual);
  if (actual.length !== expected.length || keys.length !== Object.keys(expected).length) return false;
  return keys.every((key) => Object.hasOwn(expected, key) && equal(actual[key], expected[key]));
}
