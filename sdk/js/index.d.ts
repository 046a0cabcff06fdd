// The types of longhaul-sdk. The SDK reads and writes JSON: values stand where the contract has JSON text.

/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
/** A JSON object with any fields. */
export type JsonObject = { [name: string]: any };

/** The part of JSON Schema 2020-12 that is checked; another keyword is an error when the plugin is built. */
export interface Schema {
  /** The type of the value, or several. Default: any type. */
  type?: SchemaType | SchemaType[];
  /** The schemas of fields, by name. */
  properties?: Record<string, Schema | boolean>;
  /** The names of the fields that must be present. */
  required?: string[];
  /** The schema of fields that `properties` does not name; false: there are no others. */
  additionalProperties?: Schema | boolean;
  /** The schema of the items of an array. */
  items?: Schema | boolean;
  /** The allowed values. */
  enum?: Json[];
  /** The only allowed value. */
  const?: Json;
  /** The fewest characters of a text. */
  minLength?: number;
  /** The most characters of a text. */
  maxLength?: number;
  /** The lowest number. */
  minimum?: number;
  /** The highest number. */
  maximum?: number;
  /** The number must be above this one. */
  exclusiveMinimum?: number;
  /** The number must be below this one. */
  exclusiveMaximum?: number;
  /** The fewest items of an array. */
  minItems?: number;
  /** The most items of an array. */
  maxItems?: number;
  /** A title, which is not checked. */
  title?: string;
  /** A description for a model, which is not checked. */
  description?: string;
  /** A default, which is not applied. */
  default?: Json;
  /** Examples, which are not checked. */
  examples?: Json[];
  /** A format, which is not checked. */
  format?: string;
}
/** A type of JSON Schema. */
export type SchemaType = "string" | "number" | "integer" | "boolean" | "null" | "array" | "object";

// Roles. A plugin exports the result of `defineTool` as `tool`, and so on for each role.

/**
 * The effect class of a function. It decides what the host does with a call that was cut off: it repeats `read-only`
 * calls, repeats `idempotent` calls with the same idempotency key, asks `verify` about `verifiable` calls, and asks a
 * person about calls that `acts`.
 */
export type EffectClass = "read-only" | "idempotent" | "verifiable" | "acts";

/** Facts about one call of a tool. */
export interface CallContext {
  /** The same for every attempt of one call, different for every other call. */
  idempotencyKey: string;
  /** The time that the call may still take, in milliseconds. Afterwards the host ends it. */
  remainingMs: number;
  /** The number of the attempt, from 1. */
  attempt: number;
  /**
   * The settings that the operator wrote for this tool. A secret in them is a placeholder, which the host replaces in
   * requests to the hosts that the secret is granted for.
   */
  settings: JsonObject;
}

/** The finding of `verify`: the call had no effect, had its effect with this output, or the reason for not knowing. */
export type Verification = "did-not-happen" | { happened: unknown } | { unknown: string };

/** A function of a tool. */
export interface ToolFunction {
  /** The purpose of the function, for a model. */
  description: string;
  /** The effect class that the tool claims. The host uses it where the grants prove it or the operator confirms it. */
  effect: EffectClass;
  /** The schema of the arguments. Default: no arguments. */
  parameters?: Schema;
  /** Runs the function. `args` satisfies `parameters`; the returned value becomes the output, as JSON. */
  call(args: any, context: CallContext): unknown;
  /**
   * Returns the facts by which `verify` can recognise the effect; called before a `verifiable` call. It must have no
   * effect. Default: `{}`.
   */
  prepare?(args: any, context: CallContext): unknown;
  /**
   * Finds out whether a call that was cut off, or whose answer was lost, had its effect. It must have no effect.
   * Default: `unknown`, so that the host asks a person.
   */
  verify?(args: any, prepared: any, context: CallContext): Verification;
}

/** Makes the exports of a tool. `id` is its name for people; the operator may grant it by another one. */
export function defineTool(tool: {
  id: string;
  description: string;
  functions: Record<string, ToolFunction>;
}): ToolExports;

