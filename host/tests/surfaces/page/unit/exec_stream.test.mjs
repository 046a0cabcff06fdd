// Code that runs: its output as it comes, and its end, whatever that is. A request is sent once.

import assert from "node:assert/strict";
import test, { beforeEach, mock } from "node:test";

import { install } from "./document.mjs";

install();
// A short message at the edge goes away after a while, for which no test waits.
const { setTimeout: later } = globalThis;
globalThis.setTimeout = (...given) => later(...given).unref();
const folder = process.env.PAGE_MODULES;
const { Interrupted, runCode } = await import(new URL("exec_stream.js", folder));
const { LIVE_CHARS_MAX } = await import(new URL("live_output.js", folder));
const { ApiError } = await import(new URL("api.js", folder));
const session = await import(new URL("session.js", folder));

const REPORT = {
  ...{ success: true, stdout: "one\ntwo\n", stderr: "", exit_code: 0, duration_seconds: 0.1, error_message: null },
  ...{ fuel_used: 1, memory_bytes_peak: 1, limit: null, truncated: false, outputs: [], sandbox: null, session: null },
};

const NO_SESSIONS = { items: [], total: 0, offset: 0, limit: 50 };

const until = async (what, is) => {
  const since = Date.now();
  while (!is()) {
    assert.ok(Date.now() - since < 5_000, what);
    await new Promise((resolve) => setImmediate(resolve));
  }
};

/** What was sent to run code, with its answer: `{headers, write(text), say(type, data), end(), fail(), isLeft}`. */
let sent;
/** Answers in the place of the stream, if it is set. */
let refusal;

