// What the source prints: the first bytes of it are kept, the rest is dropped and noted.
//
// A stream takes them at once, so that they are seen however the source ends; otherwise they are the
// text of the answer.
//
// After the end of the run (`close`) nothing more is kept: a script that catches its own exit goes on
// unheard.

import { byteLength, bytesOf, cut, decode } from "./utf8.js";

export class Output {
  #left;
  #isClosed = false;
  text = "";
  truncated = false;

  #stream;

  constructor(bytesMax, stream) {
    this.#left = bytesMax;
    this.#stream = stream;
  }

  write(data) {
    if (this.#isClosed) return;
    let text = typeof data === "string" ? data : decode(bytesOf(data));
    // Cut first: no more than this many units can fit, and counting a huge text takes time.
    let isCut = text.length > this.#left;
    if (isCut) text = text.slice(0, this.#left);
    let bytes = byteLength(text);
    if (bytes > this.#left) {
      isCut = true;
      text = cut(text, this.#left);
      bytes = byteLength(text);
    }
    if (isCut) this.truncated = true;
    this.#left = isCut ? 0 : this.#left - bytes;
    if (this.#stream) this.#stream(text.toWellFormed());
    else this.text += text.toWellFormed();
  }

  /** Whether there is no use in writing more. */
  get isFull() {
    return this.#isClosed || (this.#left === 0 && this.truncated);
  }

  close() {
    this.#isClosed = true;
  }
}