/** Marks an output that the tool cut at a limit. */
export function truncated(output: unknown): unknown;

/** A criterion of a rubric. */
export interface Criterion {
  /** The id, unique among the criteria of a feature. */
  id: string;
  /** The statement that must hold. */
  text: string;
  /** The name of the pinned check that decides it. Undefined: the evaluator decides by reading. */
  check?: string;
}

/** A specific defect of the work. */
export interface Issue {
  /** The id of the criterion that the defect breaks. Undefined: it belongs to no single criterion. */
  criterion?: string;
  /** The defect, and where it is, in a form that an agent can act on. */
  text: string;
}

/** A piece of work for an agent. */
export interface Task {
  /** The id of the feature that the task belongs to. */
  id: string;
  /** The instruction to the agent. */
  instruction: string;
  /** Facts that may help, such as the goal, recent progress and earlier failures. Ignore unknown fields. */
  context: JsonObject;
  /** The settings that the operator wrote for this agent. */
  settings: JsonObject;
  /** The criteria that the work is judged by. */
  criteria: Criterion[];
  /** The issues of the previous round. Empty in the first round. */
  feedback: Issue[];
  /** The number of the round, from 1. In an ask it is the number of the attempt. */
  round: number;
}

/** The result of an agent. An agent cannot mark its own work as passing. */
export interface Outcome {
  /** The result, of any JSON shape. */
  output: unknown;
  /** One or two lines for people. Default: empty. */
  summary?: string;
  /** The agent's own estimate that the task is done, from 0 to 1. Default: no estimate. */
  confidence?: number;
  /** Open questions, one per item. Default: none. */
  unknowns?: string[];
}

/**
 * Makes the exports of an agent. `run` does a task; it throws `Impossible` where the task cannot be done as written,
 * and `Blocked` with a question for a person. It must make the same calls in the same order each time.
 */
export function defineAgent(agent: { run(task: Task): Outcome }): AgentExports;

/** A goal for a planner. */
export interface Goal {
  /** The goal in the words of its author. */
  text: string;
  /** Facts that may help, such as the names of agents and native checks. Ignore unknown fields. */
  context: JsonObject;
  /** The settings that the operator wrote for this planner. */
  settings: JsonObject;
  /** Criteria for the result as a whole. May be empty. */
  criteria: Criterion[];
}

/**
 * The content of a check: source code, or the name of a check of `[checks]` in longhaul.toml. `{ python }` is short for
 * a source in Python, the only language.
 */
export type CheckBody = { python: string } | { source: { language: string; text: string } } | { native: string };

/** A step of a plan: one feature, and one commit. Outside of an ask it needs a criterion or a check. */
export interface PlanStep {
  /** The id, unique within the plan: at most 64 letters, digits, hyphens and underscores. */
  id: string;
  /** One line for people, and the subject of the commit. */
  title: string;
  /** The instruction to the agent. Not empty. */
  instruction: string;
  /** `functional` (default), `ui`, `performance`, `security`, `integration`, `testing` or `documentation`. */
  category?: string;
  /** The priority, from 1 to 10; a higher one goes first. Default 5. */
  priority?: number;
  /** The name of the agent in longhaul.toml. Default: the host chooses by category. */
  agent?: string;
  /** The criteria. Default: each check is a criterion. */
  criteria?: Criterion[];
  /** The checks, by names that are unique within the step. Default: none. */
  checks?: { name: string; body: CheckBody }[];
  /** The ids of the steps that must pass before. Default: none. */
  dependsOn?: string[];
  /** The reaction where the step fails. Default `{ retry: 1 }`, at most 5. */
  onFailure?: { retry: number } | "skip" | "replan" | "abort";
}

/** A plan. It needs a step. */
export interface Plan {
  /** The steps. */
  steps: PlanStep[];
  /** Notes for people. Default: empty. */
  notes?: string;
}

