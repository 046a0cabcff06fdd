// `Buffer`: bytes that are a text where one is asked for, as scripts know them from Node.
//
// The encodings utf8, hex, base64, base64url, latin1 and ascii; no streams and no pools.

import { inspectable } from "./inspect.js";
import { bytesOf, decode, encode } from "./utf8.js";

const SHOWN_BYTES_MAX = 50;

export class Buffer extends Uint8Array {
  static from(data, encodingOrOffset, length) {
    if (typeof data === "string") return toBuffer(data, encodingOrOffset);
    if (data instanceof ArrayBuffer) return new Buffer(data, encodingOrOffset, length);
    if (ArrayBuffer.isView(data)) return toBuffer(data).slice();
    if (data?.type === "Buffer" && Array.isArray(data.data)) data = data.data;
    const items = Array.from(data);
    const made = new Buffer(items.length);
    made.set(items.map((item) => item & 0xff));
    return made;
  }

  static alloc(size, fill = 0, encoding) {
    return new Buffer(size).fill(fill, 0, size, encoding);
  }

  static allocUnsafe(size) {
    return new Buffer(size);
  }

  static isBuffer(value) {
    return value instanceof Buffer;
  }

  static isEncoding(name) {
    return encodingOf(name, false) !== undefined;
  }

  static byteLength(data, encoding) {
    return typeof data === "string" ? toBuffer(data, encoding).length : data.byteLength;
  }

  static concat(list, total = list.reduce((sum, { length }) => sum + length, 0)) {
    const whole = new Buffer(total);
    let at = 0;
    for (const part of list) {
      const room = part.subarray(0, Math.max(total - at, 0));
      whole.set(room, at);
      at += room.length;
    }
    return whole;
  }

  static compare(one, other) {
    return toBuffer(one).compare(other);
  }

  toString(encoding, start = 0, end = this.length) {
    return READERS[encodingOf(encoding)](this.subarray(start, end));
  }

  toJSON() {
    return { type: "Buffer", data: Array.from(this) };
  }

  equals(other) {
    return this.compare(other) === 0;
  }

  compare(other) {
    const both = Math.min(this.length, other.length);
    for (let at = 0; at < both; at += 1) {
      if (this[at] !== other[at]) return this[at] < other[at] ? -1 : 1;
    }
    return Math.sign(this.length - other.length);
  }

  write(text, offset = 0, length, encoding) {
    if (typeof offset === "string") [offset, encoding] = [0, offset];
    if (typeof length === "string") [length, encoding] = [undefined, length];
    const room = Math.min(this.length - offset, length ?? Infinity);
    const bytes = toBuffer(text, encoding).subarray(0, room);
    this.set(bytes, offset);
    return bytes.length;
  }

  fill(value, start, end, encoding) {
    if (typeof value === "number") return super.fill(value & 0xff, start, end);
    const bytes = typeof value === "string" ? toBuffer(value, encoding) : bytesOf(value);
    for (let at = start ?? 0; at < (end ?? this.length); at += 1) this[at] = bytes[(at - (start ?? 0)) % bytes.length] ?? 0;
    return this;
  }

  copy(target, to = 0, start = 0, end = this.length) {
    const part = this.subarray(start, Math.min(end, start + target.length - to));
    target.set(part, to);
    return part.length;
  }

  indexOf(value, from = 0, encoding) {
    if (typeof value === "number") return super.indexOf(value & 0xff, from);
    const wanted = typeof value === "string" ? toBuffer(value, encoding) : value;
    for (let at = from; at + wanted.length <= this.length; at += 1) {
      if (wanted.every((byte, offset) => this[at + offset] === byte)) return at;
    }
    return -1;
  }

  includes(value, from, encoding) {
    return this.indexOf(value, from, encoding) >= 0;
  }

  /** A view, as in Node; a `Uint8Array` would copy. */
  slice(start, end) {
    return this.subarray(start, end);
  }
}

for (const [name, bytes] of [["UInt8", 1], ["Int8", 1], ["UInt16", 2], ["Int16", 2], ["UInt32", 4], ["Int32", 4], ["Float", 4], ["Double", 8], ["BigUInt64", 8], ["BigInt64", 8]]) {
  const method = name === "Float" ? "Float32" : name === "Double" ? "Float64" : name.replace("UInt", "Uint");
  for (const end of bytes === 1 ? [""] : ["LE", "BE"]) {
    const view = (buffer) => new DataView(buffer.buffer, buffer.byteOffset, buffer.length);
    addMethod(`read${name}${end}`, function (offset = 0) {
      return view(this)[`get${method}`](offset, end === "LE");
    });
    addMethod(`write${name}${end}`, function (value, offset = 0) {
      view(this)[`set${method}`](offset, value, end === "LE");
      return offset + bytes;
    });
  }
}

inspectable(Buffer.prototype, (buffer) => {
  const bytes = Array.from(buffer.subarray(0, SHOWN_BYTES_MAX), (byte) => byte.toString(16).padStart(2, "0"));
  const more = buffer.length - bytes.length;
  const rest = more > 0 ? ` ... ${more} more byte${more > 1 ? "s" : ""}` : "";
  return `<Buffer${bytes.length > 0 ? " " : ""}${bytes.join(" ")}${rest}>`;
});

/** A buffer of a text in an encoding, or on the very bytes of a view. */
export function toBuffer(data, encoding) {
  if (typeof data === "string") return on(WRITERS[encodingOf(encoding)](data));
  return on(bytesOf(data));
}

function on({ buffer, byteOffset, length }) {
  return new Buffer(buffer, byteOffset, length);
}

function addMethod(name, value) {
  Object.defineProperty(Buffer.prototype, name, { value, writable: true, configurable: true });
  const other = name.replace("UInt", "Uint");
  if (other !== name) Object.defineProperty(Buffer.prototype, other, { value, writable: true, configurable: true });
}

const READERS = {
  utf8: (bytes) => decode(bytes),
  hex: (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(""),
  base64: (bytes) => btoa(binary(bytes)),
  base64url: (bytes) => btoa(binary(bytes)).replace(/=+$/, "").replaceAll("+", "-").replaceAll("/", "_"),
  latin1: binary,
  ascii: (bytes) => binary(bytes.map((byte) => byte & 0x7f)),
};

const WRITERS = {
  utf8: encode,
  hex: (text) => Uint8Array.from(/^(?:[0-9a-f]{2})*/i.exec(text)[0].match(/../g) ?? [], (pair) => Number.parseInt(pair, 16)),
  base64: fromBase64,
  base64url: fromBase64,
  latin1: fromBinary,
  ascii: fromBinary,
};

function encodingOf(name = "utf8", isNeeded = true) {
  const plain = String(name).toLowerCase().replace("utf-8", "utf8").replace("binary", "latin1");
  if (Object.hasOwn(READERS, plain)) return plain;
  if (!isNeeded) return undefined;
  throw Object.assign(new TypeError(`Unknown encoding: ${name}`), { code: "ERR_UNKNOWN_ENCODING" });
}

function binary(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8_192) text += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  return text;
}

function fromBinary(text) {
  return Uint8Array.from(text, (char) => char.charCodeAt(0) & 0xff);
}

/** Of either alphabet; what is not in it is passed over, as Node does. */
function fromBase64(text) {
  const plain = text.replaceAll("-", "+").replaceAll("_", "/").replace(/=.*$/s, "").replace(/[^A-Za-z0-9+/]/g, "");
  return fromBinary(atob(plain.length % 4 === 1 ? plain.slice(0, -1) : plain));
}
