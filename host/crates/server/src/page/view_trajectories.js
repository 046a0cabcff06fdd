// Trajectories: what agents were told, said and did, one for each invocation; found, read, rated, corrected and exported.
//
// The list has no messages, since those are heard by a replay. The API asks by run: without one the newest run of the project
// stands for all of its runs.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { costNote, count, duration, oneLine, plural, short } from "./format.js";
import { live } from "./live.js";
import { calls, transcript } from "./part_transcript.js";
import { may } from "./session.js";
import {
  ENDING_OPTIONS,
  JUDGED_OPTIONS,
  addressOf,
  agentName,
  annotationOf,
  endingWords,
  isFiltered,
  lookOfEnding,
  paramsOf,
  shortId,
  trajectoryHref,
  wanted,
} from "./trajectories.js";
import {
  area,
  button,
  chip,
  empty,
  facts,
  field,
  form,
  input,
  link,
  mono,
  muted,
  pager,
  plain,
  redraw,
  section,
  select,
  status,
  table,
  toast,
  when,
} from "./ui.js";
import { missing } from "./view_missing.js";

const PAGE = 50;

/** Lines that one request of an export has; their messages are heard by as many replays. */
const EXPORT_LINES = 50;

/** Most bytes of an export that the page puts together. */
const EXPORT_CHARS_MAX = 256 << 20;

const FORMATS = [
  ["full", "Whole trajectories"],
  ["preference", "Corrected ones, as preferences"],
  ["unpaired", "Rated ones, as good or bad"],
];

export async function show(ctx) {
  const [, run, invocation, ...rest] = ctx.path;
  if (!run) return all(ctx);
  if (!invocation || rest.length > 0) return missing(ctx, "A trajectory is named by its run and its invocation.");
  return one(ctx, run, invocation);
}

async function all(ctx) {
  ctx.title("Trajectories");
  const now = wanted(ctx.query);
  const [list, bar] = [h("div", { class: "section" }), h("div")];
  let refresh = async () => {};
  const change = (next) => {
    Object.assign(now, next);
    ctx.keep(addressOf(now));
    return refresh();
  };
  fill(
    ctx.box,
    h(
      "div",
      { class: "view-head" },
      h("h1", null, "Trajectories"),
      exporter(() => now),
    ),
    bar,
    list,
  );
  const projects = await projectNames(ctx.signal);
  if (ctx.signal.aborted) return;
  fill(
    bar,
    filters(now, projects, (next) => change({ ...next, offset: 0 })),
  );
  ({ refresh } = await live(ctx, {
    place: list,
    everyMs: 60_000,
    wants: (line) => ["task_done", "done"].includes(line.type),
    load: (signal) => load(now, signal),
    draw: (page) =>
      redraw(
        list,
        page === null || page.total === 0
          ? none(now)
          : table("Trajectories", COLUMNS, page.items, { rowKey: (found) => found.id }),
        page && pager(page, (offset) => change({ offset })),
      ),
  }));
}

/** The newest project first; without the list, that of the address alone. */
async function projectNames(signal) {
  try {
    const { items } = await api.projects({ limit: 500 }, signal);
    return items.map((found) => found.project);
  } catch {
    return [];
  }
}

/** A page of the list; null where no run is there to ask for. */
async function load(now, signal) {
  const run = await runOf(now, signal);
  return run === null ? null : api.trajectories(run, { ...paramsOf(now), limit: PAGE, offset: now.offset }, signal);
}

/** The run that is asked: the chosen one, or the newest of the project. */
async function runOf({ run, project }, signal) {
  if (run !== "") return run;
  const { items } = await api.runs({ project, limit: 1 }, signal);
  return items[0]?.run ?? null;
}

const none = (now) =>
  isFiltered(now)
    ? empty("No trajectory fits.", button("Show all", { run: () => (location.hash = "#/trajectories") }))
    : empty(
        "No trajectory yet.",
        h("p", null, "Each invocation of an agent leaves one. Start a run with ", h("code", null, "longhaul run"), "."),
      );

function filters(now, projects, change) {
  const choose = (name, label, options) => {
    const box = select(options, now[name], { "aria-label": label });
    box.addEventListener("change", () => change({ [name]: box.value }));
    return box;
  };
  const write = (name, label) => {
    const box = input({ placeholder: label, "aria-label": label, class: "short", prop: { value: now[name] } });
    box.addEventListener("change", () => change({ [name]: box.value.trim() }));
    return box;
  };
  const names = [...new Set([...projects, now.project].filter(Boolean))].sort();
  return h(
    "div",
    { class: "toolbar", role: "search" },
    choose("project", "Project", [["", "Project of the newest run"], ...names.map((name) => [name, name])]),
    write("run", "Every run"),
    write("agent", "Every agent"),
    choose("ending", "Ending", ENDING_OPTIONS),
    choose("judged", "Rating", JUDGED_OPTIONS),
  );
}

const COLUMNS = [
  {
    name: "Invocation",
    cell: (found) => [
      link(trajectoryHref(found), shortId(found)),
      h("span", { class: "sub" }, `${found.project} · ${found.run}`),
    ],
  },
  { name: "Agent", cell: (found) => [agentName(found.agent), h("span", { class: "sub" }, found.plugin)] },
  {
    name: "Outcome",
    wide: true,
    cell: (found) => [
      status(lookOfEnding(found.ending), endingWords(found.ending)),
      found.summary && h("span", { class: "sub" }, oneLine(found.summary, 160)),
    ],
  },
  { name: "Rating", cell: (found) => ratingWords(found) },
  { name: "Calls", numeric: true, hide: "narrow", cell: (found) => `${found.model_calls} + ${found.steps.length}` },
  { name: "Cost", numeric: true, hide: "phone", cell: (found) => costNote(found.usage) || muted("–") },
  { name: "Begun", numeric: true, cell: (found) => when(found.from_ms) },
];

