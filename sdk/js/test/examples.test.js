import assert from "node:assert/strict";
import { test } from "node:test";

import { Blocked, defineTool, Failed, Invalid, LimitReached } from "longhaul-sdk";
import { callTool, fakeHost, judge, openMemory, plan, replan, runAgent, synthesize } from "longhaul-sdk/testing";

import { agent } from "../examples/agent/app.js";
import { evaluator } from "../examples/evaluator/app.js";
import { memory } from "../examples/memory/app.js";
import { planner } from "../examples/planner/app.js";
import { tool } from "../examples/tool/app.js";

test("notes counts, keeps and gives back", () => {
  fakeHost();
  assert.deepEqual(callTool(tool, "count", { text: "a  b\nc ä😀\n" }), { words: 4, lines: 3, characters: 10 });
  assert.deepEqual(callTool(tool, "count", { text: "" }), { words: 0, lines: 0, characters: 0 });
  assert.deepEqual(callTool(tool, "save", { name: "ä/😀", text: "x" }), { saved: "ä/😀" });
  assert.deepEqual(callTool(tool, "read", { name: "ä/😀" }), { text: "x" });
  assert.throws(() => callTool(tool, "read", { name: "gone" }), { constructor: Failed, message: "there is no note `gone`" });
  assert.throws(() => callTool(tool, "save", { name: "n".repeat(101), text: "" }), Invalid);
  assert.throws(() => callTool(tool, "save", { name: "", text: "" }), Invalid);
});

const finish = { action: "finish", output: { n: 1 }, summary: "done" };
const use = { action: "tool", tool: "sum", function: "add", arguments: { a: 1 } };
const task = { instruction: "add", criteria: [{ id: "c", text: "it adds" }], feedback: [{ text: "wrong" }] };

test("reporter uses tools until it is done", () => {
  const host = fakeHost({ replies: [use, finish], tools: { sum: { functions: { add: ({ a }) => a + 1 } } } });
  assert.deepEqual(runAgent(agent, task), { output: { n: 1 }, summary: "done", confidence: undefined, unknowns: [] });
  assert.deepEqual(host.calls, [{ tool: "sum", function: "add", arguments: { a: 1 } }]);
  assert.match(host.requests[0].messages[0].system, /- sum\.add: add/);
  assert.equal(host.requests[0].messages[1].pinned, true);
  assert.equal(host.requests[1].messages.at(-1).parts[0].val, "sum.add answered: 2");
  assert.equal(host.requests[0].options.format.tag, "schema");
});

test("an error of a tool is for the model to see", () => {
  const host = fakeHost({ replies: [use, { ...use, tool: "gone" }, finish], tools: { sum: { functions: {} } } });
  runAgent(agent, task);
  const observed = host.requests.slice(1).map(({ messages }) => messages.at(-1).parts[0].val);
  assert.deepEqual(observed, ["sum.add failed: add", "gone.add failed: the tool `gone` was not granted; to allow it, add `gone` to tools"]);
});

test("a picture is shown, and its bytes are left out of the words", () => {
  for (const [url, data] of [
    ["data:image/png;base64,AQID", [1, 2, 3]],
    ["data:image/gif;base64,AQI=", [1, 2]],
    ["data:image/webp;base64,+/8=", [251, 255]],
    ["data:image/png;base64,AQI", undefined],
    ["data:image/png;base64,A*ID", undefined],
    ["data:text/html;base64,AQID", undefined],
  ]) {
    const host = fakeHost({ replies: [use, finish], tools: { sum: { functions: { add: () => ({ data_url: url, width: 3 }) } } } });
    runAgent(agent, task);
    const [words, ...pictures] = host.requests[1].messages.at(-1).parts;
    assert.deepEqual(pictures.map(({ val }) => Array.from(val.data)), data === undefined ? [] : [data], url);
    assert.equal(words.val.includes(`${data?.length} bytes]`), data !== undefined);
    assert.equal(words.val.includes(url), data === undefined);
  }
});

test("what is cut can be read again where the host keeps it", () => {
  const tools = { sum: { functions: { add: () => "x".repeat(9_000) } }, context: { functions: { read_again: () => "" } } };
  const host = fakeHost({ replies: [use, finish], tools });
  runAgent(agent, task);
  const seen = host.requests[1].messages.at(-1).parts[0].val;
  assert.match(seen, /5002 more characters; to read all of it, call context\.read_again with \{"id":"call-\d+"\}\)$/);
});

test("an answer that cannot be read is sent back once", () => {
  const host = fakeHost({ replies: ["hm", finish] });
  assert.equal(runAgent(agent, task).summary, "done");
  assert.match(host.requests[1].messages.at(-1).parts[0].val, /^Your answer could not be read: the answer cannot be read: /);
  fakeHost({ replies: ["hm", '{"action":"dance"}'] });
  assert.throws(() => runAgent(agent, task), { constructor: Failed, message: /could not be read twice/ });
});

test("steps that are used up are a limit", () => {
  const tools = { sum: { functions: { add: () => 1 } } };
  fakeHost({ replies: Array(9).fill(use), tools });
  assert.throws(() => runAgent(agent, task), (error) => error instanceof LimitReached && error.limit === "steps_max" && error.max === 8);
  const host = fakeHost({ replies: Array(9).fill(use), tools });
  assert.throws(() => runAgent(agent, { ...task, settings: { steps_max: 2, prompt: "Be brief." } }), LimitReached);
  assert.equal(host.requests.length, 2);
  assert.match(host.requests[0].messages[0].system, /Be brief\.$/);
  assert.throws(() => runAgent(agent, { ...task, settings: { steps: 2 } }), /`steps` is not known/);
});

