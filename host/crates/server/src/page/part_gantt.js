// The time axis of a run: who worked when, on what, and what was waited for, with retries and kills.
//
// It reads the newest events of a run, at most as many as a person can see, and says so where there are more. Each bar
// has a name for those who point at it, and a table below says the same in words.

import * as api from "./api.js";
import { fill, h, s } from "./dom.js";
import { clock, count, cut, duration, moment } from "./format.js";
import { KINDS, chart, timeTicks } from "./gantt.js";
import { live } from "./live.js";
import { eventHref } from "./part_timeline.js";
import { empty, fold, link, redraw, table } from "./ui.js";

/** Most events that are read, the newest ones. */
const EVENTS_MAX = 5_000;

/** Events of one request. */
const PAGE = 1_000;

/** Pixels of the drawing. */
const SIZE = { names: 190, width: 1_180, row: 24, bar: 14, head: 26 };

const DAY_MS = 86_400_000;

/** Characters of a name that fit beside the axis. */
const NAME_CHARS = 26;

/** Draws it, and keeps it true. */
export function timeAxis(ctx, place, run) {
  let now = run;
  fill(place);
  const shown = live(ctx, {
    place,
    everyMs: 15_000,
    wants: (line) => line.run === run.run,
    load: (signal) => newest(run.run, signal),
    draw: ({ lines, missing }) => redraw(place, drawn(now, chart(lines, Date.now(), now.active), missing)),
  });
  shown.catch(() => {});
  return (next) => {
    now = next;
  };
}

/** The newest events of a run, and how many there are before them. */
export async function newest(run, signal) {
  const { last } = await api.events(run, 0, 1, signal);
  let after = Math.max(0, last - EVENTS_MAX);
  const missing = after;
  const lines = [];
  while (after < last) {
    const page = await api.events(run, after, PAGE, signal);
    if (page.items.length === 0) break;
    lines.push(...page.items);
    if (page.next_after <= after) break;
    after = page.next_after;
  }
  return { lines, missing };
}

function drawn(run, axis, missing) {
  if (axis.rows.length === 0) return empty("Nothing has begun yet.");
  return h(
    "section",
    { class: "section", "aria-labelledby": "s-axis" },
    h("h2", { id: "s-axis" }, "Time axis"),
    h("p", { class: "hint" }, `From ${moment(axis.from)} to ${moment(axis.to)}, ${duration(axis.to - axis.from)}.`),
    legend(axis),
    h("div", { class: "axis-box", tabindex: "0", role: "region", "aria-label": "Bars by time" }, picture(run, axis)),
    missing > 0 && h("p", { class: "hint" }, `The first ${count(missing)} events are not drawn.`),
    axis.hidden > 0 && h("p", { class: "hint" }, `${count(axis.hidden)} further rows are not drawn.`),
    fold("The same as a table", () => asTable(run, axis), { name: "axis-table" }),
  );
}

function legend(axis) {
  const kinds = new Set(axis.rows.flatMap((row) => row.bars.map((bar) => bar.kind)));
  const marks = new Set(axis.marks.map((mark) => mark.kind));
  return h(
    "ul",
    { class: "axis-legend", "aria-label": "Signs" },
    Object.entries(KINDS)
      .filter(([kind]) => kinds.has(kind))
      .map(([kind, name]) => h("li", null, h("span", { class: `axis-key is-${kind}` }), name)),
    ["kill", "resume", "retry"]
      .filter((kind) => marks.has(kind))
      .map((kind) => h("li", null, h("span", { class: `axis-key mark-${kind}` }, MARKS[kind]), kind)),
  );
}

/** A sign beside the colour, for those who see no colours. */
const MARKS = { kill: "×", resume: "▸", retry: "↻" };

function picture(run, axis) {
  const { names, width, row, head } = SIZE;
  const height = head + axis.rows.length * row + 4;
  const span = Math.max(1, axis.to - axis.from);
  const x = (at) => names + ((Math.min(at, axis.to) - axis.from) / span) * (width - names - 12);
  return s(
    "svg",
    { class: "axis", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Steps of the run" },
    timeTicks(axis.from, axis.to).map((at) =>
      s(
        "g",
        { class: "axis-tick" },
        s("line", { x1: x(at), x2: x(at), y1: head - 6, y2: height }),
        s("text", { x: x(at) + 3, y: 14 }, tickText(at, span)),
      ),
    ),
    axis.rows.map((one, index) => drawRow(run, one, head + index * row, x)),
    axis.marks.map((mark) =>
      s(
        "a",
        { href: eventHref(run.run, mark.number), class: `axis-mark mark-${mark.kind}`, "aria-label": sayMark(mark) },
        s("title", null, sayMark(mark)),
        s("line", { x1: x(mark.at), x2: x(mark.at), y1: head - 6, y2: height }),
        s("text", { x: x(mark.at) - 4, y: head - 8 }, MARKS[mark.kind]),
      ),
    ),
  );
}

/** A long run has the day beside the time, a short one tenths of a second. */
function tickText(at, span) {
  if (span > 2 * DAY_MS) return moment(at).slice(5);
  return span < 8_000 ? `${clock(at)}.${Math.floor((at % 1000) / 100)}` : clock(at);
}

const sayMark = (mark) => `${mark.title}, ${clock(mark.at)}`;
const sayBar = (bar) => `${bar.title}, ${clock(bar.from)}, ${bar.open ? "not ended" : duration(bar.to - bar.from)}`;

function drawRow(run, row, y, x) {
  const { bar: height } = SIZE;
  return s(
    "g",
    { class: `axis-row depth-${row.depth}` },
    s(
      "text",
      { class: "axis-name", x: 6 + row.depth * 12, y: y + 15 },
      s("title", null, row.name),
      cut(row.name, NAME_CHARS),
    ),
    row.bars.map((bar) => {
      // The bars inside of a step stand on it, lower.
      const inset = bar.kind === "model" || bar.kind === "tool" ? 4 : 0;
      return s(
        "a",
        { href: eventHref(run.run, bar.number), class: "axis-link", "aria-label": sayBar(bar), tabindex: "-1" },
        s("title", null, sayBar(bar)),
        s("rect", {
          class: ["axis-bar", `is-${bar.kind}`, `tone-${bar.tone}`, bar.open && "is-open"],
          x: x(bar.from),
          y: y + 4 + inset,
          width: Math.max(2, x(bar.to) - x(bar.from)),
          height: height - 2 * inset,
          rx: 2,
        }),
      );
    }),
  );
}

/** Most rows of the table. */
const TABLE_MAX = 500;

function asTable(run, axis) {
  const bars = axis.rows.flatMap((row) => row.bars.map((bar) => ({ ...bar, row: row.name })));
  bars.sort((a, b) => a.from - b.from);
  return table(
    "Bars of the time axis",
    [
      { name: "What", cell: (bar) => link(eventHref(run.run, bar.number), bar.title) },
      { name: "Kind", cell: (bar) => KINDS[bar.kind] },
      { name: "Step", hide: "phone", cell: (bar) => bar.row },
      { name: "From", numeric: true, cell: (bar) => clock(bar.from) },
      { name: "Took", numeric: true, cell: (bar) => (bar.open ? "not ended" : duration(bar.to - bar.from)) },
    ],
    bars.slice(0, TABLE_MAX),
  );
}
