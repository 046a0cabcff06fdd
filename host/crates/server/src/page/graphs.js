// Graphs of steps: what their states look like, what is run next, where a failure is. Pure.

/** The states of steps: the status whose look they have, and what is said of them. */
const STATES = {
  fresh: ["passing", "fresh"],
  stale: ["parked", "stale"],
  blocked: ["blocked", "blocked by a failed step"],
  failed: ["failing", "failed"],
  broken: ["failing", "does not parse"],
  unknown: ["blocked", "interrupted, a person decides"],
};

/** The status whose look a state has. */
export const lookOf = (state) => (STATES[state] ?? ["not_started"])[0];

/** A state in words. */
export const stateWords = (state) => (STATES[state] ?? ["", state])[1];

/** True for a step whose failure can be diagnosed: that of a stale one is of another source, or of other values. */
export const hasFailed = ({ state, failure }) => Boolean(failure) && state !== "stale" && state !== "fresh";

/** The steps as a plan that `dag.js` lays out. */
export const planOf = (steps) => steps.map(({ id, needs }) => ({ id, depends_on: needs }));

/** The next step of a run of all: the first that was neither run nor reached by an earlier one; null at the end. */
export const nextToRun = (ids, done) => ids.find((id) => !done.has(id)) ?? null;

/** Takes what a run of one step came to among the steps that need no further run. */
export function taken(done, step, ran) {
  for (const id of [step, ...ran.ran, ...ran.reused, ...ran.failed, ...ran.blocked, ...ran.unknown]) done.add(id);
  return done;
}

/** The text of a line of a source, from 1; empty where it has no such line. */
export const lineOf = (source, line) => (line > 0 ? (source.split("\n")[line - 1] ?? "").trim() : "");

/** A place in a step, as a traceback of Python names it. */
const PLACE = /File "<step ([^"\n]+)>", line (\d+)(?:, in ([^\n]+))?/g;

/**
 * The innermost place of a failure in a step, which may be a function of another step than the one that failed; null where
 * none is known. `sources` has the sources of steps by name.
 */
export function placeOf({ id, failure }, sources) {
  const last = [...failure.traceback.matchAll(PLACE)].at(-1);
  const [step, line, name] = last ? [last[1], Number(last[2]), last[3]] : [id, failure.line, ""];
  if (!line) return null;
  const isFunction = name && name !== "<module>";
  return { step, line, function: isFunction ? name : "", source: lineOf(sources.get(step) ?? "", line) };
}

/** The whole of a failure as text, with what went wrong in its last line. */
export function failureText({ kind, message, traceback }) {
  const said = message === "" ? kind : `${kind}: ${message}`;
  return traceback.trim() === "" ? said : traceback;
}

/** What a run came to, in a line. */
export function runWords({ ran, reused, failed, blocked, unknown, untouched }) {
  const parts = [
    [ran.length, "ran"],
    [reused.length, "reused"],
    [failed.length, "failed"],
    [blocked.length, "blocked"],
    [unknown.length, "interrupted"],
    [untouched, "fresh"],
  ].filter(([many]) => many > 0);
  return parts.length === 0 ? "there was nothing to run" : parts.map(([many, word]) => `${many} ${word}`).join(", ");
}

/** What is to be known of a run beside what it came to, a line each: warnings, and dependencies that it found. */
export function runNotes({ warnings = [], discovered = [], discovered_count: count = 0 }) {
  const found = discovered.map(({ from, to, variable }) => `Found: ${to} needs ${variable} of ${from}.`);
  const more = count - discovered.length;
  return [...warnings, ...found, ...(more > 0 ? [`And ${more} more dependencies were found.`] : [])];
}

/** How many steps are in each state that needs a run or a person, in the order of what is worst. */
export function stateCounts(steps) {
  const order = ["broken", "failed", "unknown", "blocked", "stale", "fresh"];
  return order
    .map((state) => [state, steps.filter((one) => one.state === state).length])
    .filter(([, many]) => many > 0);
}

/** The body that makes a graph, of what was typed: its first step is left out where it has no source. */
export function newGraphOf({ name, language, step, source }) {
  const body = { name: name.trim(), language };
  return source.trim() === "" ? body : { ...body, steps: [{ step: step.trim(), source }] };
}

/** The address of a graph, or of a step of it. */
export function graphHref(name, step = null) {
  const own = `#/graphs/${encodeURIComponent(name)}`;
  return step === null ? own : `${own}/steps/${encodeURIComponent(step)}`;
}
