// Text to UTF-8 and back: the engine has no TextEncoder and no TextDecoder. What it has natively are the
// escapes of addresses, which are UTF-8 inside; a loop in JavaScript would take 2 s for a megabyte.

const CHUNK_BYTES = 8_192;

/** Lone surrogates become U+FFFD. */
export function encode(text) {
  const binary = unescape(encodeURIComponent(text.toWellFormed()));
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** Throws a RangeError where `bytes` are no UTF-8. */
export function decode(bytes) {
  let binary = "";
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    binary += String.fromCharCode.apply(null, bytes.subarray(at, at + CHUNK_BYTES));
  }
  try {
    return decodeURIComponent(escape(binary));
  } catch {
    throw new RangeError(`these ${bytes.length} bytes are no UTF-8`);
  }
}
