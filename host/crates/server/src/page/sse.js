// Server-sent events, read from pieces of text as they come. Pure: knows no network.
//
// It follows the format of the HTML standard, with one refusal: an event that grows over the cap is an error, since a
// page that is read for days must not be filled by one that never ends.

/** Longest event that is taken, in characters. */
export const EVENT_CHARS_MAX = 4 * 1024 * 1024;

/** Reads a stream. Give it text as it comes; it hands back the events that are whole by then. */
export class EventReader {
  #rest = "";
  #event = fresh();
  #size = 0;
  #started = false;

  /** The last id that the stream said; what `Last-Event-ID` says when it is asked for again. */
  lastId = null;
  /** How long to wait before asking again, in milliseconds, if the stream said so. */
  retryMs = null;

  /** @returns {{type: string, data: string, id: string | null}[]} */
  push(text) {
    let all = this.#rest + text;
    if (!this.#started && all.length > 0) {
      this.#started = true;
      if (all.startsWith("\ufeff")) all = all.slice(1);
    }
    const events = [];
    let from = 0;
    for (;;) {
      const end = lineEnd(all, from);
      if (end === null) break;
      this.#line(all.slice(from, end.at), events);
      from = end.next;
    }
    this.#rest = all.slice(from);
    if (this.#rest.length + this.#size > EVENT_CHARS_MAX) throw new RangeError("an event of the stream is too long");
    return events;
  }

  #line(line, events) {
    if (line === "") {
      if (this.#event.data.length > 0) {
        events.push({ type: this.#event.type || "message", data: this.#event.data.join("\n"), id: this.#event.id });
      }
      this.#event = fresh();
      this.#size = 0;
      return;
    }
    if (line.startsWith(":")) return;
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    this.#size += line.length;
    if (name === "data") this.#event.data.push(value);
    else if (name === "event") this.#event.type = value;
    else if (name === "id" && !value.includes("\0")) {
      this.#event.id = value;
      this.lastId = value;
    } else if (name === "retry" && /^\d{1,7}$/.test(value)) this.retryMs = Number(value);
  }
}

const fresh = () => ({ type: "", data: [], id: null });

/** Where a line ends and the next begins. A carriage return at the very end may be half of a pair: wait for more. */
function lineEnd(text, from) {
  for (let at = from; at < text.length; at += 1) {
    const sign = text[at];
    if (sign === "\n") return { at, next: at + 1 };
    if (sign === "\r") {
      if (at + 1 === text.length) return null;
      return { at, next: text[at + 1] === "\n" ? at + 2 : at + 1 };
    }
  }
  return null;
}

/** How long to wait before the attempt with this number, from 1: doubling from a second to the cap, with some chance. */
export function backoffMs(attempt, chance, mostMs = 15_000) {
  const base = Math.min(mostMs, 1000 * 2 ** Math.min(attempt - 1, 10));
  return Math.round(base * (0.75 + chance * 0.25));
}