/** The result of a step. */
export interface PlanStepResult {
  /** The id of the step. */
  step: string;
  /** Whether the work on the step passed. */
  passed: boolean;
  /** The last outcome of the agent. Undefined: the agent came to none. */
  outcome?: Outcome;
  /** The issues of the last round. Empty when the step passed. */
  issues: Issue[];
}

/** The answer to a goal. */
export interface Synthesis {
  /** The answer, of any JSON shape. */
  answer: unknown;
  /** The planner's own estimate that the answer is right, from 0 to 1. Default: no estimate. */
  confidence?: number;
  /** Contradictions between results, one per item. Default: none. */
  conflicts?: string[];
  /** Open questions, one per item. Default: none. */
  unknowns?: string[];
}

/**
 * Makes the exports of a planner. Each function throws `Blocked` with a question for a person where the goal is
 * unclear, and must make the same calls in the same order each time.
 */
export function definePlanner(planner: {
  /** Makes a plan for a goal. */
  plan(goal: Goal): Plan;
  /** Makes a plan for what is left of a goal. Steps that passed stay; the host drops others that the new plan omits. */
  replan(goal: Goal, plan: Required<Plan>, results: PlanStepResult[]): Plan;
  /** Makes the answer to a goal from the results of the steps that passed. */
  synthesize(goal: Goal, results: PlanStepResult[]): Synthesis;
}): PlannerExports;

/** The work to judge. */
export interface Subject {
  /** The instruction that the agent was given. */
  instruction: string;
  /** The output of the agent. */
  output: any;
  /** The changed files, by path, and further named texts; long ones are cut. */
  evidence: { name: string; content: string }[];
  /** Further facts that may help to judge. Ignore unknown fields. */
  context: JsonObject;
}

/** The criteria to judge by. */
export interface Rubric {
  /** The criteria. Each needs a judgement. */
  criteria: Criterion[];
  /** The settings that the operator wrote for this evaluator. */
  settings: JsonObject;
}

/** The result of an evaluator. The work passes when each criterion has a judgement and every judgement is `pass`. */
export interface Verdict {
  /** One judgement for each criterion. `reason` is one line; default: empty. `unknown` counts as not passed. */
  judgements: { criterion: string; mark: "pass" | "fail" | "unknown"; reason?: string }[];
  /** The issues for the next round. Default: none. */
  issues?: Issue[];
}

/** Makes the exports of an evaluator. `judge` must make the same calls in the same order each time. */
export function defineEvaluator(evaluator: { judge(subject: Subject, rubric: Rubric): Verdict }): EvaluatorExports;

/** An entry of a memory backend. */
export interface Entry {
  /** The key, unique within its namespace. At most 1 024 bytes. */
  key: string;
  /** The value, of any JSON shape. At most 256 KiB. */
  value: any;
  /** Words to find the entry by. At most 4 KiB together. */
  tags: string[];
  /** The time at which the entry expires, in milliseconds since 1970-01-01 UTC. Undefined: never. */
  expiresAtMs?: number;
}

/** A page of a list of keys. */
export interface Page {
  /** The keys, in an order that stays the same from page to page. */
  keys: string[];
  /** The `cursor` of the next page. Undefined: this is the last page. */
  cursor?: string;
}

/** Facts about one call of a memory backend. */
export interface MemoryContext {
  /** The settings that the operator wrote for this memory backend. */
  settings: JsonObject;
}

/**
 * Makes the exports of a memory backend. Each call runs in a fresh instance, so entries are kept in `keyvalue`, in a
 * granted directory or on a granted host. Namespaces must not see each other, and expired entries are never returned.
 */
