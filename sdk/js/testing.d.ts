// The types of longhaul-sdk/testing.

import type {
  AgentExports,
  Entry,
  EvaluatorExports,
  Goal,
  GraphDiagnosis,
  GraphReplay,
  MemoryExports,
  Outcome,
  Plan,
  PlannerExports,
  Rubric,
  PlanStepResult,
  Subject,
  Synthesis,
  Task,
  ToolExports,
  Reply,
  Verdict,
} from "longhaul-sdk";

/** The script of a fake host. */
export interface Script {
  /**
   * The replies of the model, in order: a text, an object (as JSON), a whole reply, or an error to throw. A request
   * without one fails. Default: none.
   */
  replies?: (string | object | Partial<Reply> | Error)[];
  /**
   * The granted tools, by id: the exports of `defineTool`, or functions that take arguments and return outputs.
   * Default: none.
   */
  tools?: Record<string, ToolExports | { description?: string; functions: Record<string, (args: any) => unknown> }>;
  /** The pinned checks, by name: whether the check passes, or its report. Default: none. */
  checks?: Record<string, boolean | { passed: boolean; exitCode?: number; stdout?: string; stderr?: string }>;
  /** The other agents, by name: a function from a task to its outcome. Default: none. */
  agents?: Record<string, (task: Task) => Outcome>;
  /** The time of the clock at the start, in milliseconds since 1970-01-01 UTC. Default 0. A `sleep` moves it. */
  nowMs?: number;
  /** The key-value space at the start: texts or bytes, by key. Default: empty. */
  keyvalue?: Record<string, string | Uint8Array>;
  /**
   * The results of the runs of a graph, in order. Steps do not run here; without a result, all of them ran and none
   * failed.
   */
  graphRuns?: Partial<GraphReplay>[];
  /** The diagnoses, by step. Default: none. */
  graphDiagnoses?: Record<string, GraphDiagnosis>;
  /** The patches, by step. Default: none. */
  graphPatches?: Record<string, { step: string; source: string; reason: string; tries: number }>;
}

/** A fake host, with a record of all requests that it received. */
export interface FakeHost {
  /** The requests to the model: the messages of the conversation at that time, and the options. */
  requests: { messages: any[]; options: any }[];
  /** The calls of tools, in order. */
  calls: { tool: string; function: string; arguments: any }[];
  /** The lines of the log, in order. */
  lines: { level: string; text: string }[];
  /** The recorded decisions, in order. */
  decisions: any[];
  /** The entries of the progress log, in order. */
  progress: { action: string; outcome: string; files: string[] }[];
  /** The remembered notes; `value` is JSON text. */
  remembered: { tier: string; key: string; value: string }[];
  /** The artifact that was saved last; `state` is JSON text. Undefined: none was saved. */
  saved?: { saveNumber: number; state: string; summary: string };
  /** The key-value space: bytes, by key. */
  store: Map<string, Uint8Array>;
  /** The graphs: by name, the sources of the steps by step. */
  graphs: Map<string, Map<string, string>>;
  /** The time of the clock, in milliseconds since 1970-01-01 UTC. */
  nowMs: number;
}

/** Puts a fake host in place of the real one, and returns it. */
export function fakeHost(script?: Script): FakeHost;

/**
 * Calls a function of a tool and returns its output. Throws the error of the tool. `args` as text is passed on as it
 * is. Defaults: no arguments, the idempotency key `key`, 30 000 ms, attempt 1, no settings.
 */
export function callTool(
  tool: ToolExports,
  name: string,
  args?: object | string,
  context?: { idempotencyKey?: string; remainingMs?: number; attempt?: number; settings?: object },
): any;

/** Runs an agent on a task and returns its outcome. Throws the error of the agent. */
export function runAgent(agent: AgentExports, task: Partial<Task> & { instruction: string }): Outcome;

/** A goal of which only the text is required. */
type GoalOf = Partial<Goal> & { text: string };
/** A result of a step of which only the step and `passed` are required. */
type ResultOf = Partial<PlanStepResult> & { step: string; passed: boolean };

/** Makes a plan for a goal by a planner. Throws the error of the planner. */
export function plan(planner: PlannerExports, goal: GoalOf): Required<Plan>;
/** Makes a plan for what is left of a goal, after the plan `before` and its results. */
export function replan(planner: PlannerExports, goal: GoalOf, before: Plan, results: ResultOf[]): Required<Plan>;
/** Makes the answer to a goal from the results of its steps. */
export function synthesize(planner: PlannerExports, goal: GoalOf, results: ResultOf[]): Required<Synthesis>;
/** Judges work by an evaluator. Throws the error of the evaluator. */
export function judge(
  evaluator: EvaluatorExports,
  subject: Partial<Subject> & { output: unknown },
  rubric: Partial<Rubric>,
): Required<Verdict>;

/**
 * Wraps a memory backend for calls with plain values. The defaults of `limit` are 10 for `search` and 100 for `list`.
 * Each call passes `settings` to the backend, as the host passes those that the operator wrote. Default: no settings.
 */
export function openMemory(memory: MemoryExports, options?: { settings?: object }): {
  put(namespace: string, entry: Partial<Entry> & { key: string; value: unknown }): void;
  get(namespace: string, key: string): Entry | undefined;
  search(namespace: string, query: string, limit?: number): { entry: Entry; score: number }[];
  delete(namespace: string, key: string): boolean;
  list(namespace: string, prefix?: string, options?: { cursor?: string; limit?: number }): { keys: string[]; cursor?: string };
};
