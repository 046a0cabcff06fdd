// Figures over time as small plots, drawn as SVG. The scales are pure and tested; only `plot` makes elements.
//
// A plot never stands alone: it has a name, its newest, lowest and highest value in words, and a gap where nothing was
// measured. It draws at most as many points as there are pixels to see them in.

import { h, s } from "./dom.js";
import { clock } from "./format.js";

const SIZE = { width: 400, height: 128, left: 54, right: 8, top: 8, bottom: 20 };

/** Most points of one line. */
export const POINTS_MAX = 280;

/** The steps of an axis: round numbers, 3 to 5 of them, from 0 to at least the highest. */
export function ticks(highest, base = 10) {
  if (!(highest > 0)) return [0, 1];
  const rough = highest / 4;
  const power = base ** Math.floor(Math.log(rough) / Math.log(base));
  const steps = base === 10 ? [1, 2, 2.5, 5, 10] : [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
  const step = power * (steps.find((one) => one * power >= rough * 0.999) ?? base);
  const all = [0];
  while (all.at(-1) < highest * 0.999) all.push(all.length * step);
  return all;
}

/** At most `most` points: of each stretch the lowest and the highest stay, so that no peak is lost. */
export function thinned(points, most = POINTS_MAX) {
  if (points.length <= most) return points;
  const stretches = Math.floor(most / 2);
  const kept = [];
  for (let index = 0; index < stretches; index += 1) {
    const own = points.slice(
      Math.floor((index * points.length) / stretches),
      Math.floor(((index + 1) * points.length) / stretches),
    );
    let [low, high] = [own[0], own[0]];
    for (const point of own) {
      if (point[1] < low[1]) low = point;
      if (point[1] > high[1]) high = point;
    }
    if (low === high) kept.push(low);
    else kept.push(...(low[0] < high[0] ? [low, high] : [high, low]));
  }
  return kept;
}

/** Points as lines: broken where the next point is further away than a measurement can be. */
export function paths(points, x, y, gapMs) {
  const parts = [];
  let before = null;
  for (const [at, value] of points) {
    const isGap = before === null || at - before > gapMs;
    parts.push(`${isGap ? "M" : "L"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`);
    before = at;
  }
  return parts.join("");
}

/** How far apart measurements may be before it is a gap: three times the usual distance. */
export function gapOf(points) {
  if (points.length < 3) return Infinity;
  const gaps = points
    .slice(1)
    .map((point, index) => point[0] - points[index][0])
    .sort((a, b) => a - b);
  return Math.max(1, gaps[Math.floor(gaps.length / 2)] * 3);
}

/**
 * One plot. `lines`: `[{name, points: [[ms, value]]}]`; `words(value)` says a value; `cap` is a limit that is drawn.
 */
export function plot(title, lines, { words, cap = null, base = 10 }) {
  const shown = lines
    .map((line) => ({
      ...line,
      points: line.points.filter(([at, value]) => Number.isFinite(at) && Number.isFinite(value)),
    }))
    .filter((line) => line.points.length > 0);
  const all = shown.flatMap((line) => line.points);
  const figure = h(
    "figure",
    { class: "plot" },
    h(
      "figcaption",
      null,
      h("span", { class: "plot-title" }, title),
      h(
        "span",
        { class: "plot-now" },
        shown.map((line, index) =>
          h(
            "span",
            { class: `key key-${index}` },
            line.name && `${line.name} `,
            h("b", null, words(line.points.at(-1)[1])),
          ),
        ),
      ),
    ),
  );
  if (all.length === 0)
    return h(
      "figure",
      { class: "plot" },
      h("figcaption", null, h("span", { class: "plot-title" }, title)),
      h("p", { class: "muted" }, "Nothing measured yet."),
    );
  const [from, to] = [Math.min(...all.map((point) => point[0])), Math.max(...all.map((point) => point[0]))];
  const steps = ticks(Math.max(cap ?? 0, ...all.map((point) => point[1])), base);
  const top = steps.at(-1);
  const x = (at) => SIZE.left + ((at - from) / Math.max(1, to - from)) * (SIZE.width - SIZE.left - SIZE.right);
  const y = (value) => SIZE.height - SIZE.bottom - (Math.max(0, value) / top) * (SIZE.height - SIZE.top - SIZE.bottom);
  const said = shown
    .map((line) => {
      const values = line.points.map((point) => point[1]);
      return `${line.name || title}: now ${words(values.at(-1))}, lowest ${words(Math.min(...values))}, highest ${words(Math.max(...values))}`;
    })
    .join("; ");
  figure.append(
    s(
      "svg",
      {
        class: "plot-box",
        viewBox: `0 0 ${SIZE.width} ${SIZE.height}`,
        role: "img",
        "aria-label": `${said}. From ${clock(from)} to ${clock(to)}.`,
      },
      steps.map((value) =>
        s(
          "g",
          { class: "plot-step" },
          s("line", { x1: SIZE.left, x2: SIZE.width - SIZE.right, y1: y(value), y2: y(value) }),
          s("text", { x: SIZE.left - 6, y: y(value) + 3.5, "text-anchor": "end" }, words(value)),
        ),
      ),
      s("text", { class: "plot-time", x: SIZE.left, y: SIZE.height - 5 }, clock(from)),
      s(
        "text",
        { class: "plot-time", x: SIZE.width - SIZE.right, y: SIZE.height - 5, "text-anchor": "end" },
        clock(to),
      ),
      cap !== null &&
        s("line", { class: "plot-cap", x1: SIZE.left, x2: SIZE.width - SIZE.right, y1: y(cap), y2: y(cap) }),
      shown.map((line, index) =>
        s("path", { class: `plot-line key-${index}`, d: paths(thinned(line.points), x, y, gapOf(line.points)) }),
      ),
    ),
  );
  return figure;
}
