// The memory backend `{{name}}`: entries in the key-value space, which is the only place of truth.
//
// An instance may be gone after any call, so nothing is kept in it.

import { defineMemory, Invalid, keyvalue, nowMs } from "longhaul-sdk";

export const memory = defineMemory({
  put(namespace, { key, value, tags, expiresAtMs }) {
    if (key === "") throw new Invalid("an entry needs a key");
    keyvalue.setJson(place(namespace, key), { value, tags, expiresAtMs: expiresAtMs ?? null });
  },

  get: read,

  search(namespace, query, limit) {
    const words = query.toLowerCase().split(/\s+/).filter((word) => word !== "");
    const hits = [];
    for (const entry of entries(namespace, "")) {
      const text = [entry.key, ...entry.tags, JSON.stringify(entry.value)].join(" ").toLowerCase();
      const found = words.filter((word) => text.includes(word)).length;
      if (found > 0) hits.push({ entry, score: found / words.length });
    }
    // The sort is stable, so equal scores stay in the order of their keys.
    return hits.sort((a, b) => b.score - a.score).slice(0, limit);
  },

  delete(namespace, key) {
    const wasThere = read(namespace, key) !== undefined;
    keyvalue.delete(place(namespace, key));
    return wasThere;
  },

  list(namespace, { prefix, cursor, limit }) {
    const keys = [...entries(namespace, prefix)].map((entry) => entry.key);
    const start = cursor === undefined ? 0 : keys.findIndex((key) => isBehind(key, cursor));
    const left = start < 0 ? [] : keys.slice(start);
    const listed = left.slice(0, limit);
    return { keys: listed, cursor: left.length > limit ? listed.at(-1) : undefined };
  },
});

/** The key of an entry. The length in front keeps `a` + `bc` apart from `ab` + `c`. */
function place(namespace, key) {
  return `${namespace.length}:${namespace}${key}`;
}

/** The entry, unless it has expired; then it is removed. */
function read(namespace, key) {
  const kept = keyvalue.getJson(place(namespace, key));
  if (kept === undefined) return undefined;
  if (kept.expiresAtMs !== null && kept.expiresAtMs <= nowMs()) {
    keyvalue.delete(place(namespace, key));
    return undefined;
  }
  return { key, ...kept };
}

/** Entries whose keys begin with `prefix`; the host gives them in order. */
function* entries(namespace, prefix) {
  const start = place(namespace, "");
  for (const kept of [...keyvalue.keys(start + prefix)]) {
    const entry = read(namespace, kept.slice(start.length));
    if (entry !== undefined) yield entry;
  }
}

/** In the order of code points, which is the host's; `<` of JavaScript has another one. */
function isBehind(key, after) {
  const [one, other] = [[...key], [...after]];
  const at = one.findIndex((char, at) => char !== other[at]);
  return at >= 0 && (at >= other.length || one[at].codePointAt(0) > other[at].codePointAt(0));
}
