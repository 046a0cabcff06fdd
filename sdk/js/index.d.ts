// The types of longhaul-sdk. JSON is read and written for you: `Json` stands where the contract has JSON text.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: any };

/** The part of JSON Schema 2020-12 that is checked; another keyword is an error when the plugin is built. */
export interface Schema {
  type?: SchemaType | SchemaType[];
  properties?: Record<string, Schema | boolean>;
  required?: string[];
  additionalProperties?: Schema | boolean;
  items?: Schema | boolean;
  enum?: Json[];
  const?: Json;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minItems?: number;
  maxItems?: number;
  title?: string;
  description?: string;
  default?: Json;
  examples?: Json[];
  format?: string;
}
export type SchemaType = "string" | "number" | "integer" | "boolean" | "null" | "array" | "object";

// Roles. What each `define` gives is what the plugin exports under the name of its role.

/**
 * What is known about an effect that was cut off: `read-only` touches nothing and may be repeated,
 * `idempotent` has the effect once for each idempotency key, `verifiable` can be asked by `verify` whether
 * it happened, `acts` is never repeated without a person.
 */
export type EffectClass = "read-only" | "idempotent" | "verifiable" | "acts";

export interface CallContext {
  /** The same for every attempt of one call, different for every other call. */
  idempotencyKey: string;
  /** Time left for the call, in milliseconds. */
  remainingMs: number;
  /** Counts from 1. */
  attempt: number;
  /** Settings that the operator wrote for this tool. */
  settings: JsonObject;
}

export type Verification = "did-not-happen" | { happened: unknown } | { unknown: string };

export interface ToolFunction {
  description: string;
  effect: EffectClass;
  /** Default: no arguments. */
  parameters?: Schema;
  /** `args` satisfies `parameters`. What it gives is the output, as JSON. */
  call(args: any, context: CallContext): unknown;
  /** The note that `verify` will need, made before a `verifiable` call starts. Default: `{}`. */
  prepare?(args: any, context: CallContext): unknown;
  /** Default: `unknown`, and a person is asked. */
  verify?(args: any, prepared: any, context: CallContext): Verification;
}

export function defineTool(tool: {
  id: string;
  description: string;
  functions: Record<string, ToolFunction>;
}): ToolExports;

/** An output that was cut at a limit. */
export function truncated(output: unknown): unknown;

export interface Criterion {
  id: string;
  text: string;
  /** The pinned check that decides it, if one does. */
  check?: string;
}

export interface Issue {
  criterion?: string;
  text: string;
}

export interface Task {
  id: string;
  instruction: string;
  context: JsonObject;
  settings: JsonObject;
  criteria: Criterion[];
  feedback: Issue[];
  /** Counts from 1. */
  round: number;
}

export interface Outcome {
  output: unknown;
  summary?: string;
  /** Between 0 and 1. */
  confidence?: number;
  unknowns?: string[];
}

export function defineAgent(agent: { run(task: Task): Outcome }): AgentExports;

export interface Goal {
  text: string;
  context: JsonObject;
  settings: JsonObject;
  criteria: Criterion[];
}

/** `{ python }` is short for a source of that language. */
export type CheckBody = { python: string } | { source: { language: string; text: string } } | { native: string };

export interface PlanStep {
  id: string;
  title: string;
  instruction: string;
  /** Default `functional`; or `ui`, `performance`, `security`, `integration`, `testing`, `documentation`. */
  category?: string;
  /** 1 to 10, higher goes first. Default 5. */
  priority?: number;
  agent?: string;
  criteria?: Criterion[];
  checks?: { name: string; body: CheckBody }[];
  dependsOn?: string[];
  /** Default `{ retry: 1 }`. */
  onFailure?: { retry: number } | "skip" | "replan" | "abort";
}

export interface Plan {
  steps: PlanStep[];
  notes?: string;
}

export interface PlanStepResult {
  step: string;
  passed: boolean;
  outcome?: Outcome;
  issues: Issue[];
}

