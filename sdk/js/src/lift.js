// From the contract's values to an author's: JSON is read, and what is not there is undefined.

import { readJson, readObject } from "./json.js";

/** A none is null in this engine, and undefined in another. */
export function orUndefined(value) {
  return value ?? undefined;
}

const criterion = ({ id, text, check }) => ({ id, text, check: orUndefined(check) });
const issue = ({ criterion: of, text }) => ({ criterion: orUndefined(of), text });

export function outcome({ output, summary, confidence, unknowns }) {
  return { output: readJson("the output", output), summary, confidence: orUndefined(confidence), unknowns };
}

export function usage({ costMicrodollars, ...tokens }) {
  const counts = Object.entries(tokens).map(([name, count]) => [name, count >>> 0]);
  return { ...Object.fromEntries(counts), costMicrodollars: orUndefined(costMicrodollars) };
}

export function task({ id, instruction, context, settings, criteria, feedback, round }) {
  return {
    id,
    instruction,
    context: readObject("the context", context),
    settings: readObject("the settings", settings),
    criteria: criteria.map(criterion),
    feedback: feedback.map(issue),
    round: round >>> 0,
  };
}

export function goal({ text, context, settings, criteria }) {
  return {
    text,
    context: readObject("the context", context),
    settings: readObject("the settings", settings),
    criteria: criteria.map(criterion),
  };
}

export function workPlan({ steps, notes }) {
  const untagged = ({ tag, val }) => (val === undefined ? tag : { [tag]: val });
  const isPython = ({ tag, val }) => tag === "source" && val.language === "python";
  const body = (given) => (isPython(given) ? { python: given.val.text } : untagged(given));
  return {
    steps: steps.map((step) => ({
      ...step,
      agent: orUndefined(step.agent),
      criteria: step.criteria.map(criterion),
      checks: step.checks.map(({ name, body: given }) => ({ name, body: body(given) })),
      onFailure: untagged(step.onFailure),
    })),
    notes,
  };
}

export function stepResult({ step, passed, outcome: given, issues }) {
  return { step, passed, outcome: given ? outcome(given) : undefined, issues: issues.map(issue) };
}

export function subject({ instruction, output, evidence, context }) {
  return { instruction, output: readJson("the output", output), evidence, context: readObject("the context", context) };
}

export function rubric({ criteria, settings }) {
  return { criteria: criteria.map(criterion), settings: readObject("the settings", settings) };
}

/** Throws `Invalid` for a value that is no JSON. */
export function entry({ key, value, tags, expiresAtMs }) {
  return { key, value: readJson("the value", value), tags, expiresAtMs: orUndefined(expiresAtMs) };
}
