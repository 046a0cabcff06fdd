// A run beside others: which ones, the first difference, features with their verdicts, files, answers, and all steps
// side by side.
//
// The server compares and bounds the texts; what it left out is said. All of it is text of others, and no run is called
// the better one.

import * as api from "./api.js";
import { changeWords, countsWords, isSame, letter, rowsOf, totalOf } from "./compare.js";
import { add, fill, h } from "./dom.js";
import { asText, cost, count, cut, duration, plural, words } from "./format.js";
import { countsOf } from "./part_commit.js";
import { filesDiff } from "./part_diff.js";
import { forkTree } from "./part_forks.js";
import { besideHref } from "./points.js";
import {
  button,
  check,
  chip,
  empty,
  failed,
  link,
  loading,
  mono,
  muted,
  plain,
  progress,
  section,
  select,
  status,
  table,
} from "./ui.js";

/** Runs that are offered, the newest ones of the project. */
const OFFERED = 50;

/** Characters of a title in the list. */
const TITLE_CHARS_MAX = 50;

/** Rows that are drawn at once; more are a button away. */
const ROWS = 100;

/** Draws the part; the address has the other runs. */
export async function compare(ctx, place, run) {
  const others = ctx.query.getAll("with").filter(Boolean);
  const picker = h("div", { class: "toolbar" });
  const body = h("div", { class: "run-body" });
  const tree = h("div");
  fill(place, h("h2", { class: "unseen" }, "Compare"), picker, tree, body);
  choose(ctx, picker, run, others);
  forkTree(ctx, tree, run);
  if (others.length === 0) return void fill(body, empty("Choose a run to see both side by side."));
  const load = async () => {
    fill(body, loading());
    try {
      fill(body, drawComparison(await api.comparison([run.run, ...others], ctx.signal)));
    } catch (error) {
      if (!ctx.signal.aborted) fill(body, failed(error, load));
    }
  };
  await load();
}

function choose(ctx, place, run, others) {
  const draw = (runs) => {
    const named = runs.filter((one) => one.run !== run.run).map((one) => [one.run, labelOf(one)]);
    const box = select([["", "Choose a run"], ...named], others.length === 1 ? others[0] : "", {
      "aria-label": "Compare with",
    });
    box.addEventListener("change", () => box.value && ctx.go(besideHref(run.run, box.value)));
    fill(place, box);
  };
  draw([]);
  api
    .runs({ project: run.project, limit: OFFERED }, ctx.signal)
    .then(({ items }) => draw(items))
    // Without the list the address is the way.
    .catch(() => {});
}

function labelOf(run) {
  return `${run.run} · ${words(run.status)} · ${cut(run.title || run.project, TITLE_CHARS_MAX)}`;
}

/** The whole comparison. */
export function drawComparison(compared) {
  const { runs, counts, first_difference: first } = compared;
  return [
    section("Runs", { id: "s-compared" }, runTable(runs)),
    section(
      "The first difference",
      { id: "s-first" },
      h("p", { class: "hint" }, `Steps: ${countsWords(counts)}.`),
      first === null ? empty("No step differs.") : stepBox(first, runs.length, "First difference"),
    ),
    compared.features.length > 0 && featureSection(compared),
    compared.files.map((one) => fileSection(one)),
    runs.some((run) => run.answer !== null) &&
      section(
        "Answers",
        { id: "s-answers" },
        sides(runs.length, (place) =>
          runs[place].answer ? plain(asText(runs[place].answer.answer)) : muted("has none"),
        ),
      ),
    stepSection(compared),
  ];
}

function runTable(runs) {
  const columns = [
    {
      name: "Run",
      wide: true,
      cell: ({ place, run }) => [
        h("b", null, letter(place)),
        " ",
        link(`#/runs/${run.run}`, run.title || run.run),
        h("span", { class: "sub" }, run.project, " · ", mono(run.run)),
      ],
    },
    { name: "Status", cell: ({ run }) => status(run.status) },
    { name: "Features", cell: ({ run }) => progress(run.passing.done, run.passing.of, "Features that pass") },
    {
      name: "Steps",
      numeric: true,
      cell: ({ run }) => [
        count(run.steps),
        run.steps_left_out > 0 && h("span", { class: "sub" }, `${count(run.steps_left_out)} more are not compared`),
      ],
    },
    {
      name: "Tokens",
      numeric: true,
      cell: ({ run }) => count(run.usage.input_tokens + run.usage.output_tokens),
    },
    { name: "Cost", numeric: true, cell: ({ run }) => cost(run.usage) },
    { name: "At work", numeric: true, cell: ({ run }) => duration(run.wall_ms) },
  ];
  return table(
    "Compared runs",
    columns,
    runs.map((run, place) => ({ place, run })),
  );
}

