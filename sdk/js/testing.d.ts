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

export interface Script {
  /** Replies of the model, in order: a text, an object (as JSON), a whole reply, or an error to throw. */
  replies?: (string | object | Partial<Reply> | Error)[];
  /** By id: what `defineTool` gave, or functions that take arguments and give outputs. */
  tools?: Record<string, ToolExports | { description?: string; functions: Record<string, (args: any) => unknown> }>;
  /** By name: whether it passes, or a report. */
  checks?: Record<string, boolean | { passed: boolean; exitCode?: number; stdout?: string; stderr?: string }>;
  /** By name. */
  agents?: Record<string, (task: Task) => Outcome>;
  /** Milliseconds since 1970-01-01 UTC. Default 0. */
  nowMs?: number;
  keyvalue?: Record<string, string | Uint8Array>;
  /** Outcomes of the runs of a graph, in order. Steps do not run here; without one, all of them ran and none failed. */
  graphRuns?: Partial<GraphReplay>[];
  /** By step, what is found of it. */
  graphDiagnoses?: Record<string, GraphDiagnosis>;
  graphPatches?: Record<string, { step: string; source: string; reason: string; tries: number }>;
}

/** Requests that a scripted host got. */
export interface FakeHost {
  requests: { messages: any[]; options: any }[];
  calls: { tool: string; function: string; arguments: any }[];
  lines: { level: string; text: string }[];
  decisions: any[];
  progress: { action: string; outcome: string; files: string[] }[];
  remembered: { tier: string; key: string; value: string }[];
  saved?: { saveNumber: number; state: string; summary: string };
  store: Map<string, Uint8Array>;
  /** By name, the sources of the steps by name. */
  graphs: Map<string, Map<string, string>>;
  nowMs: number;
}

/** Puts a scripted host in place of the real one. */
export function fakeHost(script?: Script): FakeHost;

/** `args` as a text goes to the tool as it is. */
export function callTool(
  tool: ToolExports,
  name: string,
  args?: object | string,
  context?: { idempotencyKey?: string; remainingMs?: number; attempt?: number; settings?: object },
): any;

export function runAgent(agent: AgentExports, task: Partial<Task> & { instruction: string }): Outcome;

type GoalOf = Partial<Goal> & { text: string };
type ResultOf = Partial<PlanStepResult> & { step: string; passed: boolean };

export function plan(planner: PlannerExports, goal: GoalOf): Required<Plan>;
export function replan(planner: PlannerExports, goal: GoalOf, before: Plan, results: ResultOf[]): Required<Plan>;
export function synthesize(planner: PlannerExports, goal: GoalOf, results: ResultOf[]): Required<Synthesis>;
export function judge(
  evaluator: EvaluatorExports,
  subject: Partial<Subject> & { output: unknown },
  rubric: Partial<Rubric>,
): Required<Verdict>;

export function openMemory(memory: MemoryExports): {
  put(namespace: string, entry: Partial<Entry> & { key: string; value: unknown }): void;
  get(namespace: string, key: string): Entry | undefined;
  search(namespace: string, query: string, limit?: number): { entry: Entry; score: number }[];
  delete(namespace: string, key: string): boolean;
  list(namespace: string, prefix?: string, options?: { cursor?: string; limit?: number }): { keys: string[]; cursor?: string };
};
