// Keeps a view true while it is open: loads, draws, and loads again when something happened, or after a while.
//
// One stream tells of the events of all runs; views say which of them concern them. A page that nobody looks at
// asks seldom. What could not be loaded again stays on the screen as it was: the banner says that it may be old.

import { add, fill } from "./dom.js";
import * as api from "./api.js";
import * as link from "./link.js";
import { follow } from "./stream.js";
import { failed, loading, tick } from "./ui.js";

const listeners = new Set();

/** Pause between an event and loading again, in which more events may come. */
const SETTLE_MS = 250;

/** How often a page loads that nobody looks at: its name in the list of tabs is still read. */
const UNSEEN_MS = 60_000;

/** Calls `listener(line)` for each event of any run, with null when events may have been missed. */
export function onEvent(listener, signal) {
  listeners.add(listener);
  signal.addEventListener("abort", () => listeners.delete(listener), { once: true });
}

const tell = (line) => listeners.forEach((listener) => listener(line));

/** Follows the events of all runs until the session ends. */
export async function listen(signal) {
  try {
    await follow(api.allStream(), {
      signal,
      onOpen: (again) => again && tell(null),
      onEvent: (event) => {
        if (event.type === "event") tell(event.data);
        else if (event.type === "lagged" || event.type === "dropped") tell(null);
      },
    });
  } catch (error) {
    // A server without that stream, or a token that may not have it: views then load after a while.
    if (!signal.aborted && error.status !== 401) console.info(`live events are off: ${error.message}`);
  }
}

/**
 * Keeps `place` true. `load(signal)` gives what `draw(data, place)` draws; `wants(line)` says whether an event concerns
 * the view. Resolves when it is drawn for the first time. Returns `{refresh}`. `isWhole`: without the data there is no
 * view, so that an answer that nothing is there is thrown.
 */
export async function live(ctx, { place, load, draw, wants = () => true, everyMs = 15_000, isWhole = false }) {
  let drawn = false;
  let timer = null;
  let running = null;
  let again = false;

  const plan = (ms) => {
    clearTimeout(timer);
    if (!ctx.signal.aborted) timer = setTimeout(refresh, ms);
  };
  const once = async () => {
    try {
      const data = await load(ctx.signal);
      if (ctx.signal.aborted) return;
      draw(data, place);
      drawn = true;
      tick(place);
    } catch (error) {
      if (ctx.signal.aborted) return;
      if (!drawn && isWhole && error.status === 404) throw error;
      if (!drawn) fill(place, failed(error, refresh));
    }
  };
  async function refresh() {
    if (running) {
      again = true;
      return running;
    }
    running = once();
    try {
      await running;
    } finally {
      running = null;
    }
    if (again) {
      again = false;
      plan(SETTLE_MS);
    } else plan(document.hidden ? Math.max(everyMs, UNSEEN_MS) : everyMs);
  }

  onEvent((line) => {
    if (line === null || wants(line)) plan(SETTLE_MS);
  }, ctx.signal);
  const seen = () => !document.hidden && plan(0);
  document.addEventListener("visibilitychange", seen, { signal: ctx.signal });
  link.onChange((state) => {
    if (!state.lost) plan(0);
  }, ctx.signal);
  ctx.signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  if (place.childElementCount === 0) add(place, loading());
  await refresh();
  return { refresh };
}
