import assert from "node:assert/strict";
import { test } from "node:test";

import * as sdk from "longhaul-sdk";
import { callTool, fakeHost, judge, openMemory, plan, runAgent } from "longhaul-sdk/testing";

const anything = { description: "", effect: "read-only", parameters: { type: "object" } };

function toolThat(call) {
  return sdk.defineTool({ id: "t", description: "", functions: { f: { ...anything, call } } });
}

function variantOf(call) {
  try {
    call();
  } catch (error) {
    return error.payload ?? error.variant;
  }
  return assert.fail("nothing was thrown");
}

test("what a tool throws becomes the variant that says the same", () => {
  const denial = { reason: "no", fix: "allow it" };
  const cases = [
    [new sdk.Denied("no", "allow it"), { tag: "denied", val: denial }],
    [new sdk.LimitReached("steps_max", 8, 8), { tag: "limit", val: { name: "steps_max", used: 8, max: 8 } }],
    [new sdk.Unavailable("down", 5), { tag: "unavailable", val: { reason: "down", retryAfterMs: 5 } }],
    [new sdk.Unavailable("down"), { tag: "unavailable", val: { reason: "down", retryAfterMs: null } }],
    [new sdk.TimedOut(7), { tag: "timed-out", val: 7 }],
    [new sdk.OutcomeUnknown("it broke"), { tag: "outcome-unknown", val: "it broke" }],
    [new sdk.Invalid("bad"), { tag: "invalid-arguments", val: "bad" }],
    [new sdk.Unknown("x"), { tag: "unknown-function", val: "x" }],
    [new sdk.Blocked("why?"), { tag: "failed", val: "why?" }],
    [new sdk.Failed("broke"), { tag: "failed", val: "broke" }],
    [new TypeError("oops"), { tag: "failed", val: "TypeError: oops" }],
    ["text", { tag: "failed", val: "text" }],
    [undefined, { tag: "failed", val: "undefined" }],
    [{ a: 1 }, { tag: "failed", val: '{"a":1}' }],
    [new Error("\ud800"), { tag: "failed", val: "Error: \ufffd" }],
  ];
  for (const [thrown, expected] of cases) {
    const tool = toolThat(() => {
      throw thrown;
    });
    assert.deepEqual(variantOf(() => callTool(tool, "f")), expected);
  }
});

test("each role has its own place for a question and for wrong input", () => {
  fakeHost();
  const blocked = () => {
    throw new sdk.Blocked("which?");
  };
  const impossible = () => {
    throw new sdk.Impossible("no");
  };
  const invalid = () => {
    throw new sdk.Invalid("bad");
  };
  const agent = (run) => variantOf(() => runAgent(sdk.defineAgent({ run }), { instruction: "x" }));
  assert.deepEqual(agent(blocked), { tag: "blocked", val: "which?" });
  assert.deepEqual(agent(impossible), { tag: "impossible", val: "no" });
  assert.deepEqual(agent(invalid), { tag: "failed", val: "bad" });
  const planner = sdk.definePlanner({ plan: blocked, replan: blocked, synthesize: blocked });
  assert.deepEqual(variantOf(() => plan(planner, { text: "x" })), { tag: "unclear", val: "which?" });
  const evaluator = sdk.defineEvaluator({ judge: blocked });
  assert.deepEqual(variantOf(() => judge(evaluator, { output: 1 }, {})), { tag: "failed", val: "which?" });
  const memory = openMemory(sdk.defineMemory({ put: invalid, get: (_, key, { settings }) => ({ key, value: settings }) }), {
    settings: { size: 3 },
  });
  assert.deepEqual(memory.get("n", "k").value, { size: 3 });
  assert.deepEqual(variantOf(() => memory.put("n", { key: "k", value: 1 })), { tag: "invalid", val: "bad" });
});

test("an answer of the wrong shape fails by the name of its place", () => {
  fakeHost();
  const agent = (outcome) => variantOf(() => runAgent(sdk.defineAgent({ run: () => outcome }), { instruction: "x" })).val;
  assert.equal(agent(undefined), "`outcome` must be an object, not undefined");
  assert.equal(agent({}), "`outcome.output` is no JSON: it is undefined");
  assert.equal(agent({ output: 1, summary: 5 }), "`outcome.summary` must be a text, not 5");
  assert.equal(agent({ output: 1, unknowns: ["a", 2] }), "`outcome.unknowns[1]` must be a text, not 2");
  assert.equal(agent({ output: 1, confidence: "high" }), "`outcome.confidence` must be a number, not high");
  assert.equal(agent(Promise.resolve()), "`run` gave a promise; a plugin's functions cannot be async");
  const circular = {};
  circular.self = circular;
  assert.match(agent({ output: circular }), /^`outcome\.output` is no JSON: /);
  const steps = (onFailure) => {
    const step = { id: "a", title: "a", instruction: "a", onFailure };
    const planner = sdk.definePlanner({ plan: () => ({ steps: [step] }) });
    return variantOf(() => plan(planner, { text: "x" })).val;
  };
  assert.match(steps("retry"), /^`plan\.steps\[0\]\.onFailure` must be one of /);
  assert.match(steps({ retry: -1 }), /whole number from 0 to 4294967295, not -1$/);
});

