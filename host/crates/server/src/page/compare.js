// Runs beside each other in words: their letters, what differs in a step, the numbers of steps, and which rows are
// shown. Pure.

import { count } from "./format.js";

/** Runs have letters, in the order in which they were named. */
export const letter = (place) => String.fromCharCode(65 + (place % 26));

/** Whether the runs did the same in a step. */
export const isSame = (step) => step.change === "same" || step.change === "request";

const CHANGES = {
  same: "the same",
  request: "the same reply to another request",
  call: "the call differs",
  answer: "the answer differs",
};

/** What differs in a step of so many runs. */
export function changeWords(step, runs) {
  if (step.change !== "missing") return CHANGES[step.change] ?? step.change;
  const has = new Set(step.sides.map((side) => side.run));
  const missing = Array.from({ length: runs }, (_, place) => place).filter((place) => !has.has(place));
  return `${missing.map(letter).join(" and ")} ${missing.length === 1 ? "does" : "do"} not have it`;
}

/** The numbers of steps; those that are none are left out. */
export function countsWords(counts) {
  const told = [
    [counts.same, "the same"],
    [counts.request, "with the same reply to another request"],
    [counts.call, "with another call"],
    [counts.answer, "with another answer"],
    [counts.missing, "that not all runs have"],
  ].filter(([number]) => number > 0);
  return told.length === 0 ? "none" : told.map(([number, words]) => `${count(number)} ${words}`).join(", ");
}

/**
 * The rows of steps: `{step}`, and `{gap}` for so many steps that are not shown there. `total` is the number of all
 * steps, and `onlyDifferent` leaves those out in which the runs did the same.
 */
export function rowsOf(steps, total, onlyDifferent) {
  const rows = [];
  let before = 0;
  for (const step of steps.filter((one) => !onlyDifferent || !isSame(one))) {
    if (step.number > before + 1) rows.push({ gap: step.number - before - 1 });
    rows.push({ step });
    before = step.number;
  }
  if (total > before) rows.push({ gap: total - before });
  return rows;
}

/** The number of all steps. */
export const totalOf = (counts) => counts.same + counts.request + counts.call + counts.answer + counts.missing;