/** One thing of each run, side by side. */
function sides(runs, cell) {
  return h(
    "div",
    { class: "compare-sides", vars: { "--runs": runs } },
    Array.from({ length: runs }, (_, place) =>
      h("div", { class: "compare-side" }, h("span", { class: "compare-letter" }, letter(place)), cell(place)),
    ),
  );
}

/** A step of all runs. Long answers are regions of their own, which `label` names. */
function stepBox(step, runs, label = `Step ${step.number}`) {
  const own = (place) => step.sides.find((side) => side.run === place);
  return h(
    "article",
    { class: ["card", "compared", !isSame(step) && "is-different"] },
    h(
      "p",
      { class: "card-head" },
      h("span", null, `${count(step.number)}. `, mono(step.work), ` · ${step.kind}`),
      chip(changeWords(step, runs), isSame(step) ? "" : "wait"),
    ),
    sides(runs, (place) =>
      own(place) ? stepSide(own(place), `${label}, ${letter(place)}`) : muted("does not have it"),
    ),
  );
}

function stepSide(side, label) {
  return h(
    "div",
    { class: "stack-small" },
    side.call && mono(side.call),
    side.skipped_bytes > 0 && h("span", { class: "hint" }, `${plural(side.skipped_bytes, "byte")} before are the same`),
    side.answer && plain(side.answer, { label }),
    side.is_cut && h("span", { class: "hint" }, "More of it is in the journal."),
    h(
      "span",
      { class: "sub" },
      side.entry > 0 && `entry ${side.entry}`,
      side.duration_ms !== null && ` ${duration(side.duration_ms)}`,
    ),
  );
}

function featureSection({ features, features_left_out: left, runs }) {
  const own = (feature, place) => feature.sides.find((side) => side.run === place);
  return section(
    "Features",
    { id: "s-features" },
    features.map((feature) =>
      h(
        "article",
        { class: ["card", "compared", !feature.is_same && "is-different"] },
        h(
          "p",
          { class: "card-head" },
          h("b", null, `${feature.feature}: ${feature.title}`),
          !feature.is_same && chip("differs", "wait"),
        ),
        sides(runs.length, (place) => {
          const side = own(feature, place);
          return side ? featureSide(side) : muted("does not have it");
        }),
      ),
    ),
    left > 0 && h("p", { class: "hint" }, `${plural(left, "more feature")}; the list ends here.`),
  );
}

function featureSide(side) {
  const { verdict } = side;
  return h(
    "div",
    { class: "stack-small" },
    h("span", null, status(side.status), side.sessions > 1 && ` in ${plural(side.sessions, "session")}`),
    side.reason && h("span", { class: "hint" }, side.reason),
    verdict &&
      h(
        "ul",
        { class: "dots" },
        verdict.judgements.map((one) =>
          h("li", null, h("b", null, words(one.mark)), ` ${one.criterion}: ${one.reason}`),
        ),
      ),
    verdict &&
      h("span", { class: "sub" }, `${plural(verdict.verdicts, "verdict")}, the last in round ${verdict.round}`),
    side.answer && plain(asText(side.answer)),
    h(
      "span",
      { class: "sub" },
      cost(side.resource_usage.usage),
      side.commit && [" · ", mono(side.commit.slice(0, 10))],
    ),
  );
}

function fileSection({ run, diff, reason }) {
  const [title, id] = [`Files from ${letter(0)} to ${letter(run)}`, `s-files-${run}`];
  if (diff === null) return section(title, { id }, empty(`They are not compared: ${reason}.`));
  return section(
    title,
    { id },
    h("p", null, mono(diff.from.slice(0, 10)), " to ", mono(diff.to.slice(0, 10)), `: ${countsOf(diff.counts)}`),
    diff.files.length === 0 ? empty("No file differs.") : filesDiff(diff.files, `compare-${run}`),
    diff.files_left_out > 0 &&
      h("p", { class: "hint" }, `${plural(diff.files_left_out, "more file")} differ; the list ends here.`),
  );
}

function stepSection({ steps, counts, runs }) {
  const same = check("Show steps that are the same", false);
  const list = h("div", { class: "stack" });
  const draw = () => {
    const rows = rowsOf(steps, totalOf(counts), !same.box.checked);
    fill(list);
    more(list, rows, runs.length);
  };
  same.box.addEventListener("change", draw);
  draw();
  return section("Steps", { id: "s-steps", actions: [same.element] }, list);
}

/** Draws the next rows, and a button for those after them. */
function more(list, rows, runs) {
  const [now, later] = [rows.slice(0, ROWS), rows.slice(ROWS)];
  add(
    list,
    now.map(({ step, gap }) =>
      step ? stepBox(step, runs) : h("p", { class: "hint" }, `${plural(gap, "step")} not shown`),
    ),
  );
  if (later.length === 0) return;
  const next = button(`Show more of ${plural(later.length, "row")}`, {
    small: true,
    kind: "quiet",
    run: () => {
      next.remove();
      more(list, later, runs);
    },
  });
  list.append(next);
}
