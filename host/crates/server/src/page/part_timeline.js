// Events of a run, the newest first: live ones with the words of models as they come, and earlier ones on request.
//
// It reads the last events, then follows the stream from there and closes any gap before it shows what comes after. At
// most a few hundred rows are in the document. What agents and models wrote is text, never HTML.

import * as api from "./api.js";
import { add, fill, h, keyed } from "./dom.js";
import { clock, cut, duration, exact, lastLine, moment, oneLine } from "./format.js";
import { icon } from "./icons.js";
import { errorBlock } from "./part_error.js";
import { eventPoint, pastHref } from "./points.js";
import { follow } from "./stream.js";
import { Timeline, itemOf, spoken } from "./timeline.js";
import { announce, button, chip, complain, failed, fold, link, loading, mono, plain, redraw, select } from "./ui.js";

/** Events that are read first, and with each press of "Show earlier". */
const PAGE = 200;

/** Rows that are in the document at first, and how many more a press adds. */
const ROWS = 150;

/** Characters of a text that are shown before it is folded. */
const TEXT_CHARS = 420;

/** Draws it and follows until `ctx.signal` aborts. `onLine(line)` hears each durable event. */
export function timeline(ctx, place, run, onLine) {
  const state = { list: new Timeline(), rows: ROWS, level: "step", task: "", planned: false, isOver: false };
  const saying = h("div", { class: "saying", "aria-live": "off" });
  const rows = h("ol", { class: "events" });
  const log = h("div", { role: "log", "aria-live": "off", "aria-label": "Events, the newest first" }, rows);
  const foot = h("div", { class: "events-foot" });
  const level = select(
    [
      ["milestone", "Milestones"],
      ["step", "Steps of agents"],
      ["machinery", "Everything"],
    ],
    state.level,
    { "aria-label": "How much is shown" },
  );
  const task = select([["", "All features"], ...run.features.map((one) => [one.id, one.id])], "", {
    "aria-label": "Of which feature",
  });
  fill(
    place,
    h(
      "div",
      { class: "section-head" },
      h("h2", { id: "s-timeline" }, "Timeline"),
      h("div", { class: "toolbar" }, level, task),
    ),
    saying,
    log,
    foot,
  );
  add(rows, h("li", null, loading()));

  const draw = () => {
    state.planned = false;
    if (ctx.signal.aborted) return;
    drawSaying(saying, state.list.live);
    const shown = state.list.items
      .filter((item) => isShown(item, state))
      .slice(-state.rows)
      .reverse();
    keyed(rows, shown, { key: (item) => item.number, mark: (item) => item.version, make: eventRow });
    drawFoot();
  };
  const plan = () => {
    if (state.planned) return;
    state.planned = true;
    if (document.hidden) setTimeout(draw, 500);
    else requestAnimationFrame(draw);
  };
  const drawFoot = () => {
    const hidden = state.list.items.filter((item) => isShown(item, state)).length > state.rows;
    const more = hidden || state.list.first > 1;
    redraw(
      foot,
      more && button("Show earlier", { focus: "earlier", run: earlier }),
      !more && state.list.items.length > 0 && h("p", { class: "muted" }, "The beginning of the run."),
      state.list.last === 0 && h("p", { class: "muted" }, "Nothing happened yet."),
    );
  };
  const earlier = async () => {
    state.rows += ROWS;
    const first = state.list.first;
    if (first > 1 && state.list.items.filter((item) => isShown(item, state)).length < state.rows) {
      const after = Math.max(0, first - 1 - PAGE);
      state.list.prepend((await api.events(run.run, after, first - 1 - after, ctx.signal)).items);
    }
    draw();
  };
  level.addEventListener("change", () => {
    state.level = level.value;
    draw();
  });
  task.addEventListener("change", () => {
    state.task = task.value;
    draw();
  });
  ctx.earlier = () => earlier().catch(complain);
  start(ctx, run.run, state, { plan, onLine, rows }).catch(
    (error) =>
      !ctx.signal.aborted &&
      fill(
        rows,
        h(
          "li",
          null,
          failed(error, () => timeline(ctx, place, run, onLine)),
        ),
      ),
  );
  return { features: (list) => offerTasks(task, list) };
}

const LEVELS = { milestone: 0, step: 1, machinery: 2 };
const isShown = (item, state) =>
  LEVELS[item.level] <= LEVELS[state.level] && (state.task === "" || item.task === state.task);

