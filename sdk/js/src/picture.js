// Pictures as tools hand them over: data URLs. What is none of the four kinds that a message may hold, or is not whole,
// stays the text that it was.

const PICTURE = /^data:(image\/(?:png|jpeg|webp|gif));base64,/;
const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** An answer without the bytes of the picture that it has in `data_url`, and the picture. */
export function withoutPicture(output) {
  const found = typeof output?.data_url === "string" ? PICTURE.exec(output.data_url) : null;
  const data = found === null ? undefined : decode(output.data_url.slice(found[0].length));
  if (data === undefined) return { output, pictures: [] };
  const words = `[image ${found[1]}, ${data.length} bytes]`;
  return { output: { ...output, data_url: words }, pictures: [{ mediaType: found[1], data }] };
}

/** Base64 with its padding; nothing where it is something else. A pattern would need a stack as long as the text. */
function decode(text) {
  const values = new Int8Array(128).fill(-1);
  for (let at = 0; at < DIGITS.length; at += 1) values[DIGITS.charCodeAt(at)] = at;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  if (text.length % 4 !== 0) return undefined;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  let [bits, held, filled] = [0, 0, 0];
  for (let at = 0; at < text.length - padding; at += 1) {
    const value = values[text.charCodeAt(at)] ?? -1;
    if (value < 0) return undefined;
    bits = ((bits << 6) | value) & 0xffffff;
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes[filled] = (bits >> held) & 0xff;
      filled += 1;
    }
  }
  return bytes;
}
