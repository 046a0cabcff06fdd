// A run at a point of its past: a slider over its events, and below it the run as it was there, alone or beside the
// present, with what can be done from there.
//
// The server answers with the state after the step that the point is in, which may have stored later events, too; that
// is said. While the slider moves only its words change, and the run is asked for when it rests.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { cost, count, exact, instant, plural, reason, short } from "./format.js";
import { icon } from "./icons.js";
import { openFork } from "./part_fork.js";
import { forkTree } from "./part_forks.js";
import { eventHref, shortName } from "./part_timeline.js";
import { entryPoint, eventOf, eventPoint, pastHref } from "./points.js";
import { may } from "./session.js";
import { itemOf } from "./timeline.js";
import {
  button,
  empty,
  failed,
  facts,
  link,
  loading,
  mono,
  muted,
  plain,
  progress,
  redraw,
  section,
  select,
  status,
  table,
} from "./ui.js";

/** Pause after the slider moved, in which it may move on. */
const RESTS_MS = 180;

/** Events whose words are read at once. */
const PAGE = 100;

/** Features and pieces of work that are listed. */
const SHOWN = 200;

/** Draws the part; gives what takes the run's news. */
export function past(ctx, place, run) {
  const view = new View(ctx, run);
  const tree = h("div");
  fill(place, h("h2", { class: "unseen" }, "Past"), view.controls, view.body, tree);
  forkTree(ctx, tree, run);
  view.begin();
  return (next) => view.take(next);
}

class View {
  #lines = new Map();
  #last = 0;
  #number = 0;
  #point = null;
  #shown = null;
  #asked = null;
  #timer = null;