test("outline makes a step of each line", () => {
  const text = "Build it:\n- one: first thing\n  - two-b: " + "ä".repeat(100) + "\n- not a step\n";
  const made = plan(planner, { text });
  assert.deepEqual(made.steps.map((step) => step.id), ["one", "two-b"]);
  assert.equal(Array.from(made.steps[1].title).length, 80);
  assert.deepEqual(made.steps[0], {
    id: "one",
    title: "first thing",
    instruction: "first thing",
    category: "functional",
    priority: 5,
    agent: undefined,
    criteria: [{ id: "does-it", text: "first thing", check: undefined }],
    checks: [],
    dependsOn: [],
    onFailure: { retry: 1 },
  });
  assert.throws(() => plan(planner, { text: "do it" }), Blocked);
  const results = [
    { step: "one", passed: true, outcome: { output: { n: 1 } } },
    { step: "two-b", passed: false, issues: [{ text: "no" }] },
  ];
  assert.deepEqual(replan(planner, { text }, made, results).steps.map((step) => step.id), ["two-b"]);
  const { answer, confidence, unknowns } = synthesize(planner, { text }, results);
  assert.deepEqual([answer, confidence, unknowns], [{ one: { n: 1 }, "two-b": null }, 0.5, ["two-b"]]);
});

test("mentions looks for what is quoted, or runs the check of that name", () => {
  fakeHost({ checks: { works: true, breaks: { passed: false, exitCode: 3 } } });
  const subject = { output: { text: 'a "b" ä' }, evidence: [{ name: "f", content: "héllo" }] };
  const criteria = [
    { id: "here", text: 'has "ä" and "héllo"' },
    { id: "gone", text: 'has "ä" and "nope"' },
    { id: "works", text: "it works" },
    { id: "breaks", text: "it breaks" },
    { id: "none", text: "who knows" },
  ];
  const { judgements, issues } = judge(evaluator, subject, { criteria });
  assert.deepEqual(judgements.map(({ mark, reason }) => `${mark}: ${reason}`), [
    "pass: all that it quotes is there",
    'fail: missing: "nope"',
    "pass: the check `works` passed",
    "fail: the check `breaks` failed with exit code 3",
    "fail: it quotes nothing, and there is no check `none`",
  ]);
  assert.equal(issues.length, 3);
  assert.throws(() => judge(evaluator, subject, {}), { constructor: Failed, message: "a rubric without criteria cannot be judged" });
});

test("shelf keeps namespaces apart, in the order of code points", () => {
  fakeHost();
  const shelf = openMemory(memory);
  shelf.put("a", { key: "b/c", value: 1 });
  shelf.put("a/b", { key: "c", value: 2 });
  shelf.put("", { key: "a", value: 3 });
  assert.equal(shelf.get("a", "b/c").value, 1);
  assert.equal(shelf.get("a/b", "c").value, 2);
  assert.equal(shelf.get("a", "c"), undefined);
  for (const key of ["\uffff", "😀", "z", "ä", "za"]) shelf.put("n", { key, value: null });
  assert.deepEqual(shelf.list("n"), { keys: ["z", "za", "ä", "\uffff", "😀"], cursor: undefined });
  assert.deepEqual(shelf.list("n", "z", { limit: 1 }), { keys: ["z"], cursor: "z" });
  assert.deepEqual(shelf.list("n", "z", { limit: 1, cursor: "z" }), { keys: ["za"], cursor: undefined });
  assert.deepEqual(shelf.list("n", "", { limit: 0 }).keys, []);
  assert.deepEqual([shelf.delete("n", "z"), shelf.delete("n", "z")], [true, false]);
  assert.throws(() => shelf.put("n", { key: "", value: 1 }), Invalid);
  assert.throws(() => shelf.get("n", ""), Invalid);
});

test("shelf finds by words and forgets what has expired", () => {
  const host = fakeHost({ nowMs: 100 });
  const shelf = openMemory(memory);
  shelf.put("n", { key: "b", value: { text: "Red apple" }, tags: ["Fruit"] });
  shelf.put("n", { key: "a", value: "red", tags: [] });
  shelf.put("n", { key: "late", value: "red fruit", expiresAtMs: 101 });
  assert.deepEqual(shelf.search("n", "RED fruit").map(({ entry, score }) => [entry.key, score]), [
    ["b", 1],
    ["late", 1],
    ["a", 0.5],
  ]);
  assert.equal(shelf.search("n", "red fruit", 1).length, 1);
  assert.deepEqual(shelf.search("n", "  "), []);
  host.nowMs = 101;
  assert.deepEqual(shelf.list("n").keys, ["a", "b"]);
  assert.equal(host.store.size, 2);
  assert.equal(shelf.get("n", "late"), undefined);
  assert.throws(() => memory.put("n", { key: "k", value: "{", tags: [], expiresAtMs: null }), ({ payload }) => payload.tag === "invalid");
});

test("a tool of the SDK can stand in for another plugin's tool", () => {
  const shout = { description: "", effect: "read-only", parameters: { type: "object" }, call: ({ text }) => text.toUpperCase() };
  const loud = defineTool({ id: "loud", description: "Shouts.", functions: { shout } });
  const host = fakeHost({ replies: [{ action: "tool", tool: "loud", function: "shout", arguments: { text: "a" } }, finish], tools: { loud } });
  runAgent(agent, task);
  assert.equal(host.requests[1].messages.at(-1).parts[0].val, 'loud.shout answered: "A"');
});