export function defineMemory(memory: {
  /** Keeps an entry, in place of the one with the same key. Repeating the call must change nothing. */
  put(namespace: string, entry: Entry, context: MemoryContext): void;
  /** Returns the entry of a key. Undefined: there is none, or it has expired. */
  get(namespace: string, key: string, context: MemoryContext): Entry | undefined;
  /** Finds at most `limit` entries, the best first; a higher score is better. */
  search(namespace: string, query: string, limit: number, context: MemoryContext): { entry: Entry; score: number }[];
  /** Deletes the entry of a key. True: there was one that had not expired. */
  delete(namespace: string, key: string, context: MemoryContext): boolean;
  /** Lists at most `limit` keys that start with `prefix`: the first ones, or those of `cursor`. */
  list(namespace: string, options: { prefix: string; cursor?: string; limit: number }, context: MemoryContext): Page;
}): MemoryExports;

/** The exports of a tool. */
export interface ToolExports {
  /** The role; only there to tell the types apart. */
  readonly role?: "tool";
}
/** The exports of an agent. */
export interface AgentExports {
  /** The role; only there to tell the types apart. */
  readonly role?: "agent";
}
/** The exports of a planner. */
export interface PlannerExports {
  /** The role; only there to tell the types apart. */
  readonly role?: "planner";
}
/** The exports of an evaluator. */
export interface EvaluatorExports {
  /** The role; only there to tell the types apart. */
  readonly role?: "evaluator";
}
/** The exports of a memory backend. */
export interface MemoryExports {
  /** The role; only there to tell the types apart. */
  readonly role?: "memory";
}

// Errors. Imports throw them, and an export that throws one passes it to the host.

/** The base class of all errors. Itself it stands for any other failure. */
export class Failed extends Error {}
/** The operator does not allow it. */
export class Denied extends Failed {
  constructor(reason: string, fix?: string);
  /** The thing that was refused, in one line. */
  reason: string;
  /** The change that would allow it: the file and the line to add. */
  fix: string;
}
/** A limit was reached. */
export class LimitReached extends Failed {
  constructor(limit: string, used: number, max: number);
  /** The name of the limit, which contains the unit. */
  limit: string;
  /** The amount that was used or asked for. */
  used: number;
  /** The limit. */
  max: number;
}
/** The context is longer than the window of the model, also after the host cut it back. `reset` makes room. */
export class ContextFull extends LimitReached {}
/** A service is not available now. */
export class Unavailable extends Failed {
  constructor(reason: string, retryAfterMs?: number);
  /** The service, and how its absence was noticed. */
  reason: string;
  /** The wait in milliseconds that the service asked for. Undefined: it did not say. */
  retryAfterMs?: number;
}
/** A person must answer a question first: the message. Of a planner: the goal is unclear. */
export class Blocked extends Failed {}
/** The task cannot be done as written. */
export class Impossible extends Failed {}
/** The request is not valid. Of a tool: the arguments do not satisfy the schema. */
export class Invalid extends Failed {}
/** There is no function, check, agent or step of that name. */
export class Unknown extends Invalid {}
/** The host gave the call up. */
export class TimedOut extends Failed {
  constructor(ms: number);
  /** The time limit of the call, in milliseconds. */
  ms: number;
}
/** A tool cannot tell whether a call had its effect; the message says what broke. */
export class OutcomeUnknown extends Failed {}
/** The model refused. The message is its own text. */
export class Refused extends Failed {}

// Imports of the host. The README says which world has which.

/** The options of a request to a model. */
export interface Options {
  /** The name of the model in longhaul.toml. Default: the first model that was granted. */
  model?: string;
  /** The most tokens of the reply. Default 4 096. */
  outputTokensMax?: number;
  /** The temperature, from 0 to 2. Default: that of the model. */
  temperature?: number;
  /** The seed, for replies that can be repeated where the provider promises that. Default: the provider chooses. */
  seed?: number;
  /** The form of the reply. Default `text`. Only `Conversation.json` checks a reply against a schema. */
  format?: "text" | "json" | { schema: Schema | JsonObject };
  /** The text that the reply starts with. Default: none. */
  prefill?: string;
  /** Texts that end the reply: it is cut before the first of them. Default: none. */
  stop?: string[];
  /** The ids of the granted tools that the model may ask for. Default: none. */
  offerTools?: string[];
  /** Further options; the host ignores those that it does not know. */
  extra?: JsonObject;
}

