// Tests of a plugin in plain Node: a scripted host in place of the real one, and the exports called as
// the host calls them.
//
// It takes the same values as the real host, refuses wrong ones as it does, and knows nothing of grants,
// budgets or journals: `longhaul plugin run` and `longhaul conform` are for those.

import { encode } from "#utf8";

import { fromVariant } from "./errors.js";
import { install } from "./fakes.js";
import { readJson } from "./json.js";
import * as lift from "./lift.js";
import * as shape from "./shapes.js";

/**
 * Puts a scripted host in place, and gives what it was asked.
 *
 * `replies`: what the model says, in order: a text, an object (as JSON), a whole reply, or an error to throw.
 * `tools`: by id, exports of `defineTool`, or `{ functions: { name: (args) => output } }`.
 * `checks`: by name, true, false, or a report. `agents`: by name, a function of a task.
 * `nowMs`: the time of the clock, in milliseconds since 1970. `keyvalue`: texts or bytes by key.
 * Steps of graphs are kept and do not run: `graphRuns` says what each run did, in order; without one all steps ran.
 * `graphDiagnoses` and `graphPatches`: by step, what is found of it.
 */
export function fakeHost({
  replies = [],
  tools = {},
  checks = {},
  agents = {},
  nowMs = 0,
  keyvalue = {},
  graphRuns = [],
  graphDiagnoses = {},
  graphPatches = {},
} = {}) {
  const script = { replies: [...replies], graphRuns: [...graphRuns], graphDiagnoses, graphPatches };
  const host = new FakeHost({ ...script, tools, checks, agents, nowMs, keyvalue });
  install(host.interfaces());
  return host;
}

/** A tool's answer to `args`, read; throws the error classes of longhaul-sdk. */
export function callTool(tool, name, args = {}, { idempotencyKey = "key", remainingMs = 30_000, attempt = 1, settings = {} } = {}) {
  const context = { idempotencyKey, remainingMs, attempt, settings: JSON.stringify(settings) };
  const text = typeof args === "string" ? args : JSON.stringify(args);
  return readJson("the output", called(() => tool.call(name, text, context)).output);
}

/** The outcome of an agent; of `task` only `instruction` is needed. */
export function runAgent(agent, task) {
  return lift.outcome(called(() => agent.run(shape.task(task, "task"))));
}

export function plan(planner, goal) {
  return lift.workPlan(called(() => planner.plan(lowerGoal(goal, "goal"))));
}

export function replan(planner, goal, before, results) {
  const given = [lowerGoal(goal, "goal"), shape.workPlan(before, "plan"), lowerResults(results, "results")];
  return lift.workPlan(called(() => planner.replan(...given)));
}

export function synthesize(planner, goal, results) {
  const given = called(() => planner.synthesize(lowerGoal(goal, "goal"), lowerResults(results, "results")));
  return { ...given, answer: readJson("the answer", given.answer) };
}

export function judge(evaluator, subject, rubric) {
  return called(() => evaluator.judge(lowerSubject(subject, "subject"), lowerRubric(rubric, "rubric")));
}

/** A memory backend with plain values: `put`, `get`, `search`, `delete`, `list`. `settings` go with each call. */
export function openMemory(memory, { settings = {} } = {}) {
  const context = { settings: JSON.stringify(settings) };
  return {
    put: (namespace, entry) => called(() => memory.put(namespace, shape.entry(entry, "entry"), context)),
    get: (namespace, key) => {
      const found = called(() => memory.get(namespace, key, context));
      return found === null ? undefined : lift.entry(found);
    },
    search: (namespace, query, limit = 10) =>
      called(() => memory.search(namespace, query, limit, context)).map(({ entry, score }) => ({ entry: lift.entry(entry), score })),
    delete: (namespace, key) => called(() => memory.delete(namespace, key, context)),
    list: (namespace, prefix = "", { cursor, limit = 100 } = {}) => {
      const page = called(() => memory.list(namespace, prefix, cursor ?? null, limit, context));
      return { ...page, cursor: page.cursor ?? undefined };
    },
  };
}

/** Records what it was asked: `requests` to the model, `calls` of tools, `lines` of the log, and so on. */
class FakeHost {
  requests = [];
  calls = [];
  lines = [];
  decisions = [];
  progress = [];
  saved = undefined;
  remembered = [];
  store = new Map();
  graphs = new Map();

  #script;

  constructor(script) {
    this.#script = script;
    this.nowMs = script.nowMs;
    for (const [key, value] of Object.entries(script.keyvalue)) this.store.set(key, typeof value === "string" ? encode(value) : value);
  }

