// The state of the connection to the server, kept in one place, and the waits between attempts.
//
// It makes no request. Whoever makes one reports how it went; whoever waits to try again waits here, and is woken early
// when another request came through, when the machine is on the network again, or when the person asks for it.

import { backoffMs } from "./sse.js";

const listeners = new Set();
const waiting = new Set();
let state = { lost: false, attempt: 0, retryAtMs: null };

/** `{lost, attempt, retryAtMs}` */
export const now = () => state;

/** Calls `listener(state, before)` at each change, until `signal` aborts. */
export function onChange(listener, signal) {
  listeners.add(listener);
  signal?.addEventListener("abort", () => listeners.delete(listener), { once: true });
}

function change(next) {
  const before = state;
  state = next;
  for (const listener of listeners) listener(state, before);
}

/** A request came through. */
export function reached() {
  if (!state.lost) return;
  change({ lost: false, attempt: 0, retryAtMs: null });
  wake();
}

/** No answer came. Waits as long as the attempt's number says, or until woken or aborted. */
export async function lost(attempt, signal, chance = Math.random()) {
  const waitMs = backoffMs(attempt, chance);
  const retryAtMs = Date.now() + waitMs;
  if (!state.lost || attempt >= state.attempt) change({ lost: true, attempt, retryAtMs });
  await pause(waitMs, signal);
}

/** Waits. Ends early when woken or aborted. */
export function pause(waitMs, signal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      waiting.delete(done);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, waitMs);
    waiting.add(done);
    signal?.addEventListener("abort", done, { once: true });
    if (signal?.aborted) done();
  });
}

/** Lets all who wait try now. */
export function wake() {
  for (const done of [...waiting]) done();
}

globalThis.addEventListener?.("online", wake);
