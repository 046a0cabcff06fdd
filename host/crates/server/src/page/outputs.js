// Typed results of code as what can be shown: pictures whose bytes are what they say, a window of a table, JSON level by
// level. Pure: it draws nothing.
//
// The code is nobody's that one trusts, so each size is bounded here although the server bounds it, too.

/** The bytes that every PNG begins with. */
const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

/** Most pixels of a picture that is shown: a small file can hold more than a browser has memory for. */
export const PIXELS_MAX = 40_000_000;

/** Longest SVG that is shown, in characters. */
export const SVG_CHARS_MAX = 4_000_000;

/** Rows of a table that are shown at once. */
export const ROWS_SHOWN = 50;

/** Entries of a list or an object that are shown at once. */
export const ENTRIES_SHOWN = 200;

/** Longest text in a tree, in characters. */
const LEAF_CHARS_MAX = 2_000;

/** A PNG as `{address, width, height}`, or as `{fault}` when its bytes are none that the page shows. */
export function pngOf(base64) {
  if (typeof base64 !== "string" || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return { fault: "its bytes are no base64" };
  const head = bytesOf(base64.slice(0, 32));
  if (head.length < 24 || SIGNATURE.some((byte, at) => head[at] !== byte)) return { fault: "its bytes are no PNG" };
  const number = (at) => ((head[at] << 24) | (head[at + 1] << 16) | (head[at + 2] << 8) | head[at + 3]) >>> 0;
  const [width, height] = [number(16), number(20)];
  if (width === 0 || height === 0) return { fault: "it has no pixels" };
  if (width * height > PIXELS_MAX) return { fault: `it has ${width} × ${height} pixels, more than are shown` };
  return { address: `data:image/png;base64,${base64}`, width, height };
}

function bytesOf(base64) {
  try {
    return [...atob(base64)].map((sign) => sign.charCodeAt(0));
  } catch {
    return [];
  }
}

/** An SVG as `{address}` for an image, in which no script of it runs; or as `{fault}`. */
export function svgOf(text) {
  if (typeof text !== "string" || !text.includes("<svg")) return { fault: "its text is no SVG" };
  if (text.length > SVG_CHARS_MAX) return { fault: `it has ${text.length} characters, more than are shown` };
  return { address: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(wellFormed(text))}` };
}

/** Halves of a sign, which no address can hold, become the sign for what is unknown. */
const wellFormed = (text) =>
  text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");

/** A table as columns with names, of which those with numbers alone are told, and its first rows. */
export function tableOf({ columns, rows, rows_total: total }, shown = ROWS_SHOWN) {
  const isNumeric = (at) =>
    rows.some((row) => typeof row[at] === "number") &&
    rows.every((row) => row[at] === null || typeof row[at] === "number");
  return {
    columns: columns.map((name, at) => ({ name: String(name).trim() || `Column ${at + 1}`, numeric: isNumeric(at) })),
    rows: rows.slice(0, shown),
    kept: rows.length,
    total: Math.max(Number(total) || 0, rows.length),
  };
}

/** A cell as text. */
export const cellText = (value) => (value === null || value === undefined ? "null" : String(value));

/** A value of JSON is folded when it holds others. */
export const isBranch = (value) => typeof value === "object" && value !== null;

/** What a value holds, the first of it: `{entries: [[name, value]], rest}`. */
export function entriesOf(value, from = 0) {
  const all = Array.isArray(value) ? value.map((one, at) => [String(at), one]) : Object.entries(value);
  const entries = all.slice(from, from + ENTRIES_SHOWN);
  return { entries, rest: all.length - from - entries.length };
}

/** A value in a few words: what it is, or how much it holds. */
export function summaryOf(value) {
  if (Array.isArray(value)) return `list of ${value.length}`;
  if (isBranch(value)) return `object of ${Object.keys(value).length}`;
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length > LEAF_CHARS_MAX ? `${text.slice(0, LEAF_CHARS_MAX)}… (${text.length} characters)` : text;
}
