// What steps print while their graph runs: shown as it comes, once, in the cell of its step, and over breaks of the stream.

import assert from "node:assert/strict";
import test from "node:test";

import { install } from "./document.mjs";

install();
const folder = process.env.PAGE_MODULES;
const { LIVE_CHARS_MAX } = await import(new URL("live_output.js", folder));
const { LiveSteps, liveWords } = await import(new URL("live_steps.js", folder));
const { newGraphOf } = await import(new URL("graphs.js", folder));
const session = await import(new URL("session.js", folder));
session.begin("lh_test", { name: "all", scopes: ["admin"] });

let number = 100;
const event = (type, data) => {
  number += 1;
  return { type, id: String(number), data: { number, step: "a", type, ...data } };
};
const begin = (step, place = 1) => event("begin", { step, place, steps: 2 });
const print = (step, text, stream = "stdout") => event("output", { step, text, stream });
const end = (step, outcome = "done") => event("end", { step, outcome, duration_ms: 1_200 });

/** Steps that took these events. */
function after(...events) {
  const steps = new LiveSteps();
  for (const one of events) steps.take(one);
  return steps;
}

test("a step that runs has what it printed, by stream, and each event counts once", () => {
  const [first, twice] = [begin("a"), print("a", "one\n")];
  const steps = after(first, twice, twice, print("a", "<b>\n", "stderr"), print("a", "two\n"));
  const [entry] = steps.seen();
  assert.deepEqual([entry.stdout, entry.stderr, entry.isRunning], ["one\ntwo\n", "<b>\n", true]);
  assert.equal(steps.running.step, "a");
  assert.equal(steps.last, number);
  assert.equal(liveWords(entry, ""), "running, 1 of 2");
});

test("a step that ended is loaded, and kept until then if somebody saw it", () => {
  const steps = after(begin("a"));
  steps.seen();
  assert.equal(steps.take(end("a")), true, "the graph has something new");
  assert.equal(steps.running, null);
  assert.deepEqual(
    steps.seen().map((entry) => liveWords(entry, "1.2 s")),
    ["done in 1.2 s"],
  );
  const ended = steps.ended();
  steps.take(begin("a"));
  steps.forget(ended);
  assert.equal(steps.running.step, "a", "one that began again is another run");
  steps.take(end("a", "failed"));
  assert.equal(liveWords(steps.ended()[0], "1.2 s"), "failed after 1.2 s");
  steps.forget(steps.ended());
  assert.deepEqual(steps.seen(), []);
});

test("what ended before anybody looked is not shown, since the graph has it", () => {
  const steps = after(begin("a"), print("a", "x"), end("a"), begin("b", 2), print("b", "y"));
  assert.deepEqual(
    steps.seen().map(({ step }) => step),
    ["b"],
  );
});

test("a step that runs again with further variables shows its last run alone", () => {
  const steps = after(begin("a"), print("a", "first\n"));
  steps.seen();
  assert.equal(steps.take(end("a", "again")), false, "there is nothing to load yet");
  steps.take(begin("a"));
  steps.take(print("a", "second\n"));
  assert.equal(steps.seen()[0].stdout, "second\n");
});

test("a step whose end never came is over once nothing runs, or the next one begins", () => {
  const cutOff = after(begin("a"));
  cutOff.seen();
  assert.equal(cutOff.take({ type: "idle", id: null, data: { after: number } }), true);
  assert.equal(cutOff.running, null);
  const next = after(begin("a"), begin("b", 2));
  assert.equal(next.running.step, "b");
  assert.equal(new LiveSteps().take({ type: "idle", id: null, data: { after: 0 } }), false);
});

test("output of any length is held to its end, and what is missing is said", () => {
  const steps = after(begin("a"), print("a", "x".repeat(LIVE_CHARS_MAX)));
  assert.equal(steps.seen()[0].isCut, false);
  steps.take(print("a", "end"));
  const [entry] = steps.seen();
  assert.deepEqual([entry.stdout.length, entry.stdout.endsWith("end"), entry.isCut], [LIVE_CHARS_MAX, true, true]);
  const late = after(print("a", "the rest\n"));
  assert.deepEqual([late.seen()[0].isCut, liveWords(late.seen()[0], "")], [true, "running"]);
  const slow = after(begin("a"));
  assert.equal(slow.take({ type: "lagged", id: null, data: { dropped: 3 } }), true);
  assert.equal(slow.seen()[0].isCut, true);
});