test("a check of a plan is Python, another language or a name", () => {
  fakeHost();
  const step = (body) => ({ id: "a", title: "a", instruction: "a", checks: [{ name: "c", body }] });
  const planner = (body) => sdk.definePlanner({ plan: () => ({ steps: [step(body)] }) });
  for (const body of [{ python: "1" }, { source: { language: "ruby", text: "1" } }, { native: "unit" }]) {
    assert.deepEqual(plan(planner(body), { text: "x" }).steps[0].checks[0].body, body);
  }
  assert.deepEqual(planner({ python: "1" }).plan({ text: "", context: "", settings: "", criteria: [] }).steps[0].checks[0].body, {
    tag: "source",
    val: { language: "python", text: "1" },
  });
  assert.match(variantOf(() => plan(planner("native"), { text: "x" })).val, /^`plan\.steps\[0\]\.checks\[0\]\.body` must be one of /);
});

test("a tool's arguments are read and held to their schema", () => {
  const parameters = { type: "object", properties: { n: { type: "integer", minimum: 1 } }, required: ["n"], additionalProperties: false };
  const tool = sdk.defineTool({
    id: "t",
    description: "",
    functions: { f: { ...anything, parameters, call: (args, context) => ({ ...args, ...context.settings }) } },
  });
  assert.deepEqual(callTool(tool, "f", { n: 2 }, { settings: { a: 1 } }), { n: 2, a: 1 });
  const refused = (args) => variantOf(() => callTool(tool, "f", args));
  for (const [args, text] of [
    [{}, "`n` is missing"],
    [{ n: 0 }, "`n` must be 1 or more"],
    [{ n: 1.5 }, "`n` must be integer, not number"],
    [{ n: "1" }, "`n` must be integer, not string"],
    [{ n: 1, m: 1 }, "`m` is not known; known: n"],
    ["", "`n` is missing"],
    ["[1]", "the arguments must be a JSON object"],
    ["[".repeat(100_000), "the arguments cannot be read: it is nested deeper than 100 levels"],
  ]) {
    assert.deepEqual(refused(args), { tag: "invalid-arguments", val: text });
  }
  assert.equal(refused("{").tag, "invalid-arguments");
  assert.deepEqual(variantOf(() => callTool(tool, "g")), { tag: "unknown-function", val: "`g`; the tool `t` has f" });
  assert.deepEqual(variantOf(() => callTool(tool, "toString")).tag, "unknown-function");
});

test("a tool is asked to verify only where it says how", () => {
  const tool = sdk.defineTool({
    id: "t",
    description: "",
    functions: {
      plain: { ...anything, call: () => 1 },
      sent: {
        ...anything,
        effect: "verifiable",
        call: () => 1,
        prepare: ({ to }, { idempotencyKey }) => ({ before: to, key: idempotencyKey }),
        verify: (args, prepared, { settings }) => ({ happened: { args, prepared, settings } }),
      },
    },
  });
  const context = { idempotencyKey: "k", remainingMs: 1, attempt: 1, settings: '{"a":1}' };
  assert.equal(tool.prepare("plain", "{}", context), "{}");
  assert.equal(tool.verify("plain", "{}", "{}", context).tag, "unknown");
  assert.equal(tool.prepare("sent", '{"to":5}', context), '{"before":5,"key":"k"}');
  const { tag, val } = tool.verify("sent", '{"to":5}', '{"before":5}', context);
  const happened = { args: { to: 5 }, prepared: { before: 5 }, settings: { a: 1 } };
  assert.deepEqual([tag, JSON.parse(val.output), val.truncated], ["happened", happened, false]);
  assert.throws(() => tool.verify("gone", "{}", "{}", context));
});

test("a wrong definition is an error when the plugin is built", () => {
  const define = (given) => () => sdk.defineTool({ id: "t", description: "", functions: { f: given } });
  assert.throws(define({ ...anything, call: 1 }), /has no `call`/);
  assert.throws(define({ ...anything, call() {}, effect: "safe" }), /effect of `f` must be one of/);
  assert.throws(define({ ...anything, call() {}, parameters: { type: "string" } }), /must have the type object/);
  assert.throws(define({ ...anything, call() {}, parameters: { type: "object", anyOf: [] } }), /`anyOf`, which is not checked/);
});

