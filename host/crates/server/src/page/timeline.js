// The events of a run as a list that people read. Pure: it draws nothing and asks nothing.
//
// Every event comes in once, whatever is sent again; a call of a tool and its answer are one item; what a model is
// saying right now is kept apart until it is said. The list is bounded: what was read long ago is dropped from its
// beginning, and can be asked for again. An event of a kind that is not known is shown by its name, never dropped.

import { asText, costNote, count, cut, duration, oneLine, reason, short, words } from "./format.js";

/** Most items that are kept while nobody asks for earlier ones. */
export const ITEMS_MAX = 600;

/** Most items that are kept at all; what is before them is in the journal and the report. */
export const ITEMS_ASKED_MAX = 3_000;

/** Most characters of what a model is saying that are kept; the whole comes with the event. */
export const LIVE_CHARS_MAX = 8_000;

/** Kinds that tell how a run goes; all others are steps of agents, or of the machinery. */
const MILESTONES = new Set([
  "project_created",
  "project_status",
  "run_started",
  "resumed",
  "moved",
  "dispatch",
  "plan",
  "replan",
  "synthesis",
  "feature",
  "session_starting",
  "session_complete",
  "judged",
  "commit",
  "reverted",
  "approval",
  "parked",
  "paused",
  "limit",
  "vacuous_check",
  "proposed",
  "warning",
  "done",
  "error",
  "steering",
  "contract",
]);
const MACHINERY = new Set(["checkpoint", "compaction", "reset", "anxiety"]);

export const levelOf = (kind) => (MILESTONES.has(kind) ? "milestone" : MACHINERY.has(kind) ? "machinery" : "step");

export class Timeline {
  /** Items, oldest first. */
  items = [];
  /** What models are saying right now: invocation → `{text, part, after, cut}`. */
  live = new Map();
  /** The newest number that was taken. */
  last = 0;
  /** The number of the oldest item, or of the one that would come next. */
  get first() {
    return this.items.length > 0 ? this.items[0].number : this.last + 1;
  }

  #calls = new Map();
  #keep = ITEMS_MAX;

  /** Takes a durable line that comes next. False: it was there already. */
  push(line) {
    if (!(line.number > this.last)) return false;
    this.last = line.number;
    this.#settle(line);
    this.#place(line);
    this.#bound();
    return true;
  }

  /** Takes lines from before the first one. Those that are there already are passed over. */
  prepend(lines) {
    const first = this.first;
    const own = lines.filter((line) => line.number < first);
    const older = new Timeline();
    for (const line of own) older.push(line);
    for (const [name, item] of older.#calls) {
      const answer = this.items.find((one) => one.kind === "observation" && one.call === name);
      if (answer && !item.result) {
        item.result = answer.result;
        this.items = this.items.filter((one) => one !== answer);
      }
      if (!this.#calls.has(name)) this.#calls.set(name, item);
    }
    this.items = [...older.items, ...this.items];
    this.#keep = Math.min(ITEMS_ASKED_MAX, Math.max(this.#keep, this.items.length));
    if (this.last === 0) this.last = older.last;
    return older.items.length;
  }

  /** Takes a part of what a model says. False: it was heard already. */
  token(line) {
    const { invocation, text, whole } = line.payload ?? {};
    if (typeof invocation !== "string" || typeof text !== "string") return false;
    const before = this.live.get(invocation);
    const isNew = !before || line.after > before.after || line.part > before.part || whole;
    if (!isNew || (line.after < this.last && !before)) return false;
    const sameReply = before && !whole && line.part > before.part;
    const all = (sameReply ? before.text : "") + text;
    this.live.set(invocation, {
      text: all.slice(-LIVE_CHARS_MAX),
      cut: all.length > LIVE_CHARS_MAX || Boolean(sameReply && before.cut),
      part: line.part ?? 0,
      after: line.after ?? 0,
      task: line.task ?? null,
    });
    return true;
  }

  /** The connection was lost: what was half said is said again as a whole. */
  forgetLive() {
    this.live.clear();
  }

  /** A reply that became an event, or work that ended, is being said no more. */
  #settle(line) {
    if (line.type === "thought" || line.type === "task_done") this.live.delete(line.payload?.invocation);
    if (line.type === "done" || line.type === "error" || line.type === "paused") this.live.clear();
  }

  #place(line) {
    const payload = line.payload ?? {};
    if (line.type === "observation") {
      const item = this.#calls.get(`${payload.invocation}#${payload.of}`);
      if (item) {
        item.result = resultOf(payload);
        item.version += 1;
        return;
      }
    }
    const item = itemOf(line);
    this.items.push(item);
    if (line.type === "action") this.#calls.set(item.call, item);
  }

  #bound() {
    if (this.items.length <= this.#keep + 100) return;
    const dropped = this.items.splice(0, this.items.length - this.#keep);
    for (const item of dropped) if (item.call) this.#calls.delete(item.call);
  }
}

const resultOf = (payload) => ({
  ok: payload.ok !== false,
  output: String(payload.output ?? ""),
  tookMs: payload.took_ms ?? null,
});

