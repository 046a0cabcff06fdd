// The agent `reporter`: the loop of the SDK with the tools that were granted. Its settings may hold
// `prompt`, which is added to the system prompt, and `steps_max`.

import { defineAgent, Invalid, problemOf, react } from "longhaul-sdk";

const STEPS_MAX = 8;

const SETTINGS = {
  type: "object",
  properties: { prompt: { type: "string" }, steps_max: { type: "integer", minimum: 1, maximum: 100 } },
  additionalProperties: false,
};

export const agent = defineAgent({
  run(task) {
    const problem = problemOf(task.settings, SETTINGS);
    if (problem !== undefined) throw new Invalid(`the settings of the agent \`reporter\`: ${problem}`);
    const { prompt = "", steps_max: stepsMax = STEPS_MAX } = task.settings;
    return react(task, { prompt, stepsMax });
  },
});
