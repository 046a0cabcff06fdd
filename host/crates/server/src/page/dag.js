// Where the steps of a plan are drawn: each right of all that it waits for, with few lines that cross. Pure.
//
// It never fails on a plan that is none: names nobody has are passed over, and what waits for itself in a circle is put
// where the circle is first met.

export const NODE = { width: 204, height: 46, gapX: 44, gapY: 14, margin: 8 };

/** Most steps that are drawn; a longer plan is a list. */
export const STEPS_MAX = 150;

/** Steps side by side where none waits for another. */
const COLUMNS = 4;

/** Sweeps over the layers; more change nothing that can be seen. */
const SWEEPS = 4;

/**
 * `steps`: `[{id, depends_on}]`. Gives `{nodes: [{id, x, y, layer}], edges: [{from, to, points}], width, height}` in
 * pixels, nodes in reading order.
 */
export function layout(steps, size = NODE) {
  const shown = steps.slice(0, STEPS_MAX);
  const known = new Set(shown.map((step) => step.id));
  const needs = new Map(
    shown.map((step) => [step.id, [...new Set(step.depends_on ?? [])].filter((id) => known.has(id) && id !== step.id)]),
  );
  const layerOf = [...needs.values()].some((own) => own.length > 0) ? layers(shown, needs) : wrapped(shown);
  const rows = ordered(shown, needs, layerOf);
  return place(rows, needs, layerOf, size);
}

/** Steps that wait for nothing, row by row. */
function wrapped(steps) {
  const columns = Math.max(1, Math.min(COLUMNS, steps.length));
  return new Map(steps.map((step, index) => [step.id, index % columns]));
}

/** The longest way from a step that waits for nothing. */
function layers(steps, needs) {
  const layerOf = new Map();
  const visit = (id, path) => {
    if (layerOf.has(id)) return layerOf.get(id);
    if (path.has(id)) return -1;
    path.add(id);
    let layer = 0;
    for (const need of needs.get(id)) layer = Math.max(layer, visit(need, path) + 1);
    path.delete(id);
    layerOf.set(id, layer);
    return layer;
  };
  for (const step of steps) visit(step.id, new Set());
  return layerOf;
}

/** The steps of each layer, ordered by where the middle of their neighbours is. */
function ordered(steps, needs, layerOf) {
  const rows = [];
  for (const step of steps) (rows[layerOf.get(step.id)] ??= []).push(step.id);
  for (let index = 0; index < rows.length; index += 1) rows[index] ??= [];
  const followers = new Map(steps.map((step) => [step.id, []]));
  for (const [id, own] of needs) for (const need of own) followers.get(need).push(id);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forward = sweep % 2 === 0;
    const order = forward ? rows.keys() : [...rows.keys()].reverse();
    const neighbours = forward ? needs : followers;
    for (const index of order) sortByMiddle(rows[index], neighbours, rows);
  }
  return rows;
}

function sortByMiddle(row, neighbours, rows) {
  const at = new Map();
  for (const other of rows) other.forEach((id, index) => at.set(id, index - (other.length - 1) / 2));
  const middle = new Map(
    row.map((id) => {
      const own = neighbours.get(id);
      return [id, own.length === 0 ? at.get(id) : own.reduce((sum, other) => sum + at.get(other), 0) / own.length];
    }),
  );
  row.sort((a, b) => middle.get(a) - middle.get(b) || at.get(a) - at.get(b));
}

function place(rows, needs, layerOf, { width, height, gapX, gapY, margin }) {
  const tallest = Math.max(1, ...rows.map((row) => row.length));
  const inner = tallest * height + (tallest - 1) * gapY;
  const nodes = [];
  const byId = new Map();
  rows.forEach((row, layer) => {
    const own = row.length * height + (row.length - 1) * gapY;
    row.forEach((id, index) => {
      const node = {
        id,
        layer,
        x: margin + layer * (width + gapX),
        y: margin + (inner - own) / 2 + index * (height + gapY),
      };
      nodes.push(node);
      byId.set(id, node);
    });
  });
  const edges = [];
  for (const [to, own] of needs) {
    for (const from of own) {
      if (layerOf.get(from) >= layerOf.get(to)) continue;
      const [a, b] = [byId.get(from), byId.get(to)];
      edges.push({ from, to, points: [a.x + width, a.y + height / 2, b.x, b.y + height / 2] });
    }
  }
  return {
    nodes,
    edges,
    width: 2 * margin + rows.length * width + Math.max(0, rows.length - 1) * gapX,
    height: 2 * margin + inner,
  };
}

/** A line from left to right that leaves and arrives level. */
export function curve([x1, y1, x2, y2]) {
  const bend = Math.max(18, (x2 - x1) / 2);
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}
