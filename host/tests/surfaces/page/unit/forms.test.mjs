// What a form says of a value before it sends anything, at each bound, one below and one above. What the browser thinks
// of a value is in `validity`; the words are ours.

import assert from "node:assert/strict";
import test from "node:test";

const { fault } = await import(new URL("ui.js", process.env.PAGE_MODULES));

/** A control of which a browser says these things, or that it is well. */
const control = (props, ...wrong) => ({
  type: "number",
  min: "",
  max: "",
  step: "",
  validity: { valid: wrong.length === 0, ...Object.fromEntries(wrong.map((name) => [name, true])) },
  ...props,
});

const priority = { min: "1", max: "10" };
const score = { min: "-1", max: "1", step: "0.1" };

for (const [name, given, expected] of [
  ["a number inside of its bounds", control(priority), null],
  ["a number above them", control(priority, "rangeOverflow"), "Write a whole number from 1 to 10."],
  ["a number below them", control(priority, "rangeUnderflow"), "Write a whole number from 1 to 10."],
  ["half a number", control(priority, "stepMismatch"), "Write a whole number from 1 to 10."],
  ["no number at all", control(priority, "badInput"), "Write a whole number from 1 to 10."],
  ["nothing where a number is needed", control(priority, "valueMissing"), "Write a whole number from 1 to 10."],
  ["a number below its one bound", control({ min: "1" }, "rangeUnderflow"), "Write a whole number, at least 1."],
  ["a number above its one bound", control({ max: "9" }, "rangeOverflow"), "Write a whole number, at most 9."],
  ["no number where any will do", control({}, "badInput"), "Write a whole number."],
  ["a number between two steps of its arrows", control(score, "stepMismatch"), null],
  ["a number above the bounds of one with steps", control(score, "rangeOverflow"), "Write a number from -1 to 1."],
  ["one above them and between steps", control(score, "rangeOverflow", "stepMismatch"), "Write a number from -1 to 1."],
  ["nothing where a text is needed", control({ type: "text" }, "valueMissing"), "Fill this in."],
  ["a text", control({ type: "text" }), null],
  ["what has no bounds", { type: "output" }, null],
]) {
  test(`${name}: ${expected ?? "nothing is said"}`, () => assert.equal(fault(given), expected));
}
