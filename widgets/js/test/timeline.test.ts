import assert from "node:assert/strict";
import { test } from "node:test";
import {
  axisOf,
  extent,
  heightOf,
  namesOf,
  placeOf,
  strokes,
  ticks,
} from "../src/cockpit/timeline.ts";
import type { TimelineCurve } from "../src/frames.ts";

const BOX = { x: 40, y: 10, wide: 200, tall: 100 };
const curve = (values: (number | null)[], more: Partial<TimelineCurve> = {}): TimelineCurve => {
  return { name: "x", color: "ratio", values, ...more };
};

test("an axis has room above its peak", () => {
  assert.deepEqual(axisOf(curve([1, null, 4])), { floor: 0, peak: 4, top: 4.24 });
});

test("an axis reaches its ceiling, and ends at its cap", () => {
  const scale = { floor: 1, ceiling: 1.3, cap: 2 };
  assert.equal(axisOf(curve([1.1], scale)).peak, 1.3);
  assert.equal(axisOf(curve([64], scale)).peak, 2);
});

test("what is allowed, and what another placement would do, fit on the axis", () => {
  const ghosts = [{ name: "static", batch: [1, 2], values: [null, 7] }];
  assert.equal(axisOf(curve([1], { bound: [1.4, null] })).peak, 1.4);
  assert.equal(axisOf(curve([1], { baselines: ghosts })).peak, 7);
});

test("names of two curves are shorter where they would run into each other", () => {
  const curves = ["tuples in, this batch", "results per second"].map((name) => {
    return { ...curve([1]), name };
  });
  const width = (text: string) => 5 * text.length;
  const whole = curves.map(({ name }) => name);
  assert.deepEqual(namesOf(curves, 215, width), whole);
  assert.deepEqual(namesOf(curves, 214, width), ["tuples in", "results/s"]);
});

test("a curve of nothing, or of zeros, has an axis", () => {
  assert.deepEqual(axisOf(curve([null])), { floor: 0, peak: 0, top: 1 });
  assert.equal(axisOf(curve([0, 0])).top, 1);
});

test("larger values are higher", () => {
  const axis = { floor: 1, peak: 3, top: 3 };
  assert.deepEqual(
    [heightOf(1, axis, BOX), heightOf(2, axis, BOX), heightOf(3, axis, BOX)],
    [110, 60, 10],
  );
});

test("the time axis has two batches or more, and those to come", () => {
  assert.deepEqual(extent({ batch: [], last: 1 }), { first: 1, last: 2 });
  assert.deepEqual(extent({ batch: [3, 4], last: 9 }), { first: 3, last: 9 });
  assert.equal(placeOf(6, { first: 3, last: 9 }, BOX), 140);
});

test("eleven batches at most are named, the first among them", () => {
  for (const last of [1, 9, 10, 11, 48, 400]) {
    const named = ticks({ first: 0, last });
    assert.ok(named.length <= 11 && named[0] === 0 && (named.at(-1) ?? 0) <= last, `to ${last}`);
  }
  assert.deepEqual(ticks({ first: 5, last: 7 }), [5, 6, 7]);
});

test("a curve is broken where values are unknown", () => {
  assert.deepEqual(strokes([4, 5, 6, 7], [1, null, 2, 3]), [
    [[4, 1]],
    [
      [6, 2],
      [7, 3],
    ],
  ]);
});
