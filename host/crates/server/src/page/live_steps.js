// The output of the steps of a graph while they run, as its stream tells it. Pure: it draws and asks nothing.
//
// A step is kept from its beginning until the graph was loaded again after its end, since the graph then has its whole
// output. Kept of each stream is the end alone. An event that comes twice counts once.

import { print } from "./live_output.js";

/** The steps that run, or have ended and are not loaded yet. */
export class LiveSteps {
  /** By name: `{step, place, steps, stdout, stderr, isCut, isRunning, wasSeen, outcome, durationMs}`. */
  #known = new Map();
  #last = 0;

  /** The number of the last event; 0 before the first. */
  get last() {
    return this.#last;
  }

  /** Takes an event. True when the graph has something new to load. */
  take({ type, data }) {
    if (type === "idle") return this.#idle();
    if (type === "lagged") {
      for (const entry of this.#known.values()) if (entry.isRunning) entry.isCut = true;
      return true;
    }
    if (!(data.number > this.#last) || typeof data.step !== "string") return false;
    this.#last = data.number;
    if (type === "begin") this.#begin(data);
    else if (type === "output") print(this.#of(data.step), data);
    else if (type === "end") return this.#end(data);
    return false;
  }

  /** The step that runs now; null where none does. */
  get running() {
    return [...this.#known.values()].find((entry) => entry.isRunning) ?? null;
  }

  /**
   * The steps whose output is shown: those that run, and those that ended while they were shown. The graph has the output
   * of a step that ended before anybody saw it.
   */
  seen() {
    const shown = [...this.#known.values()].filter((entry) => entry.isRunning || entry.wasSeen);
    for (const entry of shown) entry.wasSeen = true;
    return shown;
  }

  /** The steps that have ended: what is loaded from now on has their output. */
  ended() {
    return [...this.#known.values()].filter((entry) => !entry.isRunning);
  }

  /** Lets go of steps that were loaded, unless they have begun again meanwhile. */
  forget(entries) {
    for (const entry of entries) if (this.#known.get(entry.step) === entry) this.#known.delete(entry.step);
  }

  #begin({ step, place = null, steps = null }) {
    // One step runs at a time. The end of the one before was missed where it still seems to run.
    for (const entry of this.#known.values()) entry.isRunning = false;
    const fresh = { step, place, steps, stdout: "", stderr: "", isCut: false, isRunning: true };
    this.#known.set(step, { ...fresh, wasSeen: false, outcome: null, durationMs: null });
  }

  /** The step of an event, whose beginning may have been missed. */
  #of(step) {
    const known = this.#known.get(step);
    if (known?.isRunning) return known;
    this.#begin({ step });
    const entry = this.#known.get(step);
    entry.isCut = true;
    return entry;
  }

  #end({ step, outcome = null, duration_ms: durationMs = null }) {
    const entry = this.#of(step);
    Object.assign(entry, { isRunning: false, outcome, durationMs });
    // A run that counts for nothing is followed by the one that counts.
    return outcome !== "again";
  }

  /** Nothing runs: a step that has no end was cut off, and the graph tells its state. */
  #idle() {
    const hasNews = this.#known.size > 0;
    for (const entry of this.#known.values()) entry.isRunning = false;
    return hasNews;
  }
}

/** How far a step is, in a few words. */
export function liveWords({ place, steps, isRunning, outcome }, timeText) {
  if (isRunning) return place === null ? "running" : `running, ${place} of ${steps}`;
  if (outcome === "failed") return `failed after ${timeText}`;
  if (outcome === "done") return `done in ${timeText}`;
  return outcome === "again" ? "runs again with variables that its source does not show" : "ended";
}