/** The tokens and the cost of one reply of a model, or of several. */
export interface Usage {
  /** Tokens that the model read, the cached ones included. */
  inputTokens: number;
  /** Tokens among `inputTokens` that the provider had cached. */
  cachedTokens: number;
  /** Tokens among `inputTokens` that the provider put into its cache, where it charges extra for that. */
  cacheWrittenTokens: number;
  /** Tokens that the model wrote, those of its reasoning included. */
  outputTokens: number;
  /** Tokens among `outputTokens` that the model wrote for its reasoning. */
  reasoningTokens: number;
  /** The cost in millionths of a US dollar. Undefined: the price of a part is unknown. */
  costMicrodollars?: number;
}

/** A call of a tool that the model asks for. The plugin decides whether to make it. */
export interface ToolCallRequest {
  /** The id that the answer must repeat. */
  id: string;
  /** The id of the tool. */
  tool: string;
  /** The name of the function. */
  function: string;
  /** The arguments that the model wrote; they are not checked. */
  arguments: any;
}

/** A reply of the model. */
export interface Reply {
  /** The text. May be empty where the model asks for tools. */
  text: string;
  /** The calls that the model asks for, in its order. */
  calls: ToolCallRequest[];
  /**
   * The reason for which the reply ended: finished, `outputTokensMax` reached, tools asked for, rest withheld, or
   * another.
   */
  reason: "end" | "length" | "tools" | "filtered" | "other";
  /** The tokens and the cost of this reply. */
  usage: Usage;
  /** Further facts about the reply. Ignore unknown fields. */
  extra: JsonObject;
}

/** A part of a message: a text, an image, a call that the model asked for, or the result of such a call. */
export type Part =
  | { text: string }
  | { image: { mediaType: string; data: Uint8Array } }
  | { "tool-call": ToolCallRequest }
  | { "tool-result": { id: string; output: unknown; failed?: boolean } };

/** A conversation with a model. The host holds its context, and cuts it back before it exceeds the window. */
export class Conversation {
  /** Starts a conversation with a system prompt, which may be empty. */
  constructor(system: string);
  /** Adds a message. A pinned one stays when the context is cut back or reset. */
  push(message: { role: "user" | "assistant" | "tool"; parts: Part[] }, options?: { pinned?: boolean }): void;
  /** Adds a text of the user. A pinned one stays when the context is cut back or reset. */
  user(text: string, options?: { pinned?: boolean }): void;
  /** Adds the result of a call that the model asked for. */
  answer(answer: { id: string; output: unknown; failed?: boolean }): void;
  /** Asks the model for a reply, and adds the reply to the context. Throws `ContextFull`, `Refused` and others. */
  complete(options?: Options): Reply;
  /** Adds `prompt` as a text of the user, and returns the text of the reply. */
  text(prompt: string, options?: Options): string;
  /**
   * Adds `prompt` as a text of the user, and returns the reply as a value that satisfies `schema`. Throws `Invalid`
   * where it does not.
   */
  json(prompt: string, schema: Schema, options?: Options): any;
  /**
   * Returns the size of the conversation: its costs so far, an estimate of its tokens, the window of the first granted
   * model (undefined: unknown), and the number of resets.
   */
  usage(): { total: Usage; contextTokens: number; contextTokensMax?: number; resets: number };
  /** Removes all messages but the pinned ones, and adds `summary` as a text of the user. */
  reset(summary: string): void;
}

/**
 * Runs a loop in which the model calls the granted tools until it finishes. Throws `LimitReached` with the limit
 * `steps_max` where it does not finish in time.
 */
export function react(
  task: Task,
  options?: {
    /** A text that is added to the system prompt. Default: none. */
    prompt?: string;
    /** The most replies of the model. Default 8. */
    stepsMax?: number;
    /** The longest output of a tool that the model sees, in characters. Default 4 000. */
    observationCharsMax?: number;
  },
): Outcome;

