// Text to UTF-8 and back. The engine has no TextEncoder and no TextDecoder; what it has natively are the
// escapes of addresses, which are UTF-8 inside, and base64. A loop in JavaScript takes ten times as long.

/** Lone surrogates become U+FFFD. */
export function encode(text) {
  return Uint8Array.fromBase64(btoa(unescape(encodeURIComponent(text.toWellFormed()))));
}

/** Throws a TypeError where `bytes` are no UTF-8. */
export function decode(bytes) {
  try {
    return decodeURIComponent(escape(atob(bytes.toBase64())));
  } catch {
    throw new TypeError(`these ${bytes.length} bytes are no UTF-8`);
  }
}