  interfaces() {
    return {
      artifact: this.#artifact(),
      checks: this.#checks(),
      clock: { nowMs: () => this.nowMs },
      conversation: { Conversation: this.#conversation() },
      decisions: this.#decisions(),
      delegate: this.#delegate(),
      graph: this.#graph(),
      keyvalue: this.#keyvalue(),
      log: { write: (level, text) => this.lines.push({ level, text }) },
      progress: { add: (action, outcome, files) => this.progress.push({ action, outcome, files }) },
      recall: this.#recall(),
      timer: {
        sleep: (durationMs) => {
          this.nowMs += durationMs >>> 0;
        },
      },
      tools: this.#tools(),
    };
  }

  #conversation() {
    const host = this;
    return class {
      #messages = [];

      constructor(system) {
        this.#messages.push({ system });
      }

      push(message, pinned) {
        this.#messages.push({ ...message, pinned });
      }

      complete(options) {
        host.requests.push({ messages: structuredClone(this.#messages), options });
        const given = host.#script.replies.shift();
        if (given === undefined) refuse("failed", `the script has no reply for request ${host.requests.length}`);
        if (given instanceof Error) throw given;
        const reply = toReply(given);
        this.#messages.push({ role: "assistant", parts: [{ tag: "text", val: reply.text }] });
        return reply;
      }

      usage() {
        return { total: NO_USAGE, contextTokens: 0, contextTokensMax: 8192, resets: 0 };
      }

      reset(summary) {
        this.#messages = this.#messages.filter((message) => message.system !== undefined || message.pinned);
        this.#messages.push({ summary });
      }
    };
  }

  #tools() {
    const infoOf = ([id, tool]) =>
      tool.describe?.() ?? {
        id,
        description: tool.description ?? id,
        functions: Object.keys(tool.functions).map((name) => ({
          name,
          description: name,
          parameters: '{"type":"object"}',
          effect: "read-only",
        })),
      };
    const call = ({ tool: id, function: name, arguments: args }) => {
      this.calls.push({ tool: id, function: name, arguments: JSON.parse(args) });
      const tool = this.#script.tools[id];
      if (tool === undefined) refuse("denied", { reason: `the tool \`${id}\` was not granted`, fix: `add \`${id}\` to tools` });
      if (tool.describe) return tool.call(name, args, { idempotencyKey: "key", remainingMs: 30_000, attempt: 1, settings: "{}" });
      if (tool.functions[name] === undefined) refuse("unknown-function", name);
      return { output: JSON.stringify(tool.functions[name](JSON.parse(args)) ?? null), truncated: false };
    };
    return {
      list: () => Object.entries(this.#script.tools).map(infoOf),
      call,
      callMany: (calls) => calls.map((one) => settled(() => call(one))),
    };
  }

  #checks() {
    const { checks } = this.#script;
    return {
      list: () => Object.keys(checks).map((name) => ({ name, description: name, vacuous: false })),
      run: (name) => {
        if (!Object.hasOwn(checks, name)) refuse("unknown-check", name);
        const given = typeof checks[name] === "boolean" ? { passed: checks[name] } : checks[name];
        return { name, exitCode: given.passed ? 0 : 1, stdout: "", stderr: "", truncated: false, durationMs: 0, sandboxLevel: null, ...given };
      },
    };
  }

  #delegate() {
    const run = ({ agent, task }) => {
      if (!Object.hasOwn(this.#script.agents, agent)) refuse("unknown-agent", agent);
      return shape.outcome(this.#script.agents[agent](lift.task(task)), "outcome");
    };
    return { run, runMany: (assignments) => assignments.map((one) => settled(() => run(one))) };
  }

  /** Steps are kept and do not run; what runs, diagnoses and patches give is scripted. */
  #graph() {
    const stepsOf = (graph, step) => {
      const steps = this.graphs.get(graph) ?? refuse("invalid", `there is no graph \`${graph}\``);
      if (step !== undefined && step !== null && !steps.has(step)) refuse("unknown-step", step);
      return steps;
    };
    const replayed = (steps) => ({ ...NOTHING_RAN, ran: [...steps.keys()], ...this.#script.graphRuns.shift() });
    const scripted = (found, graph, step) => {
      stepsOf(graph, step);
      return found[step ?? Object.keys(found)[0]] ?? refuse("invalid", "no step of this graph failed");
    };
    return {
      addStep: (graph, step, source) => {
        if (!this.graphs.has(graph)) this.graphs.set(graph, new Map());
        const steps = this.graphs.get(graph);
        if (steps.has(step)) refuse("invalid", `there is a step \`${step}\` already`);
        steps.set(step, source);
        return { stale: [step], failure: null };
      },
      changeStep: (graph, step, source) => {
        stepsOf(graph, step).set(step, source);
        return { stale: [step], failure: null };
      },
      removeStep: (graph, step) => {
        stepsOf(graph, step).delete(step);
        return { stale: [], failure: null };
      },
      run: (graph) => replayed(stepsOf(graph)),
      replay: (graph, step) => replayed(stepsOf(graph, step)),
      stale: (graph) => [...stepsOf(graph).keys()],
      show: (graph) => [...stepsOf(graph)].map(([id, source]) => ({ ...NEVER_RAN, id, source })),
      diagnose: (graph, step) => scripted(this.#script.graphDiagnoses, graph, step ?? undefined),
      patch: (graph, step) => {
        const patch = scripted(this.#script.graphPatches, graph, step ?? undefined);
        stepsOf(graph).set(patch.step, patch.source);
        return { replay: NOTHING_RAN, ...patch };
      },
      exportGraph: (graph, format) => {
        const ids = [...stepsOf(graph).keys()];
        return format === "json" ? JSON.stringify({ steps: ids }) : `digraph { ${ids.map((id) => `${JSON.stringify(id)};`).join(" ")} }`;
      },
    };
  }

  #keyvalue() {
    return {
      get: (key) => this.store.get(key) ?? null,
      set: (key, value) => this.store.set(key, value),
      delete: (key) => {
        this.store.delete(key);
      },
      exists: (key) => this.store.has(key),
      // Pages of two, so that a plugin that forgets the cursor is found out.
      listKeys: (prefix, cursor) => {
        const keys = [...this.store.keys()].filter((key) => key.startsWith(prefix) && (cursor === null || key > cursor)).sort();
        return { keys: keys.slice(0, 2), cursor: keys.length > 2 ? keys[1] : null };
      },
    };
  }

  #recall() {
    const find = (tier, key) => this.remembered.find((one) => one.tier === tier && one.key === key);
    return {
      remember: (tier, key, value) => {
        this.remembered = this.remembered.filter((one) => one !== find(tier, key));
        this.remembered.push({ tier, key, value });
      },
      fetch: (tier, key) => find(tier, key)?.value ?? null,
      search: (query, limit) =>
        this.remembered
          .filter(({ key, value }) => `${key} ${value}`.includes(query))
          .slice(0, limit)
          .map((one) => ({ ...one, score: 1 })),
    };
  }

  #decisions() {
    return {
      record: (decision) => `d-${this.decisions.push(decision)}`,
      find: (query, limit) =>
        this.decisions
          .map((decision, at) => ({ id: `d-${at + 1}`, atMs: 0, decision }))
          .filter(({ decision }) => JSON.stringify(decision).includes(query))
          .slice(0, limit),
    };
  }

  #artifact() {
    return {
      load: () => this.saved ?? null,
      save: (state, summary) => {
        this.saved = { saveNumber: (this.saved?.saveNumber ?? 0) + 1, state, summary };
      },
    };
  }
}

const NOTHING_RAN = { ran: [], reused: [], failed: [], blocked: [], untouched: 0, warnings: [] };

const NEVER_RAN = { state: "stale", reads: [], writes: [], needs: [], unstorable: [], stdout: "", stderr: "", value: null, failure: null, durationMs: 0 };

const NO_USAGE = {
  inputTokens: 0,
  cachedTokens: 0,
  cacheWrittenTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  costMicrodollars: 0,
};

function toReply(given) {
  const isReply = typeof given === "object" && "reason" in given;
  const text = typeof given === "string" ? given : JSON.stringify(given);
  const nothing = { calls: [], usage: NO_USAGE, extra: "{}" };
  return isReply ? { ...nothing, ...given } : { ...nothing, text, reason: "end" };
}

const lowerGoal = shape.record({
  text: shape.text,
  context: shape.orElse(shape.json, {}),
  settings: shape.orElse(shape.json, {}),
  criteria: shape.orElse(shape.list(shape.record({ id: shape.text, text: shape.text, check: shape.option(shape.text) })), []),
});
const lowerResults = shape.list(
  shape.record({
    step: shape.text,
    passed: shape.bool,
    outcome: shape.option(shape.outcome),
    issues: shape.orElse(shape.list(shape.record({ criterion: shape.option(shape.text), text: shape.text })), []),
  }),
);
const lowerSubject = shape.record({
  context: shape.orElse(shape.json, {}),
  instruction: shape.orElse(shape.text, ""),
  output: shape.json,
  evidence: shape.orElse(shape.list(shape.record({ name: shape.text, content: shape.text })), []),
});
const lowerRubric = shape.record({
  criteria: shape.orElse(shape.list(shape.record({ id: shape.text, text: shape.text, check: shape.option(shape.text) })), []),
  settings: shape.orElse(shape.json, {}),
});

/** Throws as the engine throws the error of an import. */
function refuse(tag, val) {
  throw Object.assign(new Error(tag), { payload: { tag, val } });
}

function settled(call) {
  try {
    return { tag: "ok", val: call() };
  } catch (error) {
    return { tag: "err", val: error.payload ?? { tag: "failed", val: error.message } };
  }
}

/** Calls an export; what it throws becomes an error class again. */
function called(call) {
  try {
    return call();
  } catch (error) {
    throw error.payload === undefined ? error : Object.assign(fromVariant(error.payload), { variant: error.payload });
  }
}
