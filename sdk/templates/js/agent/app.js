// The agent `{{name}}`: asks a model once, and hands its answer back.

import { Conversation, defineAgent } from "longhaul-sdk";

/** Schema of the model's reply; the host holds it to this. */
const REPLY = {
  type: "object",
  properties: { answer: { type: "string" } },
  required: ["answer"],
  additionalProperties: false,
};

export const agent = defineAgent({
  run(task) {
    const conversation = new Conversation("You do the task and answer in JSON.");
    const { answer } = conversation.json(task.instruction, REPLY);
    return { output: { answer }, summary: "asked a model" };
  },
});