/** Calls of the tools that the operator granted to an agent. */
export namespace tools {
  /** Lists the granted tools, and the host's own tool `context` where there is one. */
  function list(): {
    id: string;
    description: string;
    functions: { name: string; description: string; parameters: Schema; effect: EffectClass }[];
  }[];
  /** Calls a function and returns its output. Throws the error of the tool. */
  function call(tool: string, name: string, args?: JsonObject): any;
  /** Makes up to 64 calls concurrently. Results are in the order of the calls, each with its output or its error. */
  function callMany(
    calls: { tool: string; function: string; arguments?: JsonObject }[],
  ): ({ output: any; error?: undefined } | { error: Failed; output?: undefined })[];
  /**
   * Returns the first `charsMax` characters of the output of the last call, given as text. A note says how much is
   * missing and, where the host keeps the output, how to read on.
   */
  function beginning(output: string, charsMax: number): string;
}

/** The pinned checks of the work at hand, for agents and evaluators. */
export namespace checks {
  /** Lists the checks. `vacuous`: it passed before the work started, so that a pass proves nothing. */
  function list(): { name: string; description: string; vacuous: boolean }[];
  /** Runs a check on a copy of the work tree. A check that fails is a report; throws `Unknown` for another name. */
  function run(name: string): {
    name: string;
    passed: boolean;
    /** The exit code. Undefined: a limit ended the check. */
    exitCode?: number;
    stdout: string;
    stderr: string;
    truncated: boolean;
    /** The duration in milliseconds. */
    durationMs: number;
    /** The level of the sandbox. Undefined: it was `full`. */
    sandboxLevel?: string;
  };
}

/** Delegation of work to other agents, for agents. */
export namespace delegate {
  /** A task. The host replaces `settings` by those of the agent that is asked. */
  type Work = Partial<Task> & { instruction: string };
  /**
   * Runs an agent on a task, and waits for the outcome. Throws `Unknown` for another name, and `Blocked` where the
   * agent needs an answer from a person.
   */
  function run(agent: string, task: Work): Outcome;
  /** Runs up to 64 assignments concurrently. Results are in their order, each with its outcome or its error. */
  function runMany(
    assignments: { agent: string; task: Work }[],
  ): ({ outcome: Outcome; error?: undefined } | { error: Failed; outcome?: undefined })[];
}

/**
 * The private, durable key-value space of a tool or a memory backend. A key has at most 1 024 bytes, and a value at
 * most 4 MiB; `set` throws `LimitReached` above that.
 */
export namespace keyvalue {
  /** Returns the value of a key. Undefined: the key does not exist. */
  function get(key: string): Uint8Array | undefined;
  /** Returns the value of a key as text in UTF-8. Undefined: the key does not exist. */
  function getText(key: string): string | undefined;
  /** Returns the JSON value of a key. Undefined: the key does not exist. Throws `Invalid` where it is not JSON. */
  function getJson(key: string): any;
  /** Sets the value of a key. The change is durable when the call returns. */
  function set(key: string, value: string | Uint8Array): void;
  /** Sets the value of a key to a JSON value. */
  function setJson(key: string, value: unknown): void;
  /** Deletes a key, which need not exist. Exported as `delete`. */
  function remove(key: string): void;
  export { remove as delete };
  /** Reports whether a key exists. */
  function has(key: string): boolean;
  /** Lists the keys that start with `prefix`, page by page. Default: all keys. */
  function keys(prefix?: string): Generator<string>;
  export { get, getJson, getText, has, keys, set, setJson };
}

/** Memory of the run and of the project, for agents and planners. */
export namespace recall {
  /** `working`: the memory of this run. `episodic`: the memory of the project. */
  type Tier = "working" | "episodic";
  /**
   * Keeps a value under a key, in place of the last one. A key has at most 512 bytes, and a value at most 64 KiB as
   * JSON.
   */
  function remember(tier: Tier, key: string, value: unknown): void;
  /** Returns the value of a key. Undefined: there is none. */
  function fetch(tier: Tier, key: string): any;
  /** Finds at most `limit` (default 10) notes of both tiers that fit the query, the best first. */
  function search(query: string, limit?: number): { key: string; value: any; tier: Tier; score: number }[];
}

