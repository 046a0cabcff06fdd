// Text to UTF-8 and back: the engine has no TextEncoder and no TextDecoder. Lone surrogates become
// U+FFFD, and so does what cannot be decoded.

export function encode(text) {
  const bytes = new Uint8Array(text.length * 3);
  let to = 0;
  for (let at = 0; at < text.length; at += 1) {
    let point = text.codePointAt(at);
    if (point > 0xffff) at += 1;
    else if (point >= 0xd800 && point < 0xe000) point = 0xfffd;
    if (point < 0x80) {
      bytes[to++] = point;
      continue;
    }
    const extra = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    bytes[to++] = ((0xf00 >> (extra + 1)) & 0xff) | (point >> (6 * extra));
    for (let left = extra - 1; left >= 0; left -= 1) bytes[to++] = 0x80 | ((point >> (6 * left)) & 0x3f);
  }
  return bytes.slice(0, to);
}

export function decode(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const [point, length] = pointAt(bytes, at);
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