beforeEach(() => {
  session.begin("lh_test", { name: "all", scopes: ["admin"] });
  sent = [];
  refusal = null;
  globalThis.fetch = async (path, { method = "GET", headers, signal }) => {
    if (method === "GET") return { ok: true, status: 200, json: async () => NO_SESSIONS };
    assert.equal(`${method} ${path}`, "POST /api/v1/exec");
    const one = { headers };
    sent.push(one);
    if (refusal) return refusal();
    return new Response(
      new ReadableStream({
        start(controller) {
          one.write = (text) => controller.enqueue(new TextEncoder().encode(text));
          one.say = (type, data) => one.write(`event: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
          one.end = () => controller.close();
          one.fail = () => controller.error(new TypeError("network error"));
          signal.addEventListener("abort", () => (one.isLeft = true) && controller.error(signal.reason));
        },
      }),
    );
  };
});

/** Code that was sent, what came of it so far, and its end. */
async function running() {
  const stop = new AbortController();
  const heard = [];
  const onEvent = ({ type, data }) => heard.push([type, data]);
  const done = runCode({ language: "python", source: "1" }, { signal: stop.signal, onEvent });
  done.catch(() => {});
  await until("it is sent", () => sent[0]?.say !== undefined);
  return { stop, heard, done, stream: sent[0] };
}

test("output is told as it comes, and the result is what the stream ends with", async () => {
  const { heard, done, stream } = await running();
  assert.equal(stream.headers.accept, "text/event-stream");
  assert.equal(stream.headers.authorization, "Bearer lh_test");
  stream.say("stdout", { text: "one\n" });
  await until("it is told", () => heard.length === 1);
  stream.say("stderr", { text: "warned\n" });
  stream.say("lagged", { bytes_dropped: 3 });
  stream.say("result", REPORT);
  stream.end();
  assert.deepEqual(await done, REPORT);
  assert.deepEqual(heard, [
    ["stdout", { text: "one\n" }],
    ["stderr", { text: "warned\n" }],
    ["lagged", { bytes_dropped: 3 }],
  ]);
});

test("a job that cannot be run is an error with the words and the field of the server", async () => {
  const { done, stream } = await running();
  stream.say("problem", { status: 422, detail: "the name is none", field: "session" });
  stream.end();
  await assert.rejects(done, (error) => {
    assert.ok(error instanceof ApiError);
    assert.deepEqual([error.status, error.message, error.field], [422, "the name is none", "session"]);
    return true;
  });
});

test("a token that was removed meanwhile ends the session", async () => {
  const { done, stream } = await running();
  stream.say("stdout", { text: "one\n" });
  stream.say("problem", { status: 401, detail: "the token `all` was removed" });
  stream.end();
  await assert.rejects(done, /was removed/);
  assert.equal(session.bearer(), null);
});

test("a connection that breaks is told, and nothing is sent a second time", async () => {
  for (const broken of ["end", "fail"]) {
    sent = [];
    const { done, stream } = await running();
    stream.say("stdout", { text: "one\n" });
    stream[broken]();
    await assert.rejects(done, Interrupted, broken);
    assert.equal(sent.length, 1, broken);
  }
  refusal = () => Promise.reject(new TypeError("refused"));
  sent = [];
  await assert.rejects(runCode({}, { signal: new AbortController().signal, onEvent: () => {} }), Interrupted);
  assert.equal(sent.length, 1);
});

test("a server that says nothing for long is gone, and heartbeats are enough to be there", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { done, stream } = await running();
  const settle = async () => {
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  for (let beat = 0; beat < 3; beat += 1) {
    await settle();
    mock.timers.tick(39_000);
    stream.write(": hb\n\n");
  }
  await settle();
  mock.timers.tick(39_999);
  await settle();
  assert.equal(stream.isLeft, undefined);
  mock.timers.tick(1);
  await assert.rejects(done, Interrupted);
  assert.equal(stream.isLeft, true);
  mock.timers.reset();
});

test("code that is stopped lets go of its request", async () => {
  const { stop, done, stream } = await running();
  stop.abort();
  await assert.rejects(done, { name: "AbortError" });
  assert.equal(stream.isLeft, true);
});

// The view.

const { show } = await import(new URL("view_exec.js", folder));

/** The view, with code that was sent from it. */
async function opened() {
  const box = document.createElement("div");
  document.body.append(box);
  const stop = new AbortController();
  const own = { path: ["exec"], query: new URLSearchParams(), signal: stop.signal, box };
  await show({ ...own, title: () => {}, keep: () => {} });
  box.querySelector("form").fire("submit");
  const button = (name) => box.querySelectorAll("button").find((one) => one.textContent === name);
  return { box, button, leave: () => (stop.abort(), box.remove()) };
}

/** The text with this label, null where there is none. */
const labelled = (box, label) =>
  box.querySelectorAll("pre").find((one) => one.getAttribute("aria-label") === label) ?? null;
const live = (box, stream = "output") => labelled(box, `Standard ${stream}, as it comes`);

test("the page shows what code prints while it runs, and then its result alone", async () => {
  const page = await opened();
  await until("it is sent", () => sent[0]?.say !== undefined);
  assert.match(page.box.querySelector('.head-line[role="status"]').textContent, /running/);
  sent[0].say("stdout", { text: "<i>one</i>\u001b\n" });
  sent[0].say("stderr", { text: "warned\n" });
  await until("both are there", () => live(page.box) !== null && live(page.box, "error") !== null);
  assert.equal(live(page.box).textContent, "<i>one</i>\\u{1b}\n");
  assert.equal(page.box.querySelectorAll("i").length, 0, "it is text");
  sent[0].say("stdout", { text: "x".repeat(LIVE_CHARS_MAX) });
  await until("the rest is told", () => page.box.textContent.includes("Only the end of the output is shown."));
  assert.equal(page.button("Stop").disabled, false);
  sent[0].say("result", REPORT);
  sent[0].end();
  await until("the result is there", () => labelled(page.box, "Standard output") !== null);
  assert.equal(labelled(page.box, "Standard output").textContent, REPORT.stdout);
  assert.equal(live(page.box), null);
  assert.equal(page.button("Stop").disabled, true);
  page.leave();
});

test("what was printed stays when code is stopped, and when its connection breaks", async () => {
  for (const [how, words] of [
    [(page) => page.button("Stop").fire("click"), /stopped/],
    [() => sent[0].end(), /ended without a result/],
  ]) {
    sent = [];
    const page = await opened();
    await until("it is sent", () => sent[0]?.say !== undefined);
    sent[0].say("stdout", { text: "so far\n" });
    await until("it is there", () => live(page.box) !== null);
    how(page);
    await until("it is told", () => words.test(page.box.querySelector('.head-line[role="status"]').textContent));
    assert.equal(live(page.box).textContent, "so far\n");
    assert.equal(page.button("Stop").disabled, true);
    assert.equal(sent.length, 1, "nothing is repeated");
    page.leave();
  }
});

test("a job that is refused leaves nothing but its fault, and whoever leaves the view stops the code", async () => {
  refusal = () => new Response('{"detail":"4 jobs run"}', { status: 503 });
  const page = await opened();
  await until("it is told", () => page.box.querySelector(".form-error").textContent !== "");
  assert.match(page.box.querySelector(".form-error").textContent, /4 jobs run/);
  assert.equal(page.box.querySelector('.head-line[role="status"]'), null);
  refusal = null;
  page.box.querySelector("form").fire("submit");
  await until("it is sent", () => sent[1]?.say !== undefined);
  page.leave();
  await until("the request is given up", () => sent[1].isLeft === true);
});
