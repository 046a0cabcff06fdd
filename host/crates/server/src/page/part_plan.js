// The plan of a run: steps that wait for each other as a graph, those that wait for nothing as a list. Each step is a
// link to its feature and says how it stands.
//
// A plan too long to be read is left to the list of features, after its first steps.

import { fill, h, s } from "./dom.js";
import { NODE, STEPS_MAX, curve, layout } from "./dag.js";
import { cut, words } from "./format.js";
import { redraw, signOf, toneOf } from "./ui.js";
import { icon } from "./icons.js";

/** Characters of a title that fit. */
const TITLE_CHARS = 20;

/** Draws the plan of a run. */
export function drawPlan(place, run) {
  const steps = run.features.filter((one) => one.status !== "dropped");
  if (steps.length === 0) return void fill(place);
  const { bound, free } = parted(steps);
  const graph = bound.length > 0 && graphOf(place, run, bound);
  redraw(
    place,
    graph,
    free.length > 0 && listOf(run, free.slice(0, STEPS_MAX)),
    Math.max(bound.length, free.length) > STEPS_MAX &&
      h("p", { class: "hint" }, `The first ${STEPS_MAX} steps of each kind, of ${steps.length} in all.`),
  );
  // Of a graph that is as it was nothing is drawn, and it stays where it was scrolled to.
  if (graph) graph.scrollLeft = graph.wanted;
}

/** Steps that wait for another one or are waited for, and all others. */
export function parted(steps) {
  const known = new Set(steps.map((step) => step.id));
  const tied = new Set();
  for (const step of steps) {
    for (const need of step.depends_on.filter((id) => known.has(id) && id !== step.id)) {
      tied.add(step.id);
      tied.add(need);
    }
  }
  return { bound: steps.filter((step) => tied.has(step.id)), free: steps.filter((step) => !tied.has(step.id)) };
}

/** Steps that are independent of each other: their order says nothing, so no lines are drawn. */
function listOf(run, steps) {
  return h(
    "ul",
    { class: "plan-list", "aria-label": "Steps that wait for nothing" },
    steps.map((step) =>
      h(
        "li",
        null,
        h(
          "a",
          {
            class: ["plan-item", `is-${step.status}`],
            href: `#/runs/${run.run}/features?f=${encodeURIComponent(step.id)}`,
            data: { focus: `step-${step.id}` },
          },
          icon(signOf(step.status), `tone-${toneOf(step.status)}`),
          h("span", null, step.title || step.id, h("span", { class: "sub" }, noteOf(step))),
        ),
      ),
    ),
  );
}

const noteOf = (step) => `${words(step.status)}${step.attempts > 0 ? ` · ${step.attempts} failed` : ""}`;

function graphOf(place, run, steps) {
  const { nodes, edges, width, height } = layout(steps);
  const byId = new Map(steps.map((step) => [step.id, step]));
  const isBehind = new Set(
    edges.filter((edge) => byId.get(edge.from).status === "passing").map((edge) => `${edge.from}>${edge.to}`),
  );
  const graph = s(
    "svg",
    {
      class: "plan",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "group",
      "aria-label": "Steps and what they wait for",
    },
    edges.map((edge) =>
      s("path", { class: ["plan-edge", isBehind.has(`${edge.from}>${edge.to}`) && "is-done"], d: curve(edge.points) }),
    ),
    nodes.map((node) => drawStep(run, byId.get(node.id), node)),
  );
  const box = h("div", { class: "plan-box", tabindex: "0", role: "region", "aria-label": "Plan" }, graph);
  box.wanted = place.querySelector(".plan-box")?.scrollLeft ?? startOf(nodes, byId);
  return box;
}

/** At first the step that is worked on is in view. */
function startOf(nodes, byId) {
  const busy = nodes.find((node) => byId.get(node.id).status === "in_progress");
  return busy ? Math.max(0, busy.x - NODE.width - NODE.gapX) : 0;
}

function drawStep(run, step, { x, y }) {
  const waits = step.depends_on?.length > 0 ? `, waits for ${step.depends_on.join(", ")}` : "";
  const title = cut(step.title || step.id, TITLE_CHARS);
  const note = noteOf(step);
  const sign = icon(signOf(step.status), `tone-${toneOf(step.status)}`);
  sign.setAttribute("x", x + 12);
  sign.setAttribute("y", y + NODE.height / 2 - 8);
  sign.setAttribute("width", 16);
  sign.setAttribute("height", 16);
  return s(
    "a",
    {
      class: ["plan-step", `is-${step.status}`],
      href: `#/runs/${run.run}/features?f=${encodeURIComponent(step.id)}`,
      data: { focus: `step-${step.id}` },
      "aria-label": `${title} ${note}${waits}`,
    },
    s("rect", { x, y, width: NODE.width, height: NODE.height, rx: 6 }),
    sign,
    s("text", { class: "plan-title", x: x + 36, y: y + 20 }, title),
    " ",
    s("text", { class: "plan-note", x: x + 36, y: y + 36 }, note),
  );
}
