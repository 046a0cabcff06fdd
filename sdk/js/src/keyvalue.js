// The plugin's own durable key-value space. A value is bytes; texts and JSON are kept as UTF-8.

import host from "#host/keyvalue";
import { decode, encode } from "#utf8";

import { ask } from "./errors.js";
import { readJson } from "./json.js";
import * as shape from "./shapes.js";

/** The bytes of `key`, or undefined. */
export function get(key) {
  return ask(() => host.get(shape.text(key, "key"))) ?? undefined;
}

export function getText(key) {
  const bytes = get(key);
  return bytes === undefined ? undefined : decode(bytes);
}

export function getJson(key) {
  const text = getText(key);
  return text === undefined ? undefined : readJson(`the value of \`${key}\``, text);
}

/** Keeps a text or bytes. */
export function set(key, value) {
  const bytes = typeof value === "string" ? encode(value) : shape.bytes(value, "value");
  ask(() => host.set(shape.text(key, "key"), bytes));
}

export function setJson(key, value) {
  set(key, shape.json(value, "value"));
}

function remove(key) {
  ask(() => host.delete(shape.text(key, "key")));
}

export { remove as delete };

export function has(key) {
  return ask(() => host.exists(shape.text(key, "key")));
}

/** All keys that start with `prefix`, page after page. */
export function* keys(prefix = "") {
  let cursor = null;
  do {
    const page = ask(() => host.listKeys(shape.text(prefix, "prefix"), cursor));
    yield* page.keys;
    cursor = page.cursor ?? null;
  } while (cursor !== null);
}
