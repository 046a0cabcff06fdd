// The planner `outline`: each line `- id: instruction` of the goal becomes a step. It asks no model.

import { Blocked, definePlanner } from "longhaul-sdk";

const LINE = /^\s*-\s+([A-Za-z0-9][A-Za-z0-9_-]*):\s*(\S.*?)\s*$/;
const TITLE_CHARS_MAX = 80;

export const planner = definePlanner({
  plan(goal) {
    const steps = goal.text.split(/\r?\n/).flatMap(toStep);
    if (steps.length === 0) {
      throw new Blocked("which steps does the goal have? write each as a line of the form `- id: instruction`");
    }
    return { steps, notes: "" };
  },

  replan(_goal, plan, results) {
    const passed = new Set(results.filter((result) => result.passed).map((result) => result.step));
    return { ...plan, steps: plan.steps.filter((step) => !passed.has(step.id)) };
  },

  synthesize(_goal, results) {
    const passed = results.filter((result) => result.passed);
    return {
      answer: Object.fromEntries(results.map(({ step, outcome }) => [step, outcome?.output ?? null])),
      confidence: results.length === 0 ? 0 : passed.length / results.length,
      conflicts: [],
      unknowns: results.filter((result) => !result.passed).map((result) => result.step),
    };
  },
});

function toStep(line) {
  const [, id, instruction] = LINE.exec(line) ?? [];
  if (id === undefined) return [];
  return [
    {
      id,
      title: Array.from(instruction).slice(0, TITLE_CHARS_MAX).join(""),
      instruction,
      category: "functional",
      priority: 5,
      criteria: [{ id: "does-it", text: instruction }],
      checks: [],
      dependsOn: [],
      onFailure: { retry: 1 },
    },
  ];
}