test("events that are not as they should be break nothing", () => {
  const steps = after(
    { type: "output", id: null, data: {} },
    { type: "begin", id: "1", data: { number: 1 } },
    { type: "surprise", id: "2", data: { number: 2, step: "a" } },
    { type: "end", id: "3", data: { number: 3, step: "b" } },
  );
  assert.equal(steps.running, null);
});

test("a new graph has its first step where that has a source", () => {
  const typed = { name: " sums ", language: "python", step: " first ", source: "" };
  assert.deepEqual(newGraphOf(typed), { name: "sums", language: "python" });
  assert.deepEqual(newGraphOf({ ...typed, source: " \n" }).steps, undefined);
  assert.deepEqual(newGraphOf({ ...typed, source: "x = 1\n" }).steps, [{ step: "first", source: "x = 1\n" }]);
});

// The view, with a stream that the test writes.

const { show } = await import(new URL("view_graphs.js", folder));

const step = (id, more) => ({
  ...{ id, source: "x = 1", state: "stale", reads: [], writes: [], needs: [], unstorable: [], files: [] },
  ...{ stdout: "", stderr: "", value: null, failure: null, duration_ms: 0, fuel_used: 0, memory_bytes_peak: 0 },
  ...more,
});

const GRAPH = {
  ...{ name: "g", language: "python", version: 1, steps: 2, stale: 2, created_ms: 1, changed_ms: 1 },
  ...{ of_agent: false, directories: [], hosts: [] },
};

