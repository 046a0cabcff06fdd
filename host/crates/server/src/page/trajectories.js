// Trajectories: the filters that stand in the address, and messages as what a person reads. Pure.
//
// A message has the form of chat endpoints, and comes from models and tools: of a field that is another thing than it should
// be nothing is shown but its JSON.

/** How an invocation ended: the status whose look it has, and what is said. */
const ENDINGS = {
  returned: ["completed", "returned"],
  refused: ["failed", "returned an error"],
  limited: ["incomplete", "stopped by a limit"],
  trapped: ["failed", "trapped"],
  unfinished: ["working", "has not ended"],
};

export const lookOfEnding = (ending) => (ENDINGS[ending] ?? ["not_started"])[0];
export const endingWords = (ending) => (ENDINGS[ending] ?? ["", ending])[1];

/** The endings as options of a filter. */
export const ENDING_OPTIONS = [
  ["", "Every ending"],
  ...Object.entries(ENDINGS).map(([name, [, text]]) => [name, text]),
];

/** What a person said of it: the word of the address, what is shown, and the parameters. */
const JUDGED = [
  ["", "Rated or not", {}],
  ["yes", "Rated or corrected", { annotated: true }],
  ["no", "Neither", { annotated: false }],
  ["good", "Rated 4 or 5", { rating_min: 4 }],
  ["bad", "Rated 1 or 2", { rating_max: 2 }],
];

export const JUDGED_OPTIONS = JUDGED.map(([name, text]) => [name, text]);

/** The names in the address. */
const FILTERS = ["project", "run", "agent", "ending", "judged"];

/** What the address asks for. */
export function wanted(query) {
  const own = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""]));
  return { ...own, offset: Math.max(0, Number.parseInt(query.get("offset") ?? "0", 10) || 0) };
}

/** The address of that. */
export function addressOf(now) {
  const params = new URLSearchParams();
  for (const name of [...FILTERS, "offset"]) if (now[name]) params.set(name, String(now[name]));
  const text = params.toString();
  return `#/trajectories${text ? `?${text}` : ""}`;
}

/** True when any filter but the project is set. */
export const isFiltered = (now) => ["run", "agent", "ending", "judged"].some((name) => now[name] !== "");

/** The same as parameters of the API; without a run those of all runs of the project. */
export function paramsOf({ run, agent, ending, judged }) {
  const said = JUDGED.find(([name]) => name === judged)?.[2] ?? {};
  return { all_runs: run === "" ? true : null, agent, ending, ...said };
}

/** The address of one trajectory. */
export const trajectoryHref = ({ run, id }) => `#/trajectories/${encodeURIComponent(run)}/${encodeURIComponent(id)}`;

/** The invocation without the name of its run. */
export const shortId = ({ run, id }) => (id.startsWith(`${run}/`) ? id.slice(run.length + 1) : id);

/** The table of an agent without its prefix. */
export const agentName = (agent) => agent.replace(/^agents\./, "");

const asText = (value) =>
  typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value);

/** A message as `{role, text, thoughts, calls: [{name, arguments}], answers}`. */
export function messageOf(message) {
  const { role, content, tool_calls: calls, tool_call_id: answers, reasoning_content: thoughts } = message ?? {};
  return {
    role: typeof role === "string" ? role : "message",
    text: Array.isArray(content) ? content.map(partText).filter(Boolean).join("\n") : asText(content),
    thoughts: asText(thoughts),
    calls: (Array.isArray(calls) ? calls : []).map((call) => ({
      name: asText(call?.function?.name ?? call?.name) || "a tool",
      arguments: asText(call?.function?.arguments ?? call?.arguments),
    })),
    answers: asText(answers),
  };
}

function partText(part) {
  if (typeof part === "string") return part;
  if (typeof part?.text === "string") return part.text;
  return asText(part);
}

/** Who says it, in a word. */
export const whoSays = (role) =>
  ({ system: "Instruction", user: "User", assistant: "Agent", tool: "Tool" })[role] ?? role;

/** The body of an annotation: what is left as it was is not sent. Null when nothing is said. */
export function annotationOf(invocation, { rating, correction }, before) {
  const body = { invocation };
  if (rating && Number(rating) !== before.rating) body.rating = Number(rating);
  if (correction.trim() !== "" && correction !== (before.correction ?? "")) body.correction = correction;
  return Object.keys(body).length > 1 ? body : null;
}
