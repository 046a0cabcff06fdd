// Text to UTF-8 and back. The engine has no TextEncoder and no TextDecoder of its own.
//
// Only UTF-8. Lone surrogates become U+FFFD, and so does what cannot be decoded.

const CHUNK_BYTES = 8_192;

// Taken before any source runs. The escapes of addresses are UTF-8 inside, and native.
const { decodeURIComponent, encodeURIComponent, escape, unescape } = globalThis;

/** How many bytes `text` takes. */
export function byteLength(text) {
  return unescape(encodeURIComponent(text.toWellFormed())).length;
}

/** The longest start of `text` that takes at most `bytesMax` bytes and ends between characters. */
export function cut(text, bytesMax) {
  let bytes = 0;
  let at = 0;
  while (at < text.length) {
    const unit = text.charCodeAt(at);
    const isWide = unit >= 0x800 && isPair(text, at);
    bytes += unit < 0x80 ? 1 : unit < 0x800 ? 2 : isWide ? 4 : 3;
    if (bytes > bytesMax) break;
    at += isWide ? 2 : 1;
  }
  return text.slice(0, at);
}

export function encode(text) {
  const binary = unescape(encodeURIComponent(text.toWellFormed()));
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** Throws a TypeError for the first byte that is no UTF-8 when `fatal`. */
export function decode(bytes, fatal = false) {
  let binary = "";
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK_BYTES));
  }
  try {
    return decodeURIComponent(escape(binary));
  } catch {
    return decodeBroken(bytes, fatal);
  }
}

function decodeBroken(bytes, fatal) {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const [point, length] = pointAt(bytes, at);
    if (point === undefined && fatal) throw new TypeError("The encoded data was not valid for encoding utf-8");
    text += String.fromCodePoint(point ?? 0xfffd);
    at += length;
  }
  return text;
}

/** The code point at `at`, or none and the length of what is broken. */
function pointAt(bytes, at) {
  const first = bytes[at];
  if (first < 0x80) return [first, 1];
  const extra = first >= 0xc2 && first < 0xe0 ? 1 : first >= 0xe0 && first < 0xf0 ? 2 : first >= 0xf0 && first < 0xf5 ? 3 : 0;
  if (extra === 0) return [undefined, 1];
  // The second byte has bounds of its own: no overlong forms, no surrogates, nothing past U+10FFFF.
  const low = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
  const high = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
  let point = first & (0x3f >> extra);
  for (let next = 1; next <= extra; next += 1) {
    const byte = bytes[at + next];
    const isGood = byte !== undefined && byte >= (next === 1 ? low : 0x80) && byte <= (next === 1 ? high : 0xbf);
    if (!isGood) return [undefined, next];
    point = (point << 6) | (byte & 0x3f);
  }
  return [point, extra + 1];
}

function isPair(text, at) {
  const unit = text.charCodeAt(at);
  const next = text.charCodeAt(at + 1);
  return unit >= 0xd800 && unit < 0xdc00 && next >= 0xdc00 && next < 0xe000;
}

/** `TextEncoder`, as browsers have it. */
export class TextEncoder {
  get encoding() {
    return "utf-8";
  }

  encode(text = "") {
    return encode(String(text));
  }

  /** As much of the text as the bytes take, between characters. */
  encodeInto(text, bytes) {
    const start = cut(String(text), bytes.length);
    const encoded = encode(start);
    bytes.set(encoded);
    return { read: start.length, written: encoded.length };
  }
}

/** `TextDecoder` for UTF-8, without streaming. */
export class TextDecoder {
  #fatal;

  constructor(label = "utf-8", { fatal = false } = {}) {
    if (!/^utf-?8$/i.test(label)) throw new RangeError(`The "${label}" encoding is not supported`);
    this.#fatal = fatal;
  }

  get encoding() {
    return "utf-8";
  }

  decode(input = new Uint8Array()) {
    return decode(bytesOf(input), this.#fatal).replace(/^\ufeff/, "");
  }
}

/** The bytes of an ArrayBuffer or of any view of one. */
export function bytesOf(data) {
  return data instanceof ArrayBuffer ? new Uint8Array(data) : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