/** The decision log of the project, for agents and planners. */
export namespace decisions {
  /**
   * A decision: its situation, the decision, its reasons, words to find it by (default: none), its outcome (default
   * `open`), and the lesson of the outcome (default: none).
   */
  interface Decision {
    context: string;
    decision: string;
    reasoning: string;
    tags?: string[];
    outcome?: "open" | "success" | "partial" | "failure" | "reverted";
    lesson?: string;
  }
  /** Adds a decision to the log, and returns its id. At most 64 KiB as JSON. */
  function record(decision: Decision): string;
  /** A decision of the log. */
  interface FoundDecision {
    /** The id that `record` returned. */
    id: string;
    /** The time at which the decision was recorded, in milliseconds since 1970-01-01 UTC. */
    atMs: number;
    /** The decision. */
    decision: Required<Omit<Decision, "lesson">> & { lesson?: string };
  }
  /** Finds at most `limit` (default 10) decisions that fit the query, the best first. */
  function find(query: string, limit?: number): FoundDecision[];
}

/** The progress log of the project, for agents. */
export namespace progress {
  /**
   * Adds an entry: the action, its outcome, and the paths of the files that changed. The host keeps 4 096 bytes of each
   * text and 100 files.
   */
  function add(action: string, outcome: string, files?: string[]): void;
}

/** The artifact of an agent: the state that one invocation passes to the next. */
export namespace artifact {
  /** Returns the artifact that was saved last. Undefined: nothing was saved yet. */
  function load(): { saveNumber: number; state: any; summary: string } | undefined;
  /** Saves an artifact in place of the last one. The state has at most 1 MiB as JSON, and the summary at most 64 KiB. */
  function save(state: unknown, summary: string): void;
}

/** The reason for which a step failed or is broken. */
export interface GraphFailure {
  /** The type of the exception, `SyntaxError` for a source that is not valid, or the name of the limit. */
  kind: string;
  /** The message. */
  message: string;
  /** The line in the source of the step, from 1. Undefined: not known. */
  line?: number;
  /** The column in that line, in characters from 1. Undefined: not known. */
  column?: number;
  /** The traceback as Python prints it, cut at 16 KiB. May be empty. */
  traceback: string;
}

/** A step of a graph. */
export interface GraphStep {
  /** The name of the step. */
  id: string;
  /** The source, in Python. */
  source: string;
  /**
   * The state: up to date, to be run, blocked by a failed step, failed, not valid Python, or cut off with an unknown
   * effect.
   */
  state: "fresh" | "stale" | "blocked" | "failed" | "broken" | "unknown";
  /** The names of the variables that it reads from earlier steps. */
  reads: string[];
  /** The names of the variables that it may write or change. */
  writes: string[];
  /** The steps that it depends on directly. */
  needs: string[];
  /** The names of variables whose values cannot be stored. The step runs again whenever they are needed. */
  unstorable: string[];
  /** The standard output of the last run, cut at 64 KiB. */
  stdout: string;
  /** The standard error of the last run, cut at 64 KiB. */
  stderr: string;
  /** The `repr` of the last expression, cut at 10 000 bytes. Undefined: there is none, or its value is `None`. */
  value?: string;
  /** The reason for which the step failed or is broken. */
  failure?: GraphFailure;
  /** The duration of the last run in milliseconds, rounded up. 0 before the first run. */
  durationMs: number;
}

/** The effect of a change. */
export interface GraphChanges {
  /** The steps that the change made stale, in the order in which they will run. */
  stale: string[];
  /** The reason for which the new source is not valid Python. The graph keeps the source all the same. */
  failure?: GraphFailure;
}

