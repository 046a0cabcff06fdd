// The output of the steps of a graph while they run, in their cells.
//
// It follows the stream for as long as the view is open, from the number that it had last, whoever began the run. It writes
// into the place that each cell has for it, also of a cell that is edited, and leaves the cells otherwise as they are.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { duration } from "./format.js";
import { LiveSteps, liveWords } from "./live_steps.js";
import { showText, soon } from "./part_live_output.js";
import { follow } from "./stream.js";
import { failed, muted, status } from "./ui.js";

/** Pause between the end of a step and loading the graph, in which more steps may end. */
const SETTLE_MS = 250;

/**
 * The output of the graph `name`, followed from `start()` until `ctx.signal` aborts. `cells` has the cells; `notice` gets
 * what went wrong. `changed()` is called when another step runs than before, `stored()` when the graph has something new to
 * load.
 */
export function liveSteps(ctx, name, { cells, notice, changed, stored }) {
  const steps = new LiveSteps();
  let settling = null;
  let shownStep = null;

  const show = () => showIn(cells, steps.seen());
  const plan = soon(() => {
    if (ctx.signal.aborted) return;
    const step = steps.running?.step ?? null;
    if (step !== shownStep) {
      shownStep = step;
      changed();
    }
    show();
  });
  const storedSoon = () => {
    settling ??= setTimeout(() => {
      settling = null;
      if (!ctx.signal.aborted) stored();
    }, SETTLE_MS);
  };
  const start = async () => {
    fill(notice);
    try {
      await follow(api.graphStream(name), {
        signal: ctx.signal,
        lastId: steps.last || null,
        onEvent: (event) => {
          if (steps.take(event)) storedSoon();
          plan();
        },
      });
    } catch (error) {
      if (!ctx.signal.aborted) fill(notice, failed(error, start));
    }
  };
  return {
    start,
    show,
    running: () => steps.running,
    ended: () => steps.ended(),
    forget: (entries) => {
      steps.forget(entries);
      show();
    },
  };
}

/** Puts the output of these steps into their cells, and takes that of others out. */
export function showIn(cells, entries) {
  const byStep = new Map(entries.map((entry) => [entry.step, entry]));
  for (const cell of cells.children) {
    const entry = byStep.get(cell.dataset.key);
    const place = cell.querySelector(".cell-live");
    if (!place) continue;
    cell.classList.toggle("is-live", entry !== undefined);
    if (entry) showOne(place, entry);
    else if (place.childElementCount > 0) fill(place);
  }
}

function showOne(place, entry) {
  const words = liveWords(entry, duration(entry.durationMs ?? 0));
  if (place.childElementCount === 0)
    fill(
      place,
      h("p", { class: "head-line" }),
      h("div", { data: { live: "stdout" } }),
      h("div", { data: { live: "stderr" } }),
    );
  const [head, stdout, stderr] = place.children;
  const told = `${words}${entry.isCut ? ` · ${CUT}` : ""}`;
  if (head.dataset.told !== told) {
    head.dataset.told = told;
    fill(head, status(lookOf(entry), words), entry.isCut && muted(CUT));
  }
  showText(stdout, "Printed", `Output of ${entry.step}, as it comes`, entry.stdout);
  showText(stderr, "Printed as errors", `Standard error of ${entry.step}, as it comes`, entry.stderr);
}

const CUT = "the end of the output; the step has all of it once it has ended";

function lookOf({ isRunning, outcome }) {
  if (isRunning) return "working";
  return outcome === "failed" ? "failing" : "passing";
}
