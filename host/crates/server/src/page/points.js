// Points of the past of a run, as the API writes them, and the addresses of the places that show them. Pure.

import { queryOf } from "./api.js";

/** The point at an event. */
export const eventPoint = (number) => `event:${number}`;

/** The number of the event that a point names; null for another point. */
export function eventOf(point) {
  const found = /^event:([1-9]\d{0,15})$/.exec(String(point ?? ""));
  return found ? Number(found[1]) : null;
}

/** The point at an entry of an invocation, whose name begins with its run. */
export const entryPoint = (invocation, number) => `entry:${keyOf(invocation)}:${number}`;

/** The entry that a point names, `{key, number}`; null for another point, or for one that names no invocation. */
export function entryOf(point) {
  const found = /^entry:(.+):([1-9]\d{0,9})$/.exec(String(point ?? ""));
  return found ? { key: found[1], number: Number(found[2]) } : null;
}

/** An invocation without its run. */
export function keyOf(invocation) {
  const text = String(invocation);
  return /^r-[^/]*\//.test(text) ? text.slice(text.indexOf("/") + 1) : text;
}

/** The address of a run at a point; `beside` has the present beside it. */
export const pastHref = (run, point, beside = false) =>
  `#/runs/${run}/past${queryOf({ at: point, now: beside ? "true" : null })}`;

/** The address of a run beside another one. */
export const besideHref = (run, other) => `#/runs/${run}/compare${queryOf({ with: other })}`;
