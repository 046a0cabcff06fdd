// The sections of a WebAssembly module or component: enough to change one and to copy the others.

/** The sections that are changed here. A component has those of a module in the modules that it holds. */
export const SECTION = { imports: 2, exports: 7, data: 11, coreModule: 1, component: 4 };

const MAGIC = 0x6d736100;

/** Copies a module or component with the sections that `rewrite` gives. */
export function rewriteSections(bytes, rewrite) {
  if (bytes.readUInt32LE(0) !== MAGIC) throw new Error("what the tool made is no WebAssembly");
  const parts = [bytes.subarray(0, 8)];
  for (let at = 8; at < bytes.length; ) {
    const id = bytes[at];
    const [size, start] = readNumber(bytes, at + 1);
    const body = rewrite(id, bytes.subarray(start, start + size));
    parts.push(Buffer.from([id]), encodeNumber(body.length), body);
    at = start + size;
  }
  return Buffer.concat(parts);
}

/** A number in LEB128, and where it ends. Addresses of images are positive, so signed ones read the same below 2^31. */
export function readNumber(bytes, at) {
  let number = 0;
  let scale = 1;
  for (;;) {
    const byte = bytes[at];
    if (byte === undefined) throw new Error("a section of the component ends early");
    at += 1;
    number += (byte & 0x7f) * scale;
    scale *= 128;
    if (byte < 0x80) return [number, at];
  }
}

export function encodeNumber(number) {
  const bytes = [];
  do {
    const low = number % 128;
    number = Math.floor(number / 128);
    bytes.push(number > 0 ? low | 0x80 : low);
  } while (number > 0);
  return Buffer.from(bytes);
}
