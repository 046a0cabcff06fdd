// Trajectories: filters that stand in the address, messages of every shape, and a judgement that says only what changed.

import assert from "node:assert/strict";
import test from "node:test";

import { install } from "./document.mjs";

install();
const folder = process.env.PAGE_MODULES;
const own = await import(new URL("trajectories.js", folder));
const { transcript } = await import(new URL("part_transcript.js", folder));
const { addressOf, annotationOf, isFiltered, messageOf, paramsOf, shortId, trajectoryHref, wanted } = own;

test("the address has the filters, and gives them back", () => {
  const now = wanted(new URLSearchParams("project=a b&ending=failed&judged=good&offset=50&other=1"));
  assert.deepEqual(now, { project: "a b", run: "", agent: "", ending: "failed", judged: "good", offset: 50 });
  assert.equal(addressOf(now), "#/trajectories?project=a+b&ending=failed&judged=good&offset=50");
  assert.equal(addressOf(wanted(new URLSearchParams("offset=-3"))), "#/trajectories");
  assert.ok(isFiltered(now) && !isFiltered({ ...now, ending: "", judged: "" }));
});

test("filters are parameters of the API, of all runs where none is named", () => {
  const none = wanted(new URLSearchParams());
  assert.deepEqual(paramsOf(none), { all_runs: true, agent: "", ending: "" });
  assert.deepEqual(paramsOf({ ...none, run: "r-1", judged: "bad" }), {
    all_runs: null,
    agent: "",
    ending: "",
    rating_max: 2,
  });
  assert.equal(paramsOf({ ...none, judged: "no" }).annotated, false);
  assert.deepEqual(paramsOf({ ...none, judged: "invented" }), paramsOf(none));
});

test("an invocation is told without its run, and has an address", () => {
  const one = { run: "r-1", id: "r-1/f-one/1/generate" };
  assert.equal(shortId(one), "f-one/1/generate");
  assert.equal(shortId({ run: "r-1", id: "r-12/f" }), "r-12/f");
  assert.equal(trajectoryHref(one), "#/trajectories/r-1/r-1%2Ff-one%2F1%2Fgenerate");
});

test("a message of any shape is read, and nothing of it is lost", () => {
  assert.deepEqual(messageOf({ role: "user", content: "hi" }), {
    role: "user",
    text: "hi",
    thoughts: "",
    calls: [],
    answers: "",
  });
  assert.equal(
    messageOf({ role: "user", content: [{ type: "text", text: "a" }, "b", { type: "image", n: 1 }] }).text,
    'a\nb\n{"type":"image","n":1}',
  );
  const call = messageOf({
    role: "assistant",
    content: null,
    tool_calls: [{ function: { name: "files.read", arguments: '{"p":1}' } }],
  });
  assert.deepEqual([call.text, call.calls], ["", [{ name: "files.read", arguments: '{"p":1}' }]]);
  assert.equal(messageOf({ role: "tool", content: { a: 1 }, tool_call_id: "c1" }).answers, "c1");
  for (const odd of [null, undefined, {}, { role: 7, content: 7, tool_calls: 7 }, { tool_calls: [null] }])
    assert.equal(messageOf(odd).role, "message");
});

const trajectory = (conversations, incomplete = null) => ({ conversations, incomplete });

test("a transcript has each message as text, long ones in parts", () => {
  const drawn = transcript(
    trajectory([
      [
        { role: "user", content: "<img src=x>" },
        { role: "assistant", content: "<b>y</b>", tool_calls: [{ name: "t" }] },
      ],
    ]),
  );
  assert.match(drawn.textContent, /User.*<img src=x>.*Agent.*<b>y<\/b>.*asks for t/s);
  assert.equal(drawn.querySelectorAll("img").length, 0);
  const many = transcript(trajectory([Array.from({ length: 130 }, (_, at) => ({ role: "user", content: `m${at}` }))]));
  assert.equal(many.querySelectorAll(".message").length, 60);
  many.querySelectorAll("button").at(-1).fire("click");
  assert.equal(many.querySelectorAll(".message").length, 120);
  many.querySelectorAll("button").at(-1).fire("click");
  assert.equal(many.querySelectorAll(".message").length, 130);
  assert.equal(many.querySelectorAll("button").length, 0);
});

test("a transcript says when it is not whole, and when there is none", () => {
  assert.match(
    transcript(trajectory([], "the plugin is gone")).textContent,
    /Not whole: the plugin is gone.*no messages/,
  );
});

test("a judgement sends what changed alone", () => {
  const before = { rating: 3, correction: "so" };
  assert.equal(annotationOf("i", { rating: "3", correction: "so" }, before), null);
  assert.equal(annotationOf("i", { rating: "", correction: " " }, { rating: null, correction: null }), null);
  assert.deepEqual(annotationOf("i", { rating: "4", correction: "so" }, before), { invocation: "i", rating: 4 });
  assert.deepEqual(annotationOf("i", { rating: "3", correction: "thus" }, before), {
    invocation: "i",
    correction: "thus",
  });
});