export interface Synthesis {
  answer: unknown;
  /** Between 0 and 1. */
  confidence?: number;
  conflicts?: string[];
  unknowns?: string[];
}

export function definePlanner(planner: {
  plan(goal: Goal): Plan;
  replan(goal: Goal, plan: Required<Plan>, results: PlanStepResult[]): Plan;
  synthesize(goal: Goal, results: PlanStepResult[]): Synthesis;
}): PlannerExports;

export interface Subject {
  instruction: string;
  output: any;
  evidence: { name: string; content: string }[];
  context: JsonObject;
}

export interface Rubric {
  criteria: Criterion[];
  settings: JsonObject;
}

export interface Verdict {
  judgements: { criterion: string; mark: "pass" | "fail" | "unknown"; reason?: string }[];
  issues?: Issue[];
}

export function defineEvaluator(evaluator: { judge(subject: Subject, rubric: Rubric): Verdict }): EvaluatorExports;

export interface Entry {
  key: string;
  value: any;
  tags: string[];
  /** Milliseconds since 1970-01-01 UTC; undefined: kept. */
  expiresAtMs?: number;
}

export interface Page {
  keys: string[];
  /** That of the next page; undefined on the last one. */
  cursor?: string;
}

export interface MemoryContext {
  /** Settings that the operator wrote for this memory backend. */
  settings: JsonObject;
}

export function defineMemory(memory: {
  put(namespace: string, entry: Entry, context: MemoryContext): void;
  get(namespace: string, key: string, context: MemoryContext): Entry | undefined;
  search(namespace: string, query: string, limit: number, context: MemoryContext): { entry: Entry; score: number }[];
  delete(namespace: string, key: string, context: MemoryContext): boolean;
  list(namespace: string, options: { prefix: string; cursor?: string; limit: number }, context: MemoryContext): Page;
}): MemoryExports;

export interface ToolExports {
  readonly role?: "tool";
}
export interface AgentExports {
  readonly role?: "agent";
}
export interface PlannerExports {
  readonly role?: "planner";
}
export interface EvaluatorExports {
  readonly role?: "evaluator";
}
export interface MemoryExports {
  readonly role?: "memory";
}

// Errors. Imports throw them; what an export throws is told to the host as the same.

/** The base of all errors; by itself, anything that failed. */
export class Failed extends Error {}
/** Not granted; `fix` is the line that would allow it. */
export class Denied extends Failed {
  constructor(reason: string, fix?: string);
  reason: string;
  fix: string;
}
/** A cap was reached; `limit` is its name, with the unit. */
export class LimitReached extends Failed {
  constructor(limit: string, used: number, max: number);
  limit: string;
  used: number;
  max: number;
}
/** The pushed text does not fit into the model's window. */
export class ContextFull extends LimitReached {}
/** A service is not there now. */
export class Unavailable extends Failed {
  constructor(reason: string, retryAfterMs?: number);
  reason: string;
  retryAfterMs?: number;
}
/** A question for a person; of a planner: the goal is unclear. */
export class Blocked extends Failed {}
/** The task cannot be done as written. */
export class Impossible extends Failed {}
/** The request is malformed; of a tool: wrong arguments. */
export class Invalid extends Failed {}
/** There is no function, check or agent of that name. */
export class Unknown extends Invalid {}
export class TimedOut extends Failed {
  constructor(ms: number);
  ms: number;
}
/** A tool cannot tell whether a call had its effect; the message says what broke. */
export class OutcomeUnknown extends Failed {}
/** The model refused, in its own words. */
export class Refused extends Failed {}

// Imports of the host. The README says which world has which.

export interface Options {
  model?: string;
  outputTokensMax?: number;
  temperature?: number;
  seed?: number;
  /** Default `text`. */
  format?: "text" | "json" | { schema: Schema | JsonObject };
  prefill?: string;
  stop?: string[];
  offerTools?: string[];
  /** Further options; the host ignores those that it does not know. */
  extra?: JsonObject;
}

