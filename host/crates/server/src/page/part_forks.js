// The runs that a run was forked from and into: a line below its head, and the tree with one click to see two of them
// side by side.
//
// It reads the list of the project's runs, in which archived ones are not; a run that is not listed is shown by its
// name.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { cost, plural } from "./format.js";
import { forksOf, treeOf } from "./forks.js";
import { live } from "./live.js";
import { besideHref, pastHref } from "./points.js";
import { chip, link, mono, redraw, section, status, when } from "./ui.js";

/** Runs of the project that are read. */
const RUNS_MAX = 500;

/** Forks that the line has. */
const SHOWN = 5;

/** Where a run is a fork: of which run, at which point, and what it took over. */
export function origin(run) {
  if (!run.fork) return null;
  const { parent, at, inherited_usage: inherited } = run.fork;
  return h(
    "p",
    { class: "hint fork-origin" },
    "Forked from ",
    link(`#/runs/${parent}`, mono(parent)),
    " at ",
    link(pastHref(parent, at), at),
    ` · inherited ${cost(inherited.usage)}, not paid again · `,
    link(besideHref(parent, run.run), "Compare both"),
  );
}

/** The forks of a run in one line, for as long as the view is open. */
export function forkLine(ctx, place, run) {
  const draw = (runs) => {
    const forks = forksOf(runs, run.run);
    redraw(
      place,
      forks.length > 0 &&
        h(
          "p",
          { class: "head-line fork-line" },
          h("span", { class: "muted" }, `${plural(forks.length, "fork")}:`),
          forks
            .slice(-SHOWN)
            .map((one) => h("span", null, link(`#/runs/${one.run}`, mono(one.run)), " ", status(one.status))),
          forks.length > SHOWN && h("span", { class: "muted" }, `and ${forks.length - SHOWN} earlier`),
          link(`#/runs/${run.run}/compare`, "Tree"),
        ),
    );
  };
  keep(ctx, place, run, draw);
}

/** The tree of forks that a run is in. */
export function forkTree(ctx, place, run) {
  const draw = (runs) => {
    const rows = treeOf(runs, run);
    redraw(
      place,
      rows.length > 1 &&
        section(
          "Forks",
          { id: "s-forks", count: rows.length },
          h(
            "ol",
            { class: "fork-tree" },
            rows.map((row) => treeRow(row, run.run)),
          ),
        ),
    );
  };
  keep(ctx, place, run, draw);
}

function treeRow({ run, parent, depth, isKnown }, own) {
  return h(
    "li",
    { class: run.run === own && "is-own", vars: { "--depth": Math.min(depth, 8) } },
    h(
      "a",
      { href: `#/runs/${run.run}`, "aria-current": run.run === own ? "true" : null },
      mono(run.run),
      depth > 0 && h("span", { class: "unseen" }, `, fork of ${parent}`),
    ),
    run.run === own && chip("this run", "busy"),
    isKnown && status(run.status),
    isKnown && h("span", { class: "muted" }, when(run.created_ms)),
    parent !== null &&
      h(
        "a",
        { href: besideHref(parent, run.run) },
        "Compare with its parent",
        h("span", { class: "unseen" }, `: ${parent} and ${run.run}`),
      ),
  );
}

function keep(ctx, place, run, draw) {
  live(ctx, {
    place,
    everyMs: 60_000,
    wants: (line) => ["run_started", "done", "error", "paused", "resumed"].includes(line.type),
    load: (signal) => api.runs({ project: run.project, limit: RUNS_MAX }, signal),
    draw: ({ items }) => draw(items),
  }).catch(() => ctx.signal.aborted || fill(place));
}
