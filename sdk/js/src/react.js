// A reason-act loop: the model picks a tool, sees what it answered, and goes on until it says that it is
// done. It never retries a tool by itself, and an error of a tool is for the model to see.

import { Conversation } from "./conversation.js";
import { Failed, Invalid, LimitReached } from "./errors.js";
import { firstObject, readJson } from "./json.js";
import { problemOf } from "./schema.js";
import { withoutPicture } from "./picture.js";
import { cut } from "./show.js";
import * as tools from "./tools.js";

const STEPS_MAX = 8;
const OBSERVATION_CHARS_MAX = 4_000;

/** One flat object: providers refuse alternatives at the top. What belongs together is for `readAction`. */
const ACTION = {
  type: "object",
  properties: {
    action: { type: "string", enum: ["tool", "finish"] },
    tool: { type: "string" },
    function: { type: "string" },
    arguments: { type: "object" },
    output: {},
    summary: { type: "string" },
  },
  required: ["action"],
};

const SYSTEM = `You do one task, step by step, with the tools that are listed below.
Answer with one JSON object and nothing else. To use a tool:
{"action":"tool","tool":"NAME","function":"NAME","arguments":{...}}
When the task is done:
{"action":"finish","output":ANY_JSON,"summary":"what you did, in one sentence"}`;

/** Works on `task` and gives its outcome. Steps used up throw `LimitReached("steps_max", ...)`. */
export function react(task, { prompt = "", stepsMax = STEPS_MAX, observationCharsMax = OBSERVATION_CHARS_MAX } = {}) {
  const granted = tools.list();
  const talk = new Conversation([SYSTEM, describeTools(granted), prompt].filter((part) => part !== "").join("\n\n"));
  talk.user(describeTask(task), { pinned: true });
  for (let step = 1; step <= stepsMax; step += 1) {
    const action = nextAction(talk);
    if (action.action === "finish") {
      return { output: action.output ?? null, summary: action.summary ?? "" };
    }
    talk.push({ role: "user", parts: observe(action, observationCharsMax) });
  }
  throw new LimitReached("steps_max", stepsMax, stepsMax);
}

/** One action of the model; a reply that cannot be read is sent back once, with what is wrong. */
function nextAction(talk) {
  const options = { format: { schema: ACTION } };
  try {
    return readAction(talk.complete(options).text);
  } catch (error) {
    if (!(error instanceof Invalid)) throw error;
    talk.user(`Your answer could not be read: ${error.message}. Answer with one JSON object as described.`);
  }
  try {
    return readAction(talk.complete(options).text);
  } catch (error) {
    throw error instanceof Invalid ? new Failed(`the model's answer could not be read twice: ${error.message}`) : error;
  }
}

function readAction(text) {
  const action = firstObject(text, (value) => "action" in value) ?? readJson("the answer", text);
  const problem = problemOf(action, ACTION);
  if (problem !== undefined) throw new Invalid(`the answer does not fit: ${problem}`);
  if (action.action === "tool" && (action.tool === undefined || action.function === undefined)) {
    throw new Invalid("a call needs `tool` and `function`");
  }
  return action;
}

/** The answer of a call for the model: words, and a picture where the tool answered with one. */
function observe({ tool, function: name, arguments: args = {} }, charsMax) {
  try {
    const { output, pictures } = withoutPicture(tools.call(tool, name, args));
    const text = tools.beginning(JSON.stringify(output), charsMax);
    return [{ text: `${tool}.${name} answered: ${text}` }, ...pictures.map((image) => ({ image }))];
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    return [{ text: cut(`${tool}.${name} failed: ${error.message}`, charsMax) }];
  }
}

function describeTools(granted) {
  if (granted.length === 0) return "There are no tools.";
  const lines = granted.flatMap(({ id, description, functions }) => [
    `${id}: ${description}`,
    ...functions.map((one) => `- ${id}.${one.name}: ${one.description} Arguments: ${JSON.stringify(one.parameters)}`),
  ]);
  return `Tools:\n${lines.join("\n")}`;
}

function describeTask({ instruction, context, criteria, feedback }) {
  const parts = [instruction];
  if (Object.keys(context).length > 0) parts.push(`Context: ${JSON.stringify(context)}`);
  if (criteria.length > 0) parts.push(`It is done when:\n${criteria.map(({ text }) => `- ${text}`).join("\n")}`);
  if (feedback.length > 0) parts.push(`What was wrong with the round before:\n${feedback.map(({ text }) => `- ${text}`).join("\n")}`);
  return parts.join("\n\n");
}