export interface Usage {
  inputTokens: number;
  /** Of the input tokens. */
  cachedTokens: number;
  cacheWrittenTokens: number;
  outputTokens: number;
  /** Of the output tokens. */
  reasoningTokens: number;
  /** Undefined where the price of a part is unknown. */
  costMicrodollars?: number;
}

export interface ToolCallRequest {
  id: string;
  tool: string;
  function: string;
  arguments: any;
}

export interface Reply {
  text: string;
  calls: ToolCallRequest[];
  reason: "end" | "length" | "tools" | "filtered" | "other";
  usage: Usage;
  /** Further facts about the reply. */
  extra: JsonObject;
}

export type Part =
  | { text: string }
  | { image: { mediaType: string; data: Uint8Array } }
  | { "tool-call": ToolCallRequest }
  | { "tool-result": { id: string; output: unknown; failed?: boolean } };

/** A conversation with a model, in a context of its own that the host holds. */
export class Conversation {
  constructor(system: string);
  push(message: { role: "user" | "assistant" | "tool"; parts: Part[] }, options?: { pinned?: boolean }): void;
  /** Adds a text of the user. A pinned one survives compaction and reset. */
  user(text: string, options?: { pinned?: boolean }): void;
  answer(answer: { id: string; output: unknown; failed?: boolean }): void;
  complete(options?: Options): Reply;
  /** Says `prompt` and gives the reply. */
  text(prompt: string, options?: Options): string;
  /** Says `prompt` and gives the reply, read and checked against `schema`. */
  json(prompt: string, schema: Schema, options?: Options): any;
  usage(): { total: Usage; contextTokens: number; contextTokensMax?: number; resets: number };
  reset(summary: string): void;
}

/** A reason-act loop with the tools that were granted. Steps used up throw `LimitReached("steps_max")`. */
export function react(
  task: Task,
  options?: {
    /** Added to the system prompt. */
    prompt?: string;
    /** Default 8. */
    stepsMax?: number;
    /** Default 4,000. */
    observationCharsMax?: number;
  },
): Outcome;

export namespace tools {
  function list(): {
    id: string;
    description: string;
    functions: { name: string; description: string; parameters: Schema; effect: EffectClass }[];
  }[];
  function call(tool: string, name: string, args?: JsonObject): any;
  function callMany(
    calls: { tool: string; function: string; arguments?: JsonObject }[],
  ): ({ output: any; error?: undefined } | { error: Failed; output?: undefined })[];
}

export namespace checks {
  function list(): { name: string; description: string; vacuous: boolean }[];
  function run(name: string): {
    name: string;
    passed: boolean;
    /** Undefined where a limit ended the check. */
    exitCode?: number;
    stdout: string;
    stderr: string;
    truncated: boolean;
    durationMs: number;
    /** Undefined where the full sandbox held it. */
    sandboxLevel?: string;
  };
}

export namespace delegate {
  type Work = Partial<Task> & { instruction: string };
  function run(agent: string, task: Work): Outcome;
  function runMany(
    assignments: { agent: string; task: Work }[],
  ): ({ outcome: Outcome; error?: undefined } | { error: Failed; outcome?: undefined })[];
}

export namespace keyvalue {
  function get(key: string): Uint8Array | undefined;
  function getText(key: string): string | undefined;
  function getJson(key: string): any;
  function set(key: string, value: string | Uint8Array): void;
  function setJson(key: string, value: unknown): void;
  function remove(key: string): void;
  export { remove as delete };
  function has(key: string): boolean;
  function keys(prefix?: string): Generator<string>;
  export { get, getJson, getText, has, keys, set, setJson };
}

export namespace recall {
  type Tier = "working" | "episodic";
  function remember(tier: Tier, key: string, value: unknown): void;
  function fetch(tier: Tier, key: string): any;
  function search(query: string, limit?: number): { key: string; value: any; tier: Tier; score: number }[];
}

