// Follows a stream of the server for as long as a view is open: reads it by fetch, so that the token goes as a header,
// asks again after every break with the id that it had last, and lets nothing through twice.
//
// A page that nobody looks at lets go of its stream after a while, since a browser has few connections for one server and
// a person many tabs; it comes back with its last id when it is looked at. What it refuses: to hold a broken stream for alive (the server says something every 15 s), and to ask without a pause.

import * as link from "./link.js";
import * as session from "./session.js";
import { problem } from "./api.js";
import { EVENT_CHARS_MAX, EventReader, backoffMs } from "./sse.js";

/** Longest silence, over two heartbeats of the server. */
const SILENCE_MS = 40_000;

/** Before the first attempt after a break. */
const BREATH_MS = 250;

/** How long a page that nobody looks at keeps its stream. */
const HIDDEN_MS = 20_000;

/**
 * Follows until `signal` aborts. `onEvent({type, data, id})` gets what is JSON, read; `onOpen(again)` is called at each
 * connection, `again` from the second on. Returns when aborted, or throws an answer that asking again does not mend.
 */
export async function follow(path, { signal, lastId = null, onEvent, onOpen }) {
  let id = lastId;
  let attempt = 0;
  let opened = false;
  while (!signal.aborted) {
    await untilSeen(signal);
    if (signal.aborted) return;
    let answered = false;
    const one = new AbortController();
    const both = AbortSignal.any([signal, one.signal]);
    const watched = new AbortController();
    let slept = false;
    whenUnseen(watched.signal, () => {
      slept = true;
      one.abort();
    });
    try {
      const response = await open(path, id, both);
      if (!response.ok) {
        const error = await problem(response);
        if (response.status < 500 && response.status !== 429) throw Object.assign(error, { final: true });
        throw error;
      }
      link.reached();
      onOpen?.(opened);
      opened = true;
      await readEvents(response, one, (event) => {
        attempt = 0;
        if (event.id !== null) id = event.id;
        onEvent(event);
      });
    } catch (error) {
      if (error.final) throw error;
      answered = error.status !== undefined;
    } finally {
      watched.abort();
      one.abort();
    }
    if (signal.aborted) return;
    if (slept) continue;
    attempt += 1;
    // A stream that merely ended is asked for again at once: the server lets slow readers go. A server that answers and
    // has no room is not lost either.
    if (attempt === 1 && opened) await link.pause(BREATH_MS, signal);
    else if (answered) await link.pause(backoffMs(attempt, Math.random()), signal);
    else await link.lost(attempt - (opened ? 1 : 0), signal);
  }
}

/** Calls `sleep` once nobody has looked at the page for a while. */
function whenUnseen(signal, sleep) {
  let timer = null;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(sleep, HIDDEN_MS);
  };
  document.addEventListener("visibilitychange", look, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  look();
}

/** Waits until somebody looks at the page. */
function untilSeen(signal) {
  return new Promise((resolve) => {
    if (!document.hidden || signal.aborted) return void resolve();
    const look = () => {
      if (!document.hidden || signal.aborted) {
        document.removeEventListener("visibilitychange", look);
        resolve();
      }
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look, { once: true });
  });
}

function open(path, id, signal) {
  const headers = { accept: "text/event-stream" };
  const token = session.bearer();
  if (token) headers.authorization = `Bearer ${token}`;
  if (id !== null) headers["last-event-id"] = String(id);
  return fetch(path, {
    headers,
    signal,
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
    referrerPolicy: "no-referrer",
  });
}

/**
 * Reads the events of an answer to its end, each as `{type, data, id}` with what is JSON, read. `one` is aborted when
 * the server says nothing for long; an event of more than `charsMax` characters is an error.
 */
export async function readEvents(response, one, onEvent, charsMax = EVENT_CHARS_MAX) {
  const reader = new EventReader(charsMax);
  const pieces = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let timer = null;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => one.abort(), SILENCE_MS);
  };
  try {
    for (;;) {
      alive();
      const { done, value } = await pieces.read();
      if (done) return;
      for (const event of reader.push(value)) {
        const data = parsed(event.data);
        if (data !== null) onEvent({ type: event.type, data, id: event.id });
      }
    }
  } finally {
    clearTimeout(timer);
    pieces.cancel().catch(() => {});
  }
}

function parsed(text) {
  if (text === "") return {};
  try {
    const read = JSON.parse(text);
    return typeof read === "object" && read !== null ? read : null;
  } catch {
    return null;
  }
}
