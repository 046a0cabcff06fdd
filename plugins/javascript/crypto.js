// `crypto` of browsers, as far as randomness and digests go, and `require("crypto")` with hashes and HMAC.
//
// No keys, no ciphers and no signatures: those belong on the host's side.

import { toBuffer } from "./buffer.js";
import { blockBytes, DIGESTS } from "./digest.js";
import { bytesOf, encode } from "./utf8.js";

/** What `getRandomValues` fills at once, by the standard. */
const RANDOM_BYTES_MAX = 65_536;

/** `crypto`; `randomBytes` gives bytes, and `promise` runs an action as a promise does. */
export function makeCrypto(randomBytes, promise) {
  return {
    getRandomValues(array) {
      if (!ArrayBuffer.isView(array) || /^(Float|DataView)/.test(array[Symbol.toStringTag] ?? "DataView")) {
        throw new DOMException("The data argument must be an integer-type TypedArray", "TypeMismatchError");
      }
      if (array.byteLength > RANDOM_BYTES_MAX) {
        const text = `The requested length exceeds ${RANDOM_BYTES_MAX} bytes`;
        throw new DOMException(text, "QuotaExceededError");
      }
      bytesOf(array).set(randomBytes(array.byteLength));
      return array;
    },
    randomUUID() {
      const bytes = randomBytes(16);
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
      return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
    },
    subtle: {
      digest: (algorithm, data) =>
        promise(() => {
          const name = String(algorithm?.name ?? algorithm);
          const digest = /^SHA-(1|256|384|512)$/i.test(name) ? DIGESTS[keyOf(name)] : undefined;
          if (digest === undefined) throw new DOMException("Unrecognized algorithm name", "NotSupportedError");
          return digest(bytesOf(data)).slice().buffer;
        }),
    },
  };
}

/** `require("crypto")`. */
export function makeNodeCrypto(crypto, randomBytes) {
  const hashOf = (name) => {
    const digest = DIGESTS[keyOf(name)];
    if (digest === undefined) throw new Error(`Digest method not supported: ${name}; there are: ${Object.keys(DIGESTS).join(", ")}`);
    return digest;
  };
  return {
    webcrypto: crypto,
    subtle: crypto.subtle,
    randomUUID: crypto.randomUUID,
    getRandomValues: crypto.getRandomValues,
    randomBytes: (count) => toBuffer(randomBytes(count)),
    randomInt(min, max) {
      if (max === undefined) [min, max] = [0, min];
      const [high, low] = new Uint32Array(randomBytes(8).slice().buffer);
      return min + Math.floor(((high * 2 ** 21 + (low >>> 11)) / 2 ** 53) * (max - min));
    },
    createHash: (name) => new Hash(hashOf(name)),
    createHmac: (name, key) => new Hash(hmac(hashOf(name), blockBytes(keyOf(name)), inBytes(key))),
    getHashes: () => Object.keys(DIGESTS),
    timingSafeEqual: (one, other) => {
      const [left, right] = [bytesOf(one), bytesOf(other)];
      if (left.length !== right.length) throw new RangeError("Input buffers must have the same byte length");
      return left.reduce((found, byte, at) => found | (byte ^ right[at]), 0) === 0;
    },
  };
}

class Hash {
  #digest;
  #parts = [];

  constructor(digest) {
    this.#digest = digest;
  }

  update(data, encoding) {
    if (this.#parts === undefined) throw new Error("Digest already called");
    this.#parts.push(inBytes(data, encoding));
    return this;
  }

  digest(encoding) {
    if (this.#parts === undefined) throw new Error("Digest already called");
    const bytes = toBuffer(this.#digest(joined(this.#parts)));
    this.#parts = undefined;
    return encoding === undefined ? bytes : bytes.toString(encoding);
  }
}

function hmac(digest, block, key) {
  const short = new Uint8Array(block);
  short.set(key.length > block ? digest(key) : key);
  const pad = (byte) => short.map((one) => one ^ byte);
  return (bytes) => digest(joined([pad(0x5c), digest(joined([pad(0x36), bytes]))]));
}

function joined(parts) {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function inBytes(data, encoding) {
  if (typeof data !== "string") return bytesOf(data);
  return encoding === undefined || /^utf-?8$/i.test(encoding) ? encode(data) : toBuffer(data, encoding);
}

/** `sha256` of `SHA-256`. */
function keyOf(name) {
  return String(name).toLowerCase().replace("-", "");
}