export namespace decisions {
  interface Decision {
    context: string;
    decision: string;
    reasoning: string;
    tags?: string[];
    outcome?: "open" | "success" | "partial" | "failure" | "reverted";
    lesson?: string;
  }
  function record(decision: Decision): string;
  interface FoundDecision {
    id: string;
    /** Milliseconds since 1970-01-01 UTC. */
    atMs: number;
    decision: Required<Omit<Decision, "lesson">> & { lesson?: string };
  }
  function find(query: string, limit?: number): FoundDecision[];
}

export namespace progress {
  function add(action: string, outcome: string, files?: string[]): void;
}

export namespace artifact {
  function load(): { saveNumber: number; state: any; summary: string } | undefined;
  function save(state: unknown, summary: string): void;
}

export interface GraphFailure {
  /** The exception's type, `SyntaxError` for a source that cannot be read, or a limit's name. */
  kind: string;
  message: string;
  /** In the step's source, from 1. */
  line?: number;
  column?: number;
  traceback: string;
}

export interface GraphStep {
  id: string;
  source: string;
  state: "fresh" | "stale" | "blocked" | "failed" | "broken" | "unknown";
  reads: string[];
  writes: string[];
  needs: string[];
  /** Values that it made and nobody can keep, so that it runs again whenever they are needed. */
  unstorable: string[];
  stdout: string;
  stderr: string;
  value?: string;
  failure?: GraphFailure;
  durationMs: number;
}

export interface GraphChanges {
  stale: string[];
  failure?: GraphFailure;
}

export interface GraphReplay {
  ran: string[];
  /** Steps that got what an earlier run of them gave for the same input. */
  reused: string[];
  failed: string[];
  blocked: string[];
  untouched: number;
  warnings: string[];
}

export interface GraphDiagnosis {
  step: string;
  failure: GraphFailure;
  values: { name: string; text: string; producer?: string }[];
  cause: string;
  reason: string;
}

/** Code in steps, in Python: change one, and only what it touches runs again. A graph of this invocation. */
export class Graph {
  constructor(name: string);
  /** Adds a step behind the others. A source that cannot be read is kept, and said so. */
  add(step: string, source: string): GraphChanges;
  change(step: string, source: string): GraphChanges;
  remove(step: string): GraphChanges;
  /** Runs what is stale; with `keepGoing` also what needs a step that failed. A failing step is no error. */
  run(options?: { keepGoing?: boolean }): GraphReplay;
  /** Runs a step again, and what its new values touch. */
  replay(step: string): GraphReplay;
  stale(): string[];
  show(): GraphStep[];
  /** The cause of a step's failure; without a step, of the first that failed. Throws `Invalid` when none did. */
  diagnose(step?: string): GraphDiagnosis;
  /** Finds a source with which a failure is gone, and keeps it. Throws `Failed` when there is none. */
  patch(step?: string): { step: string; source: string; reason: string; tries: number; replay: GraphReplay };
  export(format?: "json" | "dot"): string;
}

export namespace log {
  function trace(text: unknown): void;
  function debug(text: unknown): void;
  function info(text: unknown): void;
  function warn(text: unknown): void;
  function error(text: unknown): void;
}

/** Milliseconds since 1970-01-01 UTC; in a pure world the journal's. */
export function nowMs(): number;
/** Waits; in a pure world durably. */
export function sleep(durationMs: number): void;

// Helpers.

/** The fault of `value`, in one line; undefined when there is none. */
export function problemOf(value: unknown, schema: Schema): string | undefined;
/** Reads JSON of at most 100 levels; throws `Invalid`, in which `what` names it. */
export function readJson(what: string, text: string): any;
/** The first complete JSON object in a text that is wanted. */
export function firstObject(text: string, wanted?: (value: JsonObject) => boolean): JsonObject | undefined;
/** At most so many characters, with a note of what is missing. */
export function cut(text: string, charsMax: number): string;
/** The number of Unicode scalar values of a text. */
export function characters(text: string): number;
