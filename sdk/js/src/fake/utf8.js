// Outside a component the platform does it.

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export const encode = (text) => encoder.encode(text);
export const decode = (bytes) => decoder.decode(bytes);
