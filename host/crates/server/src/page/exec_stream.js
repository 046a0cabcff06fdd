// Code that the server runs, with what it prints as it comes.
//
// A request is sent once and never again: its code may have changed something. The server stops code whose reader is
// gone, so a connection that broke has no result to come back for.

import * as api from "./api.js";
import { readEvents } from "./stream.js";

/**
 * Longest event, in characters: the result. A byte of its two streams, 8 MiB each, may be six characters there, and its
 * typed results are 8 MiB.
 */
const RESULT_CHARS_MAX = 128 * 1024 * 1024;

/** The connection broke before the result came. */
export class Interrupted extends Error {
  constructor() {
    super(
      "The connection broke before the result came, and the server stops code whose reader is gone. " +
        "Nothing is repeated: run it again if that does no harm.",
    );
  }
}

/**
 * Runs code, and returns its report. `onEvent({type, data})` gets its output. Throws an `ApiError` where the server
 * refused it, and `Interrupted` where the connection broke.
 */
export async function runCode(body, { signal, onEvent }) {
  const own = new AbortController();
  let last = null;
  const take = (event) => {
    if (event.type === "result" || event.type === "problem") last = event;
    else onEvent(event);
  };
  try {
    const response = await api.exec(body, AbortSignal.any([signal, own.signal]));
    await readEvents(response, own, take, RESULT_CHARS_MAX);
  } catch (error) {
    if (signal.aborted || error instanceof api.ApiError) throw error;
  } finally {
    own.abort();
  }
  if (last === null) throw new Interrupted();
  if (last.type === "problem") throw api.refusal(last.data.status, last.data);
  return last.data;
}
