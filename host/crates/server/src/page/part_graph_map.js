// The steps of a graph and what they need, drawn from left to right. Each is a link to its cell and says how it stands.
//
// Of a graph that is longer the first steps are drawn; the cells below are all there.

import { NODE, STEPS_MAX, curve, layout } from "./dag.js";
import { h, s } from "./dom.js";
import { cut } from "./format.js";
import { graphHref, lookOf, planOf, stateWords } from "./graphs.js";
import { icon } from "./icons.js";
import { signOf, toneOf } from "./ui.js";

/** Characters of a name and of a state that fit. */
const TITLE_CHARS = 20;
const NOTE_CHARS = 26;

/** Draws the steps of the graph `name`, of which `running` runs; nothing where no step needs another. */
export function graphMap(name, steps, running = null) {
  const known = new Set(steps.map((one) => one.id));
  if (!steps.some((one) => one.needs.some((id) => known.has(id)))) return null;
  const { nodes, edges, width, height } = layout(planOf(steps));
  const byId = new Map(steps.map((one) => [one.id, one]));
  const isFresh = (id) => byId.get(id).state === "fresh";
  const map = s(
    "svg",
    {
      class: "plan",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "group",
      "aria-label": "Steps and what they need",
    },
    edges.map(({ from, to, points }) =>
      s("path", { class: ["plan-edge", isFresh(from) && isFresh(to) && "is-done"], d: curve(points) }),
    ),
    nodes.map((node) => drawStep(name, byId.get(node.id), node, node.id === running)),
  );
  return [
    h("div", { class: "plan-box", tabindex: "0", role: "region", "aria-label": "Dependencies" }, map),
    steps.length > STEPS_MAX && h("p", { class: "hint" }, `The first ${STEPS_MAX} steps of ${steps.length}.`),
  ];
}

function drawStep(name, step, { x, y }, isRunning) {
  const look = isRunning ? "in_progress" : lookOf(step.state);
  const needs = step.needs.length > 0 ? `, needs ${step.needs.join(", ")}` : "";
  const title = cut(step.id, TITLE_CHARS);
  const note = cut(isRunning ? "running" : stateWords(step.state), NOTE_CHARS);
  const sign = icon(signOf(look), `tone-${toneOf(look)}`);
  sign.setAttribute("x", x + 12);
  sign.setAttribute("y", y + NODE.height / 2 - 8);
  sign.setAttribute("width", 16);
  sign.setAttribute("height", 16);
  return s(
    "a",
    {
      class: ["plan-step", `is-${look}`],
      href: graphHref(name, step.id),
      data: { focus: `map-${step.id}` },
      "aria-label": `${title} ${note}${needs}`,
    },
    s("rect", { x, y, width: NODE.width, height: NODE.height, rx: 6 }),
    sign,
    s("text", { class: "plan-title", x: x + 36, y: y + 20 }, title),
    " ",
    s("text", { class: "plan-note", x: x + 36, y: y + 36 }, note),
  );
}