function ratingWords({ rating, correction }) {
  if (rating === null && correction === null) return muted("–");
  return h(
    "span",
    { class: "chips" },
    rating !== null && chip(`${rating} of 5`),
    correction !== null && chip("corrected"),
  );
}

/** What is found, as a file with a line of JSON each. */
function exporter(now) {
  const format = select(FORMATS, "full", { "aria-label": "Format of the export" });
  return h(
    "div",
    { class: "actions" },
    format,
    button("Export as JSON lines", { small: true, sign: "down", run: () => exportAll(now(), format.value) }),
  );
}

async function exportAll(now, format) {
  const run = await runOf(now);
  const pieces = [];
  let [lines, size] = [0, 0];
  while (run !== null) {
    const text = await api.exportTrajectories(run, { ...paramsOf(now), format, limit: EXPORT_LINES, offset: lines });
    const many = text.split("\n").filter(Boolean).length;
    size += text.length;
    if (size > EXPORT_CHARS_MAX) throw new Error("This is too much for one file; narrow the filters.");
    if (many > 0) pieces.push(text);
    lines += many;
    if (many < EXPORT_LINES) break;
  }
  if (lines === 0) return toast("No trajectory has this format.", "bad");
  const address = URL.createObjectURL(new Blob(pieces, { type: "application/x-ndjson" }));
  h("a", { href: address, download: `trajectories-${format}.jsonl` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  toast(`${plural(lines, "line")} exported.`);
}

/** One trajectory. It is loaded once: a replay is too much for a clock. */
async function one(ctx, run, invocation) {
  ctx.title(invocation);
  const box = h("div", { class: "run-body" });
  fill(ctx.box, box);
  const shown = await live(ctx, {
    place: box,
    isWhole: true,
    everyMs: 3_600_000,
    wants: () => false,
    load: (signal) => api.trajectory(run, invocation, signal),
    draw: (found) =>
      redraw(
        box,
        whole(found, () => shown.refresh()),
      ),
  });
}

function whole(found, refresh) {
  return [
    h(
      "div",
      { class: "run-head" },
      h(
        "p",
        { class: "crumbs" },
        link("#/trajectories", "Trajectories"),
        " · ",
        link(`#/runs/${encodeURIComponent(found.run)}`, found.run),
      ),
      h("h1", null, shortId(found)),
      h(
        "p",
        { class: "head-line" },
        status(lookOfEnding(found.ending), endingWords(found.ending)),
        muted(`${agentName(found.agent)} · ${found.plugin}`),
        ratingWords(found),
      ),
      facts(factsOf(found)),
    ),
    section("Instruction", { id: "s-instruction" }, plain(found.instruction, { label: "Text of the instruction" })),
    section("Outcome", { id: "s-outcome" }, outcome(found)),
    section("Judgement", { id: "s-judgement" }, judgement(found, refresh)),
    transcript(found),
    calls(found),
  ];
}

const factsOf = (found) => [
  ["Project", link(`#/projects/${encodeURIComponent(found.project)}`, found.project)],
  ["Task", found.task],
  ["Confidence", found.confidence === null ? null : `${Math.round(found.confidence * 100)} %`],
  ["Calls of models", count(found.model_calls)],
  ["Other calls", count(found.steps.length)],
  ["Tokens", `${short(found.usage.input_tokens)} in, ${short(found.usage.output_tokens)} out`],
  ["Cost", costNote(found.usage)],
  ["Shortened", found.summarizations > 0 ? plural(found.summarizations, "time") : null],
  ["Begun", when(found.from_ms)],
  ["Took", found.until_ms === null ? null : duration(found.until_ms - found.from_ms)],
  ["Component", mono(found.component.slice(0, 12))],
];

function outcome(found) {
  return [
    found.summary && plain(found.summary, { label: "Summary" }),
    found.answer !== null && plain(found.answer, { code: true, label: "Answer" }),
    found.summary === "" && found.answer === null && muted("It gave no answer."),
  ];
}

const RATINGS = [
  ["", "not rated"],
  ["1", "1, bad"],
  ["2", "2"],
  ["3", "3"],
  ["4", "4"],
  ["5", "5, good"],
];

/** What a person says of it. */
function judgement(found, refresh) {
  const { rating, correction } = found;
  if (found.ending === "unfinished") return muted("It can be rated when it has ended.");
  if (!may("run")) return correction === null ? ratingWords(found) : plain(correction, { label: "Correction" });
  // A rating can be changed and not taken back.
  const options = rating === null ? RATINGS : RATINGS.slice(1);
  const stars = select(options, rating === null ? "" : String(rating), { name: "rating" });
  const text = area(correction ?? "", { name: "correction", rows: "4" });
  return form(
    "Judgement",
    [
      field("Rating", stars, { name: "rating" }),
      field("What the answer should have been", text, {
        name: "correction",
        hint: "For training, beside the answer that it gave.",
      }),
    ],
    {
      action: "Save",
      submit: async () => {
        const body = annotationOf(found.id, { rating: stars.value, correction: text.value }, found);
        if (body === null) return toast("Nothing was changed.", "wait");
        await api.annotate(found.run, body);
        toast("It is kept.");
        await refresh();
      },
    },
  );
}
