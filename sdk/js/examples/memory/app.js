// The memory backend `shelf`: its truth is in the plugin's key-value space, so it survives every restart.
//
// An entry is kept under `LENGTH/NAMESPACE/KEY`, with the length of the namespace: so no two pairs can collide,
// whatever is in them. An entry that has expired is deleted when it is met.

import { defineMemory, Invalid, keyvalue, nowMs } from "longhaul-sdk";

export const memory = defineMemory({
  put(namespace, entry) {
    keyvalue.setJson(placeOf(namespace, entry.key), entry);
  },

  get(namespace, key) {
    return fetch(placeOf(namespace, key));
  },

  delete(namespace, key) {
    const place = placeOf(namespace, key);
    if (fetch(place) === undefined) return false;
    keyvalue.delete(place);
    return true;
  },

  list(namespace, { prefix, cursor, limit }) {
    const keys = entriesOf(namespace)
      .map((entry) => entry.key)
      .filter((key) => key.startsWith(prefix) && (cursor === undefined || compare(key, cursor) > 0));
    const shown = keys.slice(0, limit);
    return { keys: shown, cursor: keys.length > shown.length ? shown.at(-1) : undefined };
  },

  search(namespace, query, limit) {
    const words = [...new Set(wordsOf(query))];
    if (words.length === 0) return [];
    return entriesOf(namespace)
      .map((entry) => ({ entry, score: share(words, entry) }))
      .filter(({ score }) => score > 0)
      .sort((one, other) => other.score - one.score || compare(one.entry.key, other.entry.key))
      .slice(0, limit);
  },
});

/** The entries of a namespace that have not expired, in the order of their keys. */
function entriesOf(namespace) {
  const places = [...keyvalue.keys(prefixOf(namespace))];
  const entries = places.map(fetch).filter((entry) => entry !== undefined);
  return entries.sort((one, other) => compare(one.key, other.key));
}

function fetch(place) {
  const entry = keyvalue.getJson(place);
  if (entry === undefined) return undefined;
  if (entry.expiresAtMs === undefined || entry.expiresAtMs > nowMs()) return entry;
  keyvalue.delete(place);
  return undefined;
}

/** The share of `words` that stand in the key, in a tag or in the value as JSON. */
function share(words, { key, tags, value }) {
  const text = [key, ...tags, JSON.stringify(value)].join("\n").toLowerCase();
  return words.filter((word) => text.includes(word)).length / words.length;
}

function wordsOf(text) {
  return text.toLowerCase().split(/\s+/).filter((word) => word !== "");
}

function placeOf(namespace, key) {
  if (key === "") throw new Invalid("the key of an entry cannot be empty");
  return prefixOf(namespace) + key;
}

function prefixOf(namespace) {
  return `${namespace.length}/${namespace}/`;
}

/** By code point; the language itself compares UTF-16 units, and those differ past U+FFFF. */
function compare(one, other) {
  const left = Array.from(one);
  const right = Array.from(other);
  const at = left.findIndex((char, index) => char !== right[index]);
  if (at < 0) return left.length - right.length;
  return right[at] === undefined ? 1 : left[at].codePointAt(0) - right[at].codePointAt(0);
}