/** The effect of a run. */
export interface GraphReplay {
  /** The steps that ran, in their order, the failed ones included. */
  ran: string[];
  /** The steps whose earlier result for the same inputs was used. */
  reused: string[];
  /** The steps that are failed, broken or unknown after the run. */
  failed: string[];
  /** The steps that did not run, because a step that they need failed. */
  blocked: string[];
  /** The number of the other steps, which were fresh and still are. */
  untouched: number;
  /** Warnings, one line each. */
  warnings: string[];
}

/** A diagnosis of a failure. */
export interface GraphDiagnosis {
  /** The step that failed. */
  step: string;
  /** The failure. */
  failure: GraphFailure;
  /** The values that the failure may depend on, as text, and the steps that computed them. */
  values: { name: string; text: string; producer?: string }[];
  /** The step that probably causes the failure. */
  cause: string;
  /** The reason for naming that step. */
  reason: string;
}

/**
 * A graph of steps of Python code. After a change only the steps that it affects run again. The graph belongs to this
 * invocation, and exists from its first step on. A method throws `Unknown` for a step that does not exist.
 */
export class Graph {
  /** Names a graph. Creates nothing. */
  constructor(name: string);
  /** Adds a step after the last one. A source that is not valid Python is kept, and reported in `failure`. */
  add(step: string, source: string): GraphChanges;
  /** Replaces the source of a step. */
  change(step: string, source: string): GraphChanges;
  /** Removes a step. */
  remove(step: string): GraphChanges;
  /** Runs the stale steps; with `keepGoing` also those that need a failed step. A failing step is not an error. */
  run(options?: { keepGoing?: boolean }): GraphReplay;
  /** Runs a step again, and then the steps that its new values affect. */
  replay(step: string): GraphReplay;
  /** Lists the stale steps, in the order in which they will run. */
  stale(): string[];
  /** Lists the steps, in the order in which they were added. */
  show(): GraphStep[];
  /** Diagnoses the failure of a step. Default: the first step that failed. Throws `Invalid` where none did. */
  diagnose(step?: string): GraphDiagnosis;
  /**
   * Repairs the failure of a step by another source. Default: the first step that failed. Throws `Failed` where no
   * source repairs it.
   */
  patch(step?: string): { step: string; source: string; reason: string; tries: number; replay: GraphReplay };
  /** Exports the graph as text. Default: `json`. */
  export(format?: "json" | "dot"): string;
}

/**
 * The log of the plugin, for people. The host cuts lines at 4 096 bytes, and drops lines after 1 000, unless the
 * operator sets other limits.
 */
export namespace log {
  /** Writes a line with every detail. */
  function trace(text: unknown): void;
  /** Writes a line for the author of the plugin. */
  function debug(text: unknown): void;
  /** Writes a line about a normal event. */
  function info(text: unknown): void;
  /** Writes a line about an unexpected event that the plugin can handle. */
  function warn(text: unknown): void;
  /** Writes a line about a failure of the plugin. */
  function error(text: unknown): void;
}

/**
 * Returns the time, in milliseconds since 1970-01-01 UTC. In an agent, a planner and an evaluator it is that of the
 * last journal entry, so that a replay reads the same.
 */
export function nowMs(): number;
/**
 * Waits for `durationMs` milliseconds. In an agent and a planner the wait is durable: after a restart of the host only
 * the rest of it is waited. An evaluator cannot wait.
 */
export function sleep(durationMs: number): void;

// Helpers.

/** Returns the first fault of `value` by `schema`, in one line. Undefined: there is none. */
export function problemOf(value: unknown, schema: Schema): string | undefined;
/** Reads JSON of at most 100 levels. Throws `Invalid`, whose message calls the text `what`. */
export function readJson(what: string, text: string): any;
/**
 * Returns the first complete JSON object in `text` for which `wanted` is true. Default: the first object. Undefined:
 * there is none.
 */
export function firstObject(text: string, wanted?: (value: JsonObject) => boolean): JsonObject | undefined;
/** Returns the first `charsMax` characters of a text, with a note on the missing rest. */
export function cut(text: string, charsMax: number): string;
/** Returns the number of Unicode code points of a text. */
export function characters(text: string): number;