test("an error of an import keeps what a caller can act on", () => {
  fakeHost({ keyvalue: {} });
  assert.throws(() => sdk.tools.call("gone", "f"), (error) => error instanceof sdk.Denied && error.fix === "add `gone` to tools");
  assert.throws(() => sdk.checks.run("gone"), sdk.Unknown);
  assert.throws(() => sdk.delegate.run("gone", { instruction: "x" }), sdk.Unknown);
  assert.throws(() => sdk.keyvalue.set("k", 5), /`value` must be a Uint8Array, not 5/);
});

test("a price that is unknown is undefined and not 0", () => {
  const usage = { inputTokens: -1, cachedTokens: 0, cacheWrittenTokens: 1, outputTokens: 3, reasoningTokens: 2, costMicrodollars: null };
  fakeHost({ replies: [{ text: "a", reason: "end", usage }] });
  const talk = new sdk.Conversation("s");
  assert.deepEqual(talk.complete().usage, { ...usage, inputTokens: 2 ** 32 - 1, costMicrodollars: undefined });
  assert.equal(talk.usage().total.costMicrodollars, 0);
});

test("a graph keeps its steps and runs as it is scripted", () => {
  const failure = { kind: "NameError", message: "no rowz", line: 1, column: null, traceback: "" };
  const diagnosis = { step: "sum", failure, values: [{ name: "rows", text: "[1]", producer: null }], cause: "sum", reason: "a typo" };
  const host = fakeHost({
    graphRuns: [{ failed: ["sum"] }],
    graphDiagnoses: { sum: diagnosis },
    graphPatches: { sum: { step: "sum", source: "total = sum(rows)", reason: "a typo", tries: 1 } },
  });
  const graph = new sdk.Graph("figures");
  assert.throws(() => graph.run(), sdk.Invalid);
  assert.deepEqual(graph.add("load", "rows = [1]"), { stale: ["load"], failure: undefined });
  graph.add("sum", "total = sum(rowz)");
  assert.throws(() => graph.add("sum", ""), sdk.Invalid);
  assert.throws(() => graph.change("gone", ""), sdk.Unknown);
  assert.throws(() => graph.add("bad", 5), /`source` must be a text, not 5/);
  assert.deepEqual(graph.run().failed, ["sum"]);
  assert.deepEqual(graph.diagnose().failure, { ...failure, column: undefined });
  assert.equal(graph.diagnose("sum").values[0].producer, undefined);
  assert.equal(graph.patch("sum").tries, 1);
  assert.deepEqual(graph.replay("load").ran, ["load", "sum"]);
  assert.equal(graph.show()[1].source, "total = sum(rows)");
  assert.equal(graph.show()[1].failure, undefined);
  assert.throws(() => graph.export("png"), /`format` must be one of json, dot/);
  assert.match(graph.export("dot"), /"load";/);
  graph.remove("sum");
  assert.deepEqual(graph.stale(), ["load"]);
  assert.deepEqual([...host.graphs.get("figures").keys()], ["load"]);
});

test("what the host keeps comes back as it was", () => {
  const host = fakeHost({ agents: { echo: (task) => ({ output: task.instruction }) }, nowMs: 5 });
  for (const key of ["a", "b/1", "b/2", "b/3", "c"]) sdk.keyvalue.set(key, `${key} ä😀`);
  assert.deepEqual([...sdk.keyvalue.keys("b/")], ["b/1", "b/2", "b/3"]);
  assert.equal(sdk.keyvalue.getText("b/2"), "b/2 ä😀");
  assert.equal(sdk.keyvalue.get("gone"), undefined);
  sdk.keyvalue.delete("a");
  assert.equal(sdk.keyvalue.has("a"), false);
  assert.equal(sdk.recall.fetch("working", "k"), undefined);
  sdk.recall.remember("working", "k", { deep: [1] });
  assert.deepEqual(sdk.recall.fetch("working", "k"), { deep: [1] });
  assert.equal(sdk.decisions.record({ context: "c", decision: "d", reasoning: "r" }), "d-1");
  const decision = { context: "c", decision: "d", reasoning: "r", tags: [], outcome: "open", lesson: undefined };
  assert.deepEqual(sdk.decisions.find("d"), [{ id: "d-1", atMs: 0, decision }]);
  assert.equal(sdk.artifact.load(), undefined);
  sdk.artifact.save([1], "one");
  assert.deepEqual(sdk.artifact.load(), { saveNumber: 1, state: [1], summary: "one" });
  const [done, failed] = sdk.delegate.runMany([
    { agent: "echo", task: { instruction: "hi" } },
    { agent: "gone", task: { instruction: "hi" } },
  ]);
  assert.equal(done.outcome.output, "hi");
  assert.ok(failed.error instanceof sdk.Unknown);
  sdk.sleep(10);
  assert.equal(sdk.nowMs(), 15);
  sdk.progress.add("built", "ok", ["a.js"]);
  assert.deepEqual(host.progress, [{ action: "built", outcome: "ok", files: ["a.js"] }]);
  sdk.log.info("hm");
  assert.deepEqual(host.lines, [{ level: "info", text: "hm" }]);
});