/** Features that came with a plan can be chosen, too. */
function offerTasks(element, list) {
  const there = new Set([...element.options].map((one) => one.value));
  for (const { id } of list) if (!there.has(id)) add(element, h("option", { value: id }, id));
}

async function start(ctx, run, state, { plan, onLine, rows }) {
  const { last } = await api.events(run, 0, 1, ctx.signal);
  let from = Math.max(0, last - PAGE);
  while (from < last) {
    const page = await api.events(run, from, PAGE, ctx.signal);
    if (page.items.length === 0) break;
    for (const line of page.items) state.list.push(line);
    from = page.next_after;
  }
  if (state.list.items.length === 0) fill(rows);
  plan();
  let turn = Promise.resolve();
  await follow(api.runStream(run), {
    signal: ctx.signal,
    lastId: state.list.last,
    onOpen: (again) => {
      if (again) state.list.forgetLive();
      plan();
    },
    onEvent: (event) => {
      turn = turn
        .then(() => take(ctx, run, state, event, onLine))
        .catch((error) => ctx.signal.aborted || complain(error))
        .then(plan);
    },
  });
}

async function take(ctx, run, state, { type, data }, onLine) {
  if (type === "token") return void state.list.token(data);
  if (type === "gone") {
    state.list.forgetLive();
    return void onLine?.({ type: "end", payload: {} });
  }
  if (type !== "event") return;
  // A gap cannot come from a stream that keeps its word; it is closed all the same.
  while (data.number > state.list.last + 1) {
    const missing = await api.events(run, state.list.last, 1000, ctx.signal);
    const own = missing.items.filter((line) => line.number < data.number);
    if (own.length === 0) break;
    for (const line of own) say(state, line, onLine);
  }
  say(state, data, onLine);
}

function say(state, line, onLine) {
  if (!state.list.push(line)) return;
  const words = spoken(line);
  if (words) announce(words);
  onLine?.(line);
}

/** What models are saying right now. */
function drawSaying(place, live) {
  keyed(place, [...live.entries()], {
    key: ([invocation]) => invocation,
    mark: () => "",
    make: ([invocation, reply]) =>
      h(
        "div",
        { class: "reply" },
        h(
          "p",
          { class: "reply-head" },
          icon("thought", "tone-busy"),
          h("b", null, shortName(invocation)),
          h("span", { class: "muted" }, " is saying"),
        ),
        h(
          "pre",
          { class: "plain reply-text", tabindex: "0", "aria-label": `What ${shortName(invocation)} is saying` },
          reply.text,
        ),
      ),
  });
  for (const [invocation, reply] of live) {
    const card = [...place.children].find((one) => one.dataset.key === invocation);
    const text = card?.querySelector(".reply-text");
    const words = (reply.cut ? "…" : "") + reply.text;
    if (!text || text.textContent === words) continue;
    const atEnd = text.scrollHeight - text.scrollTop - text.clientHeight < 40;
    fill(text, words);
    if (atEnd) text.scrollTop = text.scrollHeight;
  }
}

/** An invocation without its run. */
export const shortName = (invocation) => String(invocation).split("/").slice(1).join(" / ") || String(invocation);

/** The address of one event. */
export const eventHref = (run, number) => `#/runs/${run}?e=${number}`;

/** One event by its number, above the timeline, however long ago it was. */
export async function oneEvent(ctx, place, run) {
  const number = Number.parseInt(ctx.query.get("e") ?? "", 10);
  if (!(number > 0)) return;
  fill(place, loading());
  const { items, last } = await api.events(run, number - 1, 1, ctx.signal);
  const found = items.find((line) => line.number === number);
  const go = (to, text) => to > 0 && to <= last && link(eventHref(run, to), text);
  fill(
    place,
    h(
      "section",
      { class: "section one-event", "aria-labelledby": "s-event" },
      h(
        "div",
        { class: "section-head" },
        h("h2", { id: "s-event", tabindex: "-1" }, `Event ${number}`),
        h(
          "div",
          { class: "actions" },
          go(number - 1, "Previous"),
          go(number + 1, "Next"),
          number <= last && link(pastHref(run, eventPoint(number)), "The run then"),
          link(`#/runs/${run}`, "Close"),
        ),
      ),
      found
        ? h("ol", { class: "events" }, eventRow(itemOf(found)))
        : h("p", { class: "muted" }, `There is no event ${number}; the newest of this run is ${last}.`),
    ),
  );
  // It may be below what the run asks: the focus brings it into view.
  place.querySelector("h2").focus();
}

