// A value as one text for the log and for errors: what is no text as JSON.

const CHARS_MAX = 4_000;

export function show(value) {
  if (typeof value === "string") return value;
  if (value instanceof Error) return `${describe(value)}\n${value.stack ?? ""}`.trimEnd();
  try {
    return cut(JSON.stringify(value) ?? String(value), CHARS_MAX);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

/** The name and the message of whatever was thrown. */
export function describe(error) {
  if (error instanceof Error) return error.message === "" ? error.name : `${error.name}: ${error.message}`;
  return show(error);
}

/** The number of characters of `text`: Unicode scalar values, and not the engine's units. */
export function characters(text) {
  // Far quicker than to take the text apart, of which a megabyte is 2 s here.
  return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
}

/** At most `charsMax` characters of `text`, with a note of what is missing. */
export function cut(text, charsMax) {
  // A text has no more characters than units, so most need no counting.
  if (text.length <= charsMax) return text;
  const chars = Array.from(text);
  if (chars.length <= charsMax) return text;
  return `${chars.slice(0, charsMax).join("")}… (${chars.length - charsMax} more characters)`;
}
