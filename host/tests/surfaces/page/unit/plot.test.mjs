// Scales of plots: round steps, no peak lost, and a gap where nothing was measured.

import assert from "node:assert/strict";
import test from "node:test";

const { ticks, thinned, paths, gapOf, POINTS_MAX } = await import(new URL("plot.js", process.env.PAGE_MODULES));

test("an axis has a few round steps and reaches over the highest value", () => {
  for (const highest of [0.3, 1, 7, 93, 100, 101, 12_345, 1e9]) {
    const steps = ticks(highest);
    assert.equal(steps[0], 0);
    assert.ok(steps.at(-1) >= highest * 0.999 && steps.length >= 3 && steps.length <= 6, `${highest}: ${steps}`);
  }
  assert.deepEqual(ticks(0), [0, 1]);
  assert.deepEqual(ticks(217, 2), [0, 64, 128, 192, 256]);
});

test("of many points the peaks stay", () => {
  const points = Array.from({ length: 10_000 }, (_, index) => [index, index === 4321 ? 99 : index === 777 ? -5 : 1]);
  const kept = thinned(points);
  assert.ok(kept.length <= POINTS_MAX);
  assert.ok(kept.some(([, value]) => value === 99) && kept.some(([, value]) => value === -5));
  assert.deepEqual(
    kept.map(([at]) => at),
    kept.map(([at]) => at).sort((a, b) => a - b),
  );
  assert.equal(thinned(points.slice(0, 10)).length, 10);
});

test("where nothing was measured the line is broken", () => {
  const points = [
    [0, 1],
    [10, 1],
    [20, 1],
    [30, 1],
    [500, 1],
    [510, 1],
  ];
  const path = paths(
    points,
    (at) => at,
    (value) => value,
    gapOf(points),
  );
  assert.equal(path.match(/M/g).length, 2);
  assert.equal(gapOf([[0, 1]]), Infinity);
});