/** One event as an item: `{number, atMs, kind, level, tone, sign, who, task, title, text, isError, code, list, notes}`. */
export function itemOf(line) {
  const payload = line.payload ?? {};
  const base = {
    number: line.number,
    run: line.run ?? null,
    atMs: line.at_ms ?? null,
    kind: line.type,
    level: levelOf(line.type),
    who: line.agent ?? null,
    task: line.task ?? null,
    tone: "quiet",
    sign: "info",
    title: words(line.type),
    text: "",
    isError: false,
    code: "",
    list: [],
    notes: [],
    invocation: "invocation" in payload ? payload.invocation : null,
    version: 0,
    result: null,
    call: null,
  };
  const more = (SAYS[line.type] ?? unknown)(payload, line);
  return { ...base, ...more };
}

const unknown = (payload) => ({ code: Object.keys(payload).length > 0 ? JSON.stringify(payload) : "" });
const list = (value) => (Array.isArray(value) ? value : []);
const pairs = (features) =>
  list(features).map((one) => (Array.isArray(one) ? `${one[0]}: ${one[1]}` : oneLine(one?.title ?? one)));

/** What each kind says. */
const SAYS = {
  project_created: (p) => ({
    title: `Project ${p.project} has its first run`,
    text: p.directory ?? "",
    sign: "project",
  }),
  project_status: (p) => ({ title: `Project ${words(p.from)} → ${words(p.to)}`, text: p.why ?? "", sign: "project" }),
  run_started: (p) => ({ title: "Run accepted", text: p.branch ? `Commits go to ${p.branch}` : "", sign: "run" }),
  resumed: () => ({ title: "Resumed", sign: "run", tone: "busy" }),
  moved: (p) => ({
    title: `Moved to other bytes of ${p.plugin}`,
    notes: [`${String(p.from ?? "").slice(0, 10)} → ${String(p.to ?? "").slice(0, 10)}`],
    list: [
      ...Object.entries(p.proved ?? {}).map(([name, entry]) => `${name}: goes on with them, alike up to entry ${entry}`),
      ...list(p.unmoved).map((name) => `${name}: ends on the bytes that it began with`),
    ],
    sign: "plugin",
    tone: "wait",
  }),
  dispatch: (p) => ({
    title: p.agent ? `Goes to ${p.agent}` : `Answered by a ${p.path}`,
    text: p.why ?? "",
    sign: "steer",
  }),
  plan: (p) => ({
    title: `Planned ${featureCount(p.features)}`,
    list: pairs(p.features),
    text: p.notes ?? "",
    sign: "plan",
  }),
  replan: (p) => ({
    title: `Replanned (${p.replan})`,
    list: pairs(p.features),
    text: p.notes ?? "",
    notes: list(p.kept).length > 0 ? [`kept: ${list(p.kept).join(", ")}`] : [],
    sign: "plan",
    tone: "wait",
  }),
  synthesis: (p) => ({
    title: "Answered",
    text: asText(p.answer),
    notes: p.confidence == null ? [] : [`confidence ${p.confidence}`],
    sign: "done",
    tone: "good",
  }),
  feature: (p) => ({
    title: `${p.feature} is ${words(p.status)}`,
    text: reason(p.why),
    isError: p.status === "failing",
    tone: FEATURE_TONES[p.status] ?? "quiet",
    sign: FEATURE_SIGNS[p.status] ?? "open",
  }),
  session_starting: (p) => ({ title: `Attempt ${p.session} at ${p.feature}`, sign: "run", tone: "busy" }),
  session_complete: (p) => ({
    title: `Attempt ${p.session} at ${p.feature}: ${words(p.outcome)}`,
    text: p.next_action ?? "",
    tone: FEATURE_TONES[p.outcome] ?? "quiet",
    sign: FEATURE_SIGNS[p.outcome] ?? "info",
  }),
  contract: (p) => ({
    title: `Rubric of ${p.feature} agreed`,
    list: [...list(p.criteria).map((id) => `criterion ${id}`), ...list(p.checks).map((name) => `check ${name}`)],
    sign: "judge",
  }),
  task_started: (p) => ({
    title: `${p.agent || p.plugin} starts`,
    notes: [p.export, p.round > 1 ? `round ${p.round}` : ""].filter(Boolean),
    sign: "agent",
    tone: "busy",
  }),
  delegation: (p) => ({ title: `Asks ${p.agent}`, text: p.instruction ?? "", sign: "agent" }),
  thought: (p) => ({ title: "Thought", text: asText(p.text), notes: thoughtNotes(p), sign: "thought" }),
  action: (p) => ({
    title: `${p.tool}.${p.function}`,
    code: p.arguments ?? "",
    call: `${p.invocation}#${p.step}`,
    sign: "tool",
  }),
  observation: (p) => ({
    title: `${p.tool}.${p.function} answered`,
    call: `${p.invocation}#${p.of}`,
    result: resultOf(p),
    sign: "tool",
    tone: p.ok === false ? "bad" : "quiet",
  }),
  checkpoint: (p) => ({ title: `Checkpoint at step ${p.step}`, notes: [words(p.cause)], sign: "commit" }),
  task_done: (p) => ({
    title: p.ok === false ? "Ended with an error" : "Handed back",
    text: p.outcome ?? "",
    isError: p.ok === false,
    notes: usedNotes(p.used),
    tone: p.ok === false ? "bad" : "quiet",
    sign: p.ok === false ? "bad" : "agent",
  }),
  judged: (p) => ({
    title: `${p.feature} ${p.passed ? "passes" : "does not pass"} (round ${p.round})`,
    marks: list(p.judgements),
    tone: p.passed ? "good" : "bad",
    sign: "judge",
  }),
  commit: (p) => ({
    title: `Committed ${p.feature}`,
    notes: [String(p.commit ?? "").slice(0, 10), `${count(list(p.files).length)} files`],
    list: list(p.files).slice(0, 50),
    tone: "good",
    sign: "commit",
  }),
  reverted: (p) => ({
    title: `Went back to ${String(p.to ?? "").slice(0, 10)}`,
    list: list(p.features),
    notes: [p.kept_as ? `kept as ${p.kept_as}` : ""].filter(Boolean),
    tone: "wait",
    sign: "commit",
  }),
  approval: (p) =>
    "decision" in p
      ? {
          title: `Approval ${p.approval}: ${p.decision}`,
          tone: /allowed|replied/.test(p.decision) ? "good" : "wait",
          sign: "approval",
        }
      : { title: `Asks before ${p.call}`, notes: [p.approval], tone: "wait", sign: "approval" },
  parked: (p) => ({
    title: "Parked: waits for a person",
    text: p.question ?? "",
    code: p.answer_with ?? "",
    tone: "wait",
    sign: "wait",
  }),
  paused: () => ({ title: "Paused", sign: "pause" }),
  limit: (p) => ({ title: `Limit ${p.name} reached`, text: p.text ?? "", tone: "bad", sign: "block" }),
  vacuous_check: (p) => ({
    title: `Check ${p.check} passed before the work began`,
    notes: [p.feature],
    tone: "wait",
    sign: "info",
  }),
  proposed: (p) => ({
    title: "Proposes a change",
    text: p.what ?? "",
    notes: [p.proposal],
    tone: "wait",
    sign: "steer",
  }),
  warning: (p) => ({ title: "Warning", text: p.text ?? "", tone: "wait", sign: "wait" }),
  compaction: (p) => ({ title: "Context cut back", notes: contextNotes(p) }),
  reset: (p) => ({ title: "Context reset", notes: contextNotes(p) }),
  anxiety: (p) => ({ title: "Hurries because its context fills", code: JSON.stringify(p), tone: "wait" }),
  steering: (p) => ({
    title: p.feature ? `Correction for ${p.feature}` : "Correction",
    text: p.text ?? "",
    tone: "busy",
    sign: "steer",
  }),
  done: (p) => ({
    title: `Run ${words(p.status)}`,
    text: p.summary ?? "",
    notes: usedNotes(p.used),
    tone: p.status === "completed" ? "good" : "wait",
    sign: p.status === "completed" ? "done" : "info",
  }),
  error: (p) => ({
    title: "Run failed",
    // The error of a run that ended, or the one that cut its process off.
    text: ("error" in p ? p.error : p.summary) ?? "",
    isError: true,
    notes: "used" in p ? usedNotes(p.used) : [],
    tone: "bad",
    sign: "bad",
  }),
};

