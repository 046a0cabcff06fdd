// The plan as a graph: every step right of all that it waits for, none on another, and no plan breaks it.

import assert from "node:assert/strict";
import test from "node:test";

const { layout, NODE, STEPS_MAX, curve } = await import(new URL("dag.js", process.env.PAGE_MODULES));

const steps = (plan) => Object.entries(plan).map(([id, depends_on]) => ({ id, depends_on }));

function check({ nodes, edges, width, height }) {
  const at = new Map(nodes.map((node) => [node.id, node]));
  for (const { from, to } of edges) assert.ok(at.get(from).x + NODE.width < at.get(to).x, `${from} is left of ${to}`);
  for (const [index, one] of nodes.entries()) {
    assert.ok(
      one.x >= 0 && one.y >= 0 && one.x + NODE.width <= width && one.y + NODE.height <= height,
      `${one.id} is inside`,
    );
    for (const other of nodes.slice(index + 1)) {
      assert.ok(one.x !== other.x || Math.abs(one.y - other.y) >= NODE.height, `${one.id} is not on ${other.id}`);
    }
  }
  return at;
}

test("each step stands right of all that it waits for", () => {
  const drawn = layout(steps({ d: ["b", "c"], a: [], b: ["a"], c: ["a"], e: ["a", "d"] }));
  const at = check(drawn);
  assert.deepEqual(
    ["a", "b", "c", "d", "e"].map((id) => at.get(id).layer),
    [0, 1, 1, 2, 3],
  );
  assert.equal(drawn.edges.length, 6);
});

test("lines do not cross where they need not", () => {
  const at = check(layout(steps({ a: [], b: [], y: ["b"], x: ["a"] })));
  assert.equal(at.get("a").y < at.get("b").y, at.get("x").y < at.get("y").y);
});

test("a circle, a step that waits for itself and a name that nobody has break nothing", () => {
  const { nodes, edges } = layout(steps({ a: ["c"], b: ["a"], c: ["b"], d: ["d", "nobody"], e: ["d"] }));
  assert.equal(nodes.length, 5);
  assert.ok(edges.some((edge) => edge.from === "d" && edge.to === "e"));
  check(layout(steps({ a: ["b"], b: ["a"] })));
});

test("no steps, one step, and steps that wait for nothing are drawn", () => {
  assert.deepEqual(layout([]).nodes, []);
  check(layout([{ id: "a" }]));
  const { nodes } = layout(Array.from({ length: 9 }, (_, index) => ({ id: `s${index}`, depends_on: [] })));
  assert.equal(new Set(nodes.map((node) => node.x)).size, 4, "side by side");
});

test("a plan of thousands is drawn up to the cap", () => {
  const many = Array.from({ length: 5000 }, (_, index) => ({
    id: `s${index}`,
    depends_on: index > 0 ? [`s${index - 1}`] : [],
  }));
  assert.equal(layout(many).nodes.length, STEPS_MAX);
});

test("a line is a path of numbers alone", () => {
  assert.match(curve([0, 10, 44, 30]), /^[MC0-9. ]+$/);
});