const until = async (what, is) => {
  const since = Date.now();
  while (!is()) {
    assert.ok(Date.now() - since < 5_000, what);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

/** A page with the graph. `answer(path, options)` may answer in the place of the server. */
async function opened(answer = () => null) {
  const page = { steps: [step("a"), step("b")], asked: [], streams: [], sent: [] };
  globalThis.fetch = async (path, options) => {
    const given = answer(path, options);
    if (given) return given;
    if (options.method && options.method !== "GET") page.sent.push([options.method, path]);
    if (!path.endsWith("/output")) {
      const body = { graph: GRAPH, steps: page.steps, total: page.steps.length, offset: 0 };
      return { ok: true, status: 200, json: async () => body };
    }
    page.asked.push(options.headers["last-event-id"] ?? null);
    const stream = {};
    const body = new ReadableStream({
      start(controller) {
        stream.say = ({ type, id, data }) => {
          const named = id === null ? "" : `id: ${id}\n`;
          controller.enqueue(new TextEncoder().encode(`${named}event: ${type}\ndata: ${JSON.stringify(data)}\n\n`));
        };
        stream.end = () => controller.close();
        options.signal.addEventListener(
          "abort",
          () => (stream.isLeft = true) && controller.error(options.signal.reason),
        );
      },
    });
    page.streams.push(stream);
    return new Response(body);
  };
  page.stop = new AbortController();
  page.box = document.createElement("div");
  document.body.append(page.box);
  const own = { path: ["graphs", "g"], query: new URLSearchParams(), signal: page.stop.signal, box: page.box };
  await show({ ...own, title: () => {}, go: (to) => (page.gone = to) });
  page.cell = (name) => page.box.querySelector(`.cell[data-key="${name}"]`);
  page.leave = () => (page.stop.abort(), page.box.remove());
  return page;
}

test("the page shows what a step prints while it runs, and what the graph has of it then", async () => {
  const page = await opened();
  await until("it follows", () => page.streams.length === 1);
  const [stream] = page.streams;
  stream.say({ type: "idle", id: null, data: { after: 0 } });
  stream.say(begin("a"));
  stream.say(print("a", "<i>so far</i>\u001b\n"));
  stream.say(print("a", "warned\n", "stderr"));
  await until("the output is there", () => page.cell("a").textContent.includes("warned"));
  const cell = page.cell("a");
  assert.ok(cell.classes.includes("is-live") && !page.cell("b").classes.includes("is-live"));
  assert.match(cell.querySelector(".cell-live").textContent, /running, 1 of 2.*<i>so far<\/i>\\u\{1b\}/s);
  assert.equal(cell.querySelectorAll("i").length, 0, "it is text");
  assert.match(page.box.querySelector(".head-line").textContent, /^a running, 1 of 2/);

  page.steps = [step("a", { state: "fresh", stdout: "all of it\n" }), step("b")];
  stream.say(end("a"));
  await until("the graph is loaded", () => page.cell("a").textContent.includes("all of it"));
  assert.ok(!page.cell("a").classes.includes("is-live"));
  assert.equal(page.cell("a").querySelector(".cell-live").textContent, "", "and nothing stands there twice");
  assert.doesNotMatch(page.box.querySelector(".head-line").textContent, /running/);
  page.leave();
  await until("the stream is let go", () => stream.isLeft);
});

test("a cell that is edited shows the output, and keeps what was typed", async () => {
  const page = await opened();
  await until("it follows", () => page.streams.length === 1);
  const edit = page
    .cell("a")
    .querySelectorAll("button")
    .find((one) => one.textContent === "Edit");
  edit.fire("click");
  const typed = page.cell("a").querySelector("textarea");
  typed.value = "x = 2";
  page.streams[0].say(begin("a"));
  page.streams[0].say(print("a", "one\n"));
  await until("the output is there", () => page.cell("a").textContent.includes("one\n"));
  page.streams[0].say(print("a", "two\n"));
  await until("more is there", () => page.cell("a").textContent.includes("one\ntwo\n"));
  assert.equal(page.cell("a").querySelector("textarea"), typed);
  assert.equal(typed.value, "x = 2");
  page.leave();
});

test("a stream that breaks goes on from its last number, and shows nothing twice", async () => {
  const page = await opened();
  await until("it follows", () => page.streams.length === 1);
  const first = [begin("a"), print("a", "one\n")];
  for (const one of first) page.streams[0].say(one);
  await until("the output is there", () => page.cell("a").textContent.includes("one\n"));
  page.streams[0].end();
  await until("it comes again", () => page.streams.length === 2);
  assert.deepEqual(page.asked, [null, first[1].id]);
  page.streams[1].say(first[1]);
  page.streams[1].say(print("a", "two\n"));
  await until("more is there", () => page.cell("a").textContent.includes("two\n"));
  assert.equal(page.cell("a").querySelector(".cell-live pre").textContent, "one\ntwo\n");
  page.leave();
});

test("a stream that is refused is told, with a way to try again", async () => {
  let isRefused = true;
  const refused = () => new Response('{"detail":"there is no such graph"}', { status: 404 });
  const page = await opened((path) => (isRefused && path.endsWith("/output") ? refused() : null));
  await until("it is told", () => page.box.querySelector(".failed") !== null);
  assert.match(page.box.querySelector(".failed").textContent, /there is no such graph/);
  assert.ok(page.cell("a"), "the graph stays");
  isRefused = false;
  page.box.querySelector(".failed button").fire("click");
  await until("it follows", () => page.streams.length === 1);
  assert.equal(page.box.querySelector(".failed"), null);
  page.leave();
});

test("a name that the server refuses is told at its field, and a graph that is made is shown", async () => {
  let problem = { detail: "there is a graph `g` already; choose another name", field: "name" };
  const sent = [];
  const page = await opened((path, { method, body }) => {
    if (method !== "POST") return null;
    sent.push([path, JSON.parse(body)]);
    if (problem) return new Response(JSON.stringify(problem), { status: 409 });
    return { ok: true, status: 201, json: async () => ({ ...GRAPH, name: "new one" }) };
  });
  page.leave();
  const box = document.createElement("div");
  const stop = new AbortController();
  let gone = null;
  const ctx = { path: ["graphs"], query: new URLSearchParams(), signal: stop.signal, box, title: () => {} };
  await show({ ...ctx, go: (to) => (gone = to) });
  box
    .querySelectorAll("button")
    .find((one) => one.textContent === "New graph")
    .fire("click");
  const dialog = document.querySelector("dialog");
  const fill = (name, value) => (dialog.querySelector(`[name="${name}"]`).value = value);
  const said = (name) => dialog.querySelector(`.field-error[data-field="${name}"]`).textContent;
  const send = () => dialog.querySelector("form").fire("submit");
  fill("name", "g");
  fill("source", "x = 1");
  send();
  await until("it is told", () => said("name") !== "");
  assert.match(said("name"), /there is a graph `g` already/);
  problem = { detail: "the name of a step is empty", field: "steps[0].step" };
  send();
  await until("it is told at the step", () => said("step") !== "");
  assert.equal(said("name"), "");
  problem = null;
  fill("name", "new one");
  send();
  await until("it is shown", () => gone !== null);
  assert.equal(gone, "#/graphs/new%20one");
  const steps = [{ step: "first", source: "x = 1" }];
  assert.deepEqual(sent.at(-1), ["/api/v1/graphs", { name: "new one", language: "python", steps }]);
  stop.abort();
});
