// Output that comes in parts while something runs, held to its end. Pure: it draws and asks nothing.

/** Characters of each stream that are kept while it comes. */
export const LIVE_CHARS_MAX = 20_000;

/** Adds a part of a stream to an entry, `{stdout, stderr, isCut}`. */
export function print(entry, { stream, text = "" }) {
  const name = stream === "stderr" ? "stderr" : "stdout";
  const whole = entry[name] + text;
  entry[name] = whole.length > LIVE_CHARS_MAX ? whole.slice(-LIVE_CHARS_MAX) : whole;
  if (whole.length > LIVE_CHARS_MAX) entry.isCut = true;
}
