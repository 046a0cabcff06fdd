// Code in steps: change one, and only what it touches runs again.

import host from "#host/graph";

import { ask } from "./errors.js";
import { orUndefined } from "./lift.js";
import * as shape from "./shapes.js";

const step = (name) => shape.text(name, "step");
const optional = (name) => shape.option(shape.text)(name, "step");

const failure = ({ kind, message, line, column, traceback }) => ({
  kind,
  message,
  line: orUndefined(line),
  column: orUndefined(column),
  traceback,
});

/** A graph of this invocation, by its name. It is there once a step was added; its steps are Python. */
export class Graph {
  #name;

  constructor(name) {
    this.#name = shape.text(name, "name");
  }

  /** Adds a step behind the others: `{ stale, failure }`. A source that cannot be read is kept, and said so. */
  add(name, source) {
    return changes(ask(() => host.addStep(this.#name, step(name), shape.text(source, "source"))));
  }

  /** Gives a step another source. */
  change(name, source) {
    return changes(ask(() => host.changeStep(this.#name, step(name), shape.text(source, "source"))));
  }

  remove(name) {
    return changes(ask(() => host.removeStep(this.#name, step(name))));
  }

  /** Runs what is stale: `{ ran, reused, failed, blocked, untouched, warnings }`. A failing step is no error. */
  run({ keepGoing = false } = {}) {
    return replayed(ask(() => host.run(this.#name, shape.bool(keepGoing, "keepGoing"))));
  }

  /** Runs a step again, and what its new values touch. */
  replay(name) {
    return replayed(ask(() => host.replay(this.#name, step(name))));
  }

  /** The steps that would run, in their order. */
  stale() {
    return ask(() => host.stale(this.#name));
  }

  /** All steps as they stand. */
  show() {
    return ask(() => host.show(this.#name)).map((found) => ({
      ...found,
      value: orUndefined(found.value),
      failure: found.failure ? failure(found.failure) : undefined,
      durationMs: found.durationMs >>> 0,
    }));
  }

  /** Why a step failed; without a step, the first that failed: `{ step, failure, values, cause, reason }`. */
  diagnose(name) {
    const found = ask(() => host.diagnose(this.#name, optional(name)));
    const values = found.values.map(({ name, text, producer }) => ({ name, text, producer: orUndefined(producer) }));
    return { ...found, failure: failure(found.failure), values };
  }

  /** Finds a source with which a failure is gone, and keeps it: `{ step, source, reason, tries, replay }`. */
  patch(name) {
    const kept = ask(() => host.patch(this.#name, optional(name)));
    return { ...kept, tries: kept.tries >>> 0, replay: replayed(kept.replay) };
  }

  /** The graph as a text: `json`, or `dot` for Graphviz. */
  export(format = "json") {
    return ask(() => host.exportGraph(this.#name, shape.oneOf("json", "dot")(format, "format")));
  }
}

function changes({ stale, failure: why }) {
  return { stale, failure: why ? failure(why) : undefined };
}

function replayed(replay) {
  return { ...replay, untouched: replay.untouched >>> 0 };
}
