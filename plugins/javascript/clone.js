// `structuredClone`: copies of values, with their cycles and shared parts.
//
// Functions, symbols and what has neither data nor a meaning elsewhere are refused with a DataCloneError, as elsewhere.

const ERRORS = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
const toStringOf = Object.prototype.toString;

/** A copy of `value`. What is in `transfer` is emptied. */
export function structuredClone(value, { transfer = [] } = {}) {
  const copy = clone(value, new Map());
  for (const buffer of transfer) buffer.transfer();
  return copy;
}

function clone(value, seen) {
  if (typeof value === "symbol" || typeof value === "function") refuse(value);
  if (typeof value !== "object" || value === null) return value;
  if (seen.has(value)) return seen.get(value);
  const copy = emptyCopy(value, seen);
  seen.set(value, copy);
  const deeper = (inner) => clone(inner, seen);
  // Entries are taken first: a getter in one of them may change the collection.
  if (value instanceof Map) for (const [key, item] of [...value]) copy.set(deeper(key), deeper(item));
  else if (value instanceof Set) for (const item of [...value]) copy.add(deeper(item));
  else if (!isWhole(value)) for (const key of Object.keys(value)) copy[key] = deeper(value[key]);
  return copy;
}

/** True if all of `value` that counts is copied at once. */
function isWhole(value) {
  const kinds = [Date, RegExp, ArrayBuffer, Error, Boolean, Number, String, BigInt];
  return ArrayBuffer.isView(value) || kinds.some((Kind) => value instanceof Kind);
}

function emptyCopy(value, seen) {
  if (value instanceof Date) return new Date(value.getTime());
  if (value instanceof RegExp) return new RegExp(value.source, value.flags);
  if (value instanceof Error) return copyError(value, seen);
  if (value instanceof ArrayBuffer) return value.slice();
  if (ArrayBuffer.isView(value)) return copyView(value, seen);
  if (value instanceof Map) return new Map();
  if (value instanceof Set) return new Set();
  if ([Boolean, Number, String, BigInt].some((Kind) => value instanceof Kind)) return Object(value.valueOf());
  if (Array.isArray(value)) return new Array(value.length);
  if ([WeakMap, WeakSet, WeakRef, Promise, Symbol].some((Kind) => value instanceof Kind)) refuse(value);
  if (/^\[object (Generator|AsyncGenerator|Promise|[A-Za-z ]+ Iterator)\]$/.test(toStringOf.call(value))) refuse(value);
  return {};
}

/** Two views of one buffer stay views of one buffer. */
function copyView(value, seen) {
  const buffer = clone(value.buffer, seen);
  const Kind = value instanceof DataView ? DataView : globalThis[viewName(value)];
  return new Kind(buffer, value.byteOffset, value instanceof DataView ? value.byteLength : value.length);
}

function viewName(value) {
  const name = value[Symbol.toStringTag];
  return typeof globalThis[name] === "function" ? name : "Uint8Array";
}

function copyError(error, seen) {
  const Kind = ERRORS[error.name] ?? Error;
  const copy = new Kind(error.message);
  seen.set(error, copy);
  for (const name of ["stack", "cause"]) {
    if (!Object.hasOwn(error, name)) continue;
    Object.defineProperty(copy, name, { value: clone(error[name], seen), writable: true, configurable: true });
  }
  return copy;
}

function refuse(value) {
  const text = typeof value === "object" ? `#<${value.constructor?.name ?? "Object"}>` : String(value);
  throw new DOMException(`${text} could not be cloned.`, "DataCloneError");
}
