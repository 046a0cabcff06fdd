// Numbers, times and texts as people read them. Pure: knows no document and reads no clock but the one it is given.
//
// Nothing here guesses: what is absent is a dash, and what was cut says so.

export const NONE = "–";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** How long ago, or in how long: `3 min ago`, `in 2 h`. */
export function ago(atMs, nowMs) {
  if (!isNumber(atMs)) return NONE;
  const gap = nowMs - atMs;
  const size = Math.abs(gap);
  if (size < 5_000) return "now";
  const words = rough(size);
  return gap > 0 ? `${words} ago` : `in ${words}`;
}

function rough(ms) {
  if (ms < MINUTE) return `${Math.floor(ms / 1000)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} days`;
}

/** A length of time: `350 ms`, `4.2 s`, `3 min 05 s`, `2 h 10 min`, `3 d 04 h`. */
export function duration(ms) {
  if (!isNumber(ms) || ms < 0) return NONE;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return pair(seconds, 60, "min", "s");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 24 * 60) return pair(minutes, 60, "h", "min");
  const hours = Math.floor(minutes / 60);
  return pair(hours, 24, "d", "h");
}

function pair(all, size, large, small) {
  const rest = all % size;
  return `${Math.floor(all / size)} ${large}${rest === 0 ? "" : ` ${String(rest).padStart(2, "0")} ${small}`}`;
}