  constructor(ctx, run) {
    this.ctx = ctx;
    this.run = run;
    this.beside = ctx.query.get("now") === "true";
    this.slider = h("input", {
      type: "range",
      class: "slider",
      min: "1",
      max: "1",
      step: "1",
      "aria-label": "Event",
      prop: { value: "1" },
    });
    this.slider.addEventListener("input", () => this.#move(Number(this.slider.value)));
    this.words = h("p", { class: "past-words" });
    this.links = h("div", { class: "actions" });
    this.controls = h(
      "div",
      { class: "card past-controls" },
      this.words,
      h(
        "div",
        { class: "past-line" },
        button("Previous", { small: true, run: () => this.#move(this.#number - 1) }),
        this.slider,
        button("Next", { small: true, run: () => this.#move(this.#number + 1) }),
      ),
      this.links,
    );
    this.body = h("div", { class: "past-body" }, loading());
    ctx.signal.addEventListener("abort", () => clearTimeout(this.#timer), { once: true });
  }

  begin() {
    this.#look(this.ctx.query.get("at"));
  }

  /** The present goes on: the slider has more room, and what is beside the past changes. */
  take(next) {
    const isNews = next.last_ms !== this.run.last_ms;
    this.run = next;
    if (this.beside && this.#shown) this.#draw();
    if (isNews) this.#grow();
  }

  async #grow() {
    try {
      const { last } = await api.events(this.run.run, this.#last, 1, this.ctx.signal);
      this.#last = Math.max(this.#last, last);
      if (this.#number > 0) this.#tell();
    } catch {
      // The slider grows with the next news.
    }
  }

  #move(number) {
    this.#number = Math.min(Math.max(1, number), this.#last);
    this.#point = eventPoint(this.#number);
    this.#tell();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(this.#point), RESTS_MS);
  }

  /** Shows the run at a point; null: at its newest event. */
  async #look(point) {
    this.#asked?.abort();
    const asked = new AbortController();
    this.#asked = asked;
    const signal = AbortSignal.any([this.ctx.signal, asked.signal]);
    this.body.setAttribute("aria-busy", "true");
    try {
      if (point === null) point = await this.#newest(signal);
      if (point === null) return void fill(this.body, empty("Nothing happened yet."));
      this.#point = point;
      const at = await api.at(this.run.run, point, signal);
      this.#shown = at;
      this.#number = eventOf(point) ?? at.event;
      await this.#read(this.#number, signal);
      if (signal.aborted) return;
      this.#tell();
      this.#draw();
      this.ctx.keep(pastHref(this.run.run, point, this.beside));
    } catch (error) {
      if (signal.aborted) return;
      this.#shown = null;
      await this.#read(this.#number || 1, signal).catch(() => {});
      if (signal.aborted) return;
      this.#tell();
      fill(
        this.body,
        failed(error, () => this.#look(point)),
      );
    } finally {
      if (this.#asked === asked) this.body.removeAttribute("aria-busy");
    }
  }

  async #newest(signal) {
    const { last } = await api.events(this.run.run, 0, 1, signal);
    return last > 0 ? eventPoint(last) : null;
  }

  /** Reads the words of the events around a number, and how many events there are. */
  async #read(number, signal) {
    if (this.#lines.has(number) && number < this.#last) return;
    const page = await api.events(this.run.run, Math.max(0, number - PAGE / 2), PAGE, signal);
    for (const line of page.items) this.#lines.set(line.number, line);
    this.#last = Math.max(this.#last, page.last, number);
  }

  #tell() {
    const line = this.#lines.get(this.#number);
    const item = line && itemOf(line);
    this.slider.max = String(Math.max(1, this.#last));
    this.slider.value = String(this.#number);
    const place = `Event ${this.#number} of ${this.#last}`;
    const time = item ? instant(item.atMs) : "";
    this.slider.setAttribute("aria-valuetext", item ? `${place}: ${item.title}, ${time}` : place);
    fill(
      this.words,
      h("span", { class: "muted" }, place),
      item && [
        icon(item.sign, `tone-${item.tone}`),
        h("b", null, item.title),
        item.who && muted(item.who),
        h("time", { class: "muted", datetime: exact(item.atMs) }, time),
      ],
    );
    redraw(this.links, this.#linksOf());
  }

  #linksOf() {
    const { run } = this.run;
    return [
      may("run") &&
        this.#shown !== null &&
        button("Fork here", {
          kind: "main",
          small: true,
          sign: "plan",
          focus: "fork-here",
          run: () => openFork(this.ctx, this.run, this.#point),
        }),
      h(
        "button",
        {
          type: "button",
          class: "button button-small",
          "aria-pressed": String(this.beside),
          data: { focus: "beside" },
          on: { click: () => this.#turn() },
        },
        "Compare with the present",
      ),
      link(eventHref(run, this.#number), "In the timeline"),
      this.#places(),
    ];
  }

  /** Compared with the present, or alone. */
  #turn() {
    this.beside = !this.beside;
    this.#tell();
    if (!this.#shown) return;
    this.#draw();
    this.ctx.keep(pastHref(this.run.run, this.#point, this.beside));
  }

  /** Points with a name: where features began, and commits. */
  #places() {
    const places = this.run.features.flatMap((one) => [
      ...(one.sessions > 0 ? [[`feature:${one.id}`, `Work on ${one.id} begins`]] : []),
      ...(one.commit ? [[`commit:${one.commit}`, `Commit of ${one.id}`]] : []),
    ]);
    if (places.length === 0) return null;
    const box = select([["", "Go to…"], ...places.slice(0, SHOWN)], "", {
      "aria-label": "Go to a point",
      data: { focus: "points" },
    });
    box.addEventListener("change", () => box.value && this.#look(box.value));
    return box;
  }

  #draw() {
    const at = this.#shown;
    const now = this.beside ? this.run : null;
    redraw(
      this.body,
      at.event !== this.#number &&
        h(
          "p",
          { class: "hint" },
          `Event ${this.#number} is part of a step that ended with `,
          link(pastHref(this.run.run, eventPoint(at.event)), `event ${at.event}`),
          "; the run is shown as it was after that step.",
        ),
      stateOf(at, now),
      this.#work(at),
      at.questions.length > 0 &&
        section(
          "Open questions",
          { id: "s-past-questions" },
          at.questions.map((text, index) => plain(text, { label: `Question ${index + 1}` })),
        ),
      featuresOf(at, now),
    );
  }

  #work(at) {
    return section(
      "Work in flight",
      { id: "s-past-work", count: at.lanes.length },
      at.lanes.length === 0 && empty("Nobody was at work."),
      at.lanes.slice(0, SHOWN).map((lane) => this.#lane(lane)),
      at.lanes.length > SHOWN && h("p", { class: "hint" }, `${at.lanes.length - SHOWN} more; the list ends here.`),
    );
  }

  #lane(lane) {
    const { run } = this.run;
    const entry = entryPoint(lane.invocation, lane.entries);
    return h(
      "article",
      { class: "card" },
      h(
        "p",
        { class: "card-head" },
        link(`#/runs/${run}/journal?i=${encodeURIComponent(lane.invocation)}`, shortName(lane.invocation)),
        h(
          "span",
          { class: "muted" },
          lane.feature && `${lane.feature} · `,
          plural(lane.entries, "answered entry", "answered entries"),
        ),
      ),
      lane.waiting_for && h("p", { class: "why" }, lane.waiting_for),
      lane.entries > 0 &&
        h(
          "div",
          { class: "actions" },
          link(pastHref(run, entry), `At its entry ${lane.entries}`),
          may("run") &&
            button("Fork at this entry", {
              small: true,
              title: `Entry ${lane.entries} of ${shortName(lane.invocation)}`,
              focus: `edit-${lane.invocation}`,
              run: () => openFork(this.ctx, this.run, entry),
            }),
        ),
    );
  }
}

const tokensOf = (usage) => (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);

const passingOf = (features) => [
  features.filter((one) => one.status === "passing").length,
  features.filter((one) => one.status !== "dropped").length,
];

function stateOf(at, now) {
  const time = h("time", { datetime: exact(at.at_ms) }, instant(at.at_ms));
  const [done, of] = passingOf(at.features);
  const features = progress(done, of, "Features that passed");
  const commit = at.commit && mono(String(at.commit).slice(0, 10));
  if (now === null)
    return section(
      "The run then",
      { id: "s-past" },
      facts([
        ["Status", status(at.status)],
        ["Features", features],
        ["Time", time],
        ["Tokens", short(tokensOf(at.usage))],
        ["Cost", cost(at.usage)],
        ["Commit", commit],
      ]),
    );
  const rows = [
    ["Status", status(at.status), status(now.status)],
    ["Features", features, progress(now.passing.done, now.passing.of, "Features that pass now")],
    ["Time", time, h("time", { datetime: exact(now.last_ms) }, instant(now.last_ms))],
    ["Tokens", count(tokensOf(at.usage)), count(tokensOf(now.usage))],
    ["Cost", cost(at.usage), cost(now.usage)],
    ["Commit", commit ?? "–", lastCommit(now)],
  ];
  const columns = [
    { name: "What", cell: ([name]) => name },
    { name: "Then", cell: ([, then]) => then },
    { name: "Now", cell: ([, , present]) => present },
  ];
  return section("The run then and now", { id: "s-past" }, table("The run then and now", columns, rows));
}

/** Of the present, the API has the commits of features. */
function lastCommit(run) {
  const all = run.features.filter((one) => one.commit);
  return all.length === 0
    ? "–"
    : link(`#/runs/${run.run}/result`, plural(new Set(all.map((one) => one.commit)).size, "commit"));
}

function featuresOf(at, now) {
  const present = new Map((now?.features ?? []).map((one) => [one.id, one]));
  const ids = new Map([...present.values(), ...at.features].map((one) => [one.id, one]));
  const then = new Map(at.features.map((one) => [one.id, one]));
  const rows = [...ids.values()].map((one) => ({ one, then: then.get(one.id), now: present.get(one.id) }));
  const side = (feature) =>
    feature
      ? [status(feature.status), feature.reason && h("span", { class: "sub" }, reason(feature.reason))]
      : muted("not there");
  const columns = [
    {
      name: "Feature",
      wide: true,
      cell: ({ one }) => [h("b", null, one.title || one.id), h("span", { class: "sub" }, mono(one.id))],
    },
    { name: now ? "Then" : "Status", cell: (row) => side(row.then) },
    ...(now ? [{ name: "Now", cell: (row) => side(row.now) }] : []),
    { name: "Sessions", numeric: true, cell: (row) => count((row.then ?? row.now).sessions) },
  ];
  const isOther = (row) => now && row.then?.status !== row.now?.status;
  return section(
    "Features then",
    { id: "s-past-features", count: at.features.length },
    rows.length === 0
      ? empty("There was no plan yet.")
      : table("Features then", columns, rows.slice(0, SHOWN), {
          rowKey: ({ one }) => one.id,
          rowClass: (row) => isOther(row) && "is-other",
        }),
    rows.length > SHOWN && h("p", { class: "hint" }, `${rows.length - SHOWN} more; the list ends here.`),
  );
}
