// The planner `{{name}}`: each line of the goal is a step. It plans and reviews, and executes nothing.

import { Blocked, definePlanner } from "longhaul-sdk";

export const planner = definePlanner({
  plan(goal) {
    const lines = goal.text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
    if (lines.length === 0) throw new Blocked("what is to be done?");
    return { steps: lines.map((line, at) => step(at + 1, line)) };
  },

  /** Called when steps have failed: here the plan stays, without what is done. */
  replan(_goal, plan, results) {
    const done = new Set(results.filter((result) => result.passed).map((result) => result.step));
    return { ...plan, steps: plan.steps.filter((step) => !done.has(step.id)) };
  },

  /** Called at the end: one answer out of what the steps gave. */
  synthesize(_goal, results) {
    const passed = results.filter((result) => result.passed).length;
    return {
      answer: Object.fromEntries(results.map(({ step, outcome }) => [step, outcome?.output ?? null])),
      confidence: results.length === 0 ? 0 : passed / results.length,
      unknowns: results.filter((result) => !result.passed).map((result) => result.step),
    };
  },
});

function step(number, line) {
  return {
    id: `step-${number}`,
    title: [...line].slice(0, 80).join(""),
    instruction: line,
    // Criteria for the evaluator.
    criteria: [{ id: "done", text: line }],
  };
}