/** Time of day, with seconds, in the zone of the reader. */
export function clock(ms) {
  if (!isNumber(ms)) return NONE;
  const date = new Date(ms);
  const two = (number) => String(number).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** Day and time, in the zone of the reader: `2026-11-23 02:15`. */
export function moment(ms) {
  if (!isNumber(ms)) return NONE;
  const date = new Date(ms);
  const two = (number) => String(number).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** Day and time with seconds, in the zone of the reader. */
export const instant = (ms) => (isNumber(ms) ? `${moment(ms).slice(0, 10)} ${clock(ms)}` : NONE);

/** Day and time for machines and tooltips. */
export function exact(ms) {
  return isNumber(ms) ? new Date(ms).toISOString() : "";
}

/** Bytes in binary units. */
export function bytes(count) {
  if (!isNumber(count)) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [value, unit] = [count, 0];
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || Math.abs(value) >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** A count, grouped: `12 480`, with a space that does not break. */
export function count(value) {
  if (!isNumber(value)) return NONE;
  return String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** A count in short: `840`, `12.4k`, `3.1M`. */
export function short(value) {
  if (!isNumber(value)) return NONE;
  const steps = [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ];
  for (const [size, letter] of steps) {
    if (Math.abs(value) >= size) {
      const scaled = value / size;
      return `${Math.abs(scaled) >= 100 ? Math.round(scaled) : scaled.toFixed(1)}${letter}`;
    }
  }
  return String(Math.round(value));
}

/** Millionths of a US dollar. Small sums keep the digits that matter. */
export function money(microdollars) {
  if (!isNumber(microdollars)) return NONE;
  const dollars = microdollars / 1e6;
  if (microdollars === 0) return "$0.00";
  if (Math.abs(dollars) < 0.01) return `$${dollars.toFixed(4)}`;
  return `$${dollars.toFixed(2)}`;
}

/** What models were paid; the price of a part may not be known. */
export function cost(usage) {
  if (!usage || usage.cost_microdollars === undefined) return NONE;
  if (usage.cost_microdollars !== null) return money(usage.cost_microdollars);
  return usage.cost_microdollars_min > 0 ? `at least ${money(usage.cost_microdollars_min)}` : "unknown";
}

/** The same as a note beside others: nothing where nothing was paid. */
export function costNote(usage) {
  if (!usage || usage.cost_microdollars === undefined || usage.cost_microdollars === 0) return "";
  const said = cost(usage);
  return said === "unknown" ? "cost unknown" : said;
}

/** A part of a whole, 0 to 100. */
export function percent(part, whole) {
  return whole > 0 ? Math.round((100 * part) / whole) : 0;
}

/** `1 run`, `2 runs`. */
export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** A status or a kind in words: `not_started` is `not started`. */
export function words(name) {
  return String(name ?? "")
    .replaceAll("_", " ")
    .replaceAll("-", " ");
}

/** The name of an error and what follows, as most languages print it. */
const NAMED_ERROR = /\b[A-Z]\w*(?:Error|Exception|Warning|Exit): (?!.*\b[A-Z]\w*(?:Error|Exception|Warning|Exit): ).*$/;

/** The last line of a text that says something; of a trace that was put on one line, the error at its end. */
export function lastLine(text) {
  const lines = String(text ?? "").split("\n");
  const last = lines.findLast((line) => line.trim() !== "")?.trim() ?? "";
  return last.includes("Traceback (most recent call last)") ? (NAMED_ERROR.exec(last)?.[0] ?? last) : last;
}

/** The reason of a status, in the words of the page. */
export function reason(text) {
  return String(text ?? "").replace(/^judged to pass/, "all checks passed");
}

/** The beginning of a text, and a sign that there is more. */
export function cut(text, charsMax) {
  const value = String(text ?? "");
  const chars = [...value.slice(0, charsMax * 2 + 2)];
  if (chars.length <= charsMax && value.length <= charsMax * 2 + 2) return value;
  return `${chars.slice(0, charsMax).join("")}…`;
}

/** One line of a text of many. */
export function oneLine(text, charsMax = 200) {
  return cut(
    String(text ?? "")
      .replace(/\s+/g, " ")
      .trim(),
    charsMax,
  );
}

/** JSON set out over lines; what is no JSON stays as it is. */
export function pretty(value) {
  if (typeof value !== "string") return JSON.stringify(value, null, 2) ?? "";
  const start = value.trimStart()[0];
  if (start !== "{" && start !== "[" && start !== '"') return value;
  try {
    const read = JSON.parse(value);
    return typeof read === "string" ? read : JSON.stringify(read, null, 2);
  } catch {
    return value;
  }
}

/** Names under which a model puts what it says, where it says nothing else. */
const ONLY = new Set(["answer", "text", "content", "message", "output", "result", "summary"]);

/** How deep JSON is set out as lines; what is deeper stays JSON. */
const DEPTH_MAX = 6;

/** What somebody said as text: JSON becomes lines of names and values, other texts stay as they are. */
export function asText(value) {
  if (typeof value !== "string") return said(value, 0);
  const start = value.trimStart()[0];
  if (start !== "{" && start !== "[" && start !== '"') return value;
  try {
    return said(JSON.parse(value), 0);
  } catch {
    // It was cut off, or only looks like JSON.
    return value;
  }
}

function said(value, depth) {
  if (value === null || value === undefined) return depth === 0 ? "" : NONE;
  if (typeof value !== "object") return String(value);
  if (depth > DEPTH_MAX) return JSON.stringify(value);
  if (Array.isArray(value)) return value.map((one) => `- ${indented(said(one, depth + 1), "  ")}`).join("\n");
  const entries = Object.entries(value);
  if (depth === 0 && entries.length === 1 && ONLY.has(entries[0][0])) return said(entries[0][1], 0);
  return entries.map(([name, one]) => pairOf(name, one, depth)).join("\n");
}

function pairOf(name, value, depth) {
  const text = said(value, depth + 1);
  const isBlock = text.includes("\n") || (typeof value === "object" && value !== null);
  return isBlock && text !== "" ? `${name}:\n  ${indented(text, "  ")}` : `${name}: ${text}`;
}

const indented = (text, by) => text.replaceAll("\n", `\n${by}`);

/** A text in which controls, and signs that turn the direction of writing around, are seen. */
export function visible(text) {
  return String(text ?? "").replace(
    /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u0080-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
    (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`,
  );
}
