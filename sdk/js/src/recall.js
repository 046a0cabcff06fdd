// Memory of this run (`working`) and of earlier ones (`episodic`).

import host from "#host/recall";

import { ask } from "./errors.js";
import { readJson } from "./json.js";
import * as shape from "./shapes.js";

const tierOf = shape.oneOf("working", "episodic");

export function remember(tier, key, value) {
  ask(() => host.remember(tierOf(tier, "tier"), shape.text(key, "key"), shape.json(value, "value")));
}

/** The value that was remembered under `key`, or undefined. */
export function fetch(tier, key) {
  const found = ask(() => host.fetch(tierOf(tier, "tier"), shape.text(key, "key")));
  return found === null || found === undefined ? undefined : readJson("what was remembered", found);
}

/** `{ key, value, tier, score }` of each that is relevant, best first. */
export function search(query, limit = 10) {
  const found = ask(() => host.search(shape.text(query, "query"), shape.u32(limit, "limit")));
  return found.map((one) => ({ ...one, value: readJson("what was remembered", one.value) }));
}
