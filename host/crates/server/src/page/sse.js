// Server-sent events, read from pieces of text as they come. Pure: knows no network.
//
// It follows the format of the HTML standard, with one refusal: an event that grows over the cap is an error, since a
// page that is read for days must not be filled by one that never ends.

/** Longest event that is taken, in characters. */
export const EVENT_CHARS_MAX = 4 * 1024 * 1024;

/** Reads a stream. Give it text as it comes; it hands back the events that are whole by then. */
export class EventReader {
  /** The beginning of a line, as it came. */
  #pieces = [];
  #piecesSize = 0;
  #event = fresh();
  #size = 0;
  #started = false;
  /** True after a carriage return at the very end: a line feed that comes next belongs to it. */
  #returned = false;
  #charsMax;

  /** The last id that the stream said; what `Last-Event-ID` says when it is asked for again. */
  lastId = null;
  /** How long to wait before asking again, in milliseconds, if the stream said so. */
  retryMs = null;

  constructor(charsMax = EVENT_CHARS_MAX) {
    this.#charsMax = charsMax;
  }

  /** @returns {{type: string, data: string, id: string | null}[]} */
  push(text) {
    const events = [];
    let from = this.#start(text);
    for (;;) {
      LINE_END.lastIndex = from;
      const end = LINE_END.exec(text);
      if (end === null) break;
      this.#pieces.push(text.slice(from, end.index));
      const line = this.#pieces.join("");
      this.#pieces = [];
      this.#piecesSize = 0;
      this.#line(line, events);
      from = LINE_END.lastIndex;
      this.#returned = end[0] === "\r" && from === text.length;
    }
    if (from < text.length) {
      this.#pieces.push(text.slice(from));
      this.#piecesSize += text.length - from;
    }
    if (this.#piecesSize + this.#size > this.#charsMax) throw new RangeError("an event of the stream is too long");
    return events;
  }

  /** Where the text begins: behind the sign that some put before all of it, and behind half of a line's end. */
  #start(text) {
    if (text === "") return 0;
    let from = 0;
    if (!this.#started && text[0] === "\ufeff") from = 1;
    if (this.#returned && text[0] === "\n") from = 1;
    this.#started = true;
    this.#returned = false;
    return from;
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

/** The end of a line. */
const LINE_END = /\r\n|\r|\n/g;

/** How long to wait before the attempt with this number, from 1: doubling from a second to the cap, with some chance. */
export function backoffMs(attempt, chance, mostMs = 15_000) {
  const base = Math.min(mostMs, 1000 * 2 ** Math.min(attempt - 1, 10));
  return Math.round(base * (0.75 + chance * 0.25));
}