const FEATURE_TONES = { passing: "good", failing: "bad", blocked: "wait", in_progress: "busy" };
const FEATURE_SIGNS = { passing: "done", failing: "bad", blocked: "wait", in_progress: "work", dropped: "drop" };

const featureCount = (features) => (list(features).length === 1 ? "1 feature" : `${list(features).length} features`);
const contextNotes = (p) => [`${count(p.tokens_before)} → ${count(p.tokens_after)} tokens`];

function thoughtNotes(p) {
  const usage = p.usage ?? {};
  const tokens = (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
  const took = typeof p.took_ms === "number" ? duration(p.took_ms) : "";
  return [p.model, tokens > 0 ? `${short(tokens)} tokens` : "", costNote(usage), took].filter(Boolean);
}

function usedNotes(used) {
  const usage = used?.usage ?? {};
  const tokens = (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
  return [tokens > 0 ? `${short(tokens)} tokens` : "", costNote(usage)].filter(Boolean);
}

/** Events that are said to those who hear the page, in words; the others are not. */
export function spoken(line) {
  const item = itemOf(line);
  const said = [
    "plan",
    "replan",
    "judged",
    "commit",
    "parked",
    "paused",
    "done",
    "error",
    "limit",
    "synthesis",
    "resumed",
    "proposed",
  ];
  const isAsked = line.type === "approval" && !("decision" in (line.payload ?? {}));
  return said.includes(line.type) || isAsked
    ? cut([item.title, oneLine(item.text, 120)].filter(Boolean).join(": "), 200)
    : null;
}