function eventRow(item) {
  return h(
    "li",
    { class: ["event", `level-${item.level}`, `kind-${item.kind}`], tabindex: "-1" },
    h(
      "a",
      {
        class: "event-time",
        href: eventHref(item.run, item.number),
        title: `Event ${item.number}, ${moment(item.atMs)}`,
      },
      h("time", { datetime: exact(item.atMs) }, clock(item.atMs)),
    ),
    h("span", { class: ["event-sign", `tone-${toneFor(item)}`] }, icon(item.sign)),
    h(
      "div",
      { class: "event-body" },
      h(
        "p",
        { class: "event-head" },
        h("span", { class: "event-title" }, item.title),
        item.who && h("span", { class: "event-who" }, item.who),
        item.task && item.level !== "milestone" && chip(item.task),
        item.notes.map((note) => h("span", { class: "event-note" }, note)),
        item.result &&
          h("span", { class: ["event-note", item.result.ok ? "" : "tone-bad"] }, [
            item.result.ok ? "done" : "failed",
            item.result.tookMs !== null && ` in ${duration(item.result.tookMs)}`,
          ]),
        item.run &&
          h(
            "a",
            { class: "event-past", href: pastHref(item.run, eventPoint(item.number)), title: "The run at this event" },
            icon("schedule"),
            h("span", { class: "unseen" }, `The run at event ${item.number}`),
          ),
      ),
      ...eventMore(item),
    ),
  );
}

const toneFor = (item) => (item.result && !item.result.ok ? "bad" : item.tone);

function eventMore(item) {
  const parts = [];
  if (item.text && item.isError) parts.push(errorBlock(item.text, { name: item.number }));
  else if (item.text) parts.push(textOf(item.text, item.number));
  if (item.code && item.kind === "action") parts.push(h("p", { class: "event-code" }, mono(oneLine(item.code, 160))));
  else if (item.code) parts.push(plain(item.code, { code: true }));
  if (item.marks)
    parts.push(
      h(
        "ul",
        { class: "marks" },
        item.marks.map((mark) =>
          h(
            "li",
            null,
            icon(mark.mark === "pass" ? "done" : "bad", mark.mark === "pass" ? "tone-good" : "tone-bad"),
            h("span", null, h("b", null, mark.criterion), ` ${mark.mark}: ${mark.why}`),
          ),
        ),
      ),
    );
  if (item.list.length > 0)
    parts.push(
      fold(
        `${item.list.length} ${item.kind === "commit" ? "files" : "entries"}`,
        () =>
          h(
            "ul",
            { class: "dots" },
            item.list.slice(0, 200).map((line) => h("li", null, line)),
          ),
        { name: `list-${item.number}`, open: item.list.length <= 6 && item.kind !== "commit" },
      ),
    );
  if (item.kind === "action" || item.kind === "observation") parts.push(callMore(item));
  return parts.filter(Boolean);
}

function callMore(item) {
  const shown = [
    item.code && item.kind === "action" && h("div", null, h("h3", null, "Arguments"), plain(item.code, { code: true })),
    item.result && h("div", null, h("h3", null, item.result.ok ? "Answer" : "Error"), outputOf(item)),
  ];
  const line = item.result ? oneLine(headOf(item.result), 90) || "answered" : "waits for its answer";
  const journal =
    item.invocation &&
    link(`#/runs/${item.invocation.split("/")[0]}/journal?i=${encodeURIComponent(item.invocation)}`, "In the journal");
  return fold(line, () => h("div", { class: "call" }, shown, journal), { name: `call-${item.number}` });
}

/** Of an error the last line says most, of an answer the first. */
const headOf = ({ ok, output }) => (ok ? output : lastLine(output));

const outputOf = ({ number, result }) =>
  result.ok ? plain(result.output, { code: true }) : errorBlock(result.output, { name: number });

function textOf(text, number) {
  if (text.length <= TEXT_CHARS) return plain(text);
  return fold(cut(oneLine(text, TEXT_CHARS), TEXT_CHARS), () => plain(text), {
    name: `text-${number}`,
    className: "fold-text",
  });
}
