import assert from "node:assert/strict";
import { test } from "node:test";
import { type Layout, narrow } from "../src/base/narrow_layout.ts";
import { keepSelection } from "../src/base/selection.ts";

type Axis = { title?: { text?: string }; range?: number[]; autorange?: boolean; domain?: number[] };

/** A chart as it is drawn first. */
const given = (): Layout => ({
  xaxis: { title: { text: "one" }, range: [0, 9] },
  xaxis2: { title: { text: "seconds" } },
  yaxis: { autorange: true, range: [1, 2] },
});

test("what a zoom has changed outlives a narrow window and a wide one", () => {
  const traces = [{ name: "a" }, { name: "b", xaxis: "x2" }];
  const first = given();
  const seen = structuredClone(first);
  seen.yaxis = { autorange: false, range: [1.2, 1.4] };
  const whole = keepSelection(first, given(), seen);
  assert.deepEqual(first, given(), "the one given stays as it is");
  const drawn = narrow(whole, traces, 400);
  const wide = keepSelection(whole, drawn, structuredClone(drawn));
  for (const made of [whole, drawn, wide]) {
    assert.deepEqual((made.yaxis as Axis).range, [1.2, 1.4]);
    assert.equal((made.yaxis as Axis).autorange, false);
  }
  assert.equal((wide.xaxis as Axis).domain, undefined, "only what was chosen is taken over");
});

test("what is drawn for a narrow window is no choice", () => {
  const drawn = narrow(given(), [{ name: "a" }, { name: "b", xaxis: "x2", yaxis: "y2" }], 400);
  const seen = structuredClone(drawn);
  (seen.xaxis2 as Axis).range = [3, 4]; // found by plotly
  (seen.xaxis2 as Axis).autorange = true;
  const { yaxis2, ...made } = keepSelection(given(), drawn, seen);
  assert.deepEqual([made, yaxis2], [given(), {}]);
});

test("a zoom that was taken back is gone", () => {
  const zoomed = { ...given(), yaxis: { autorange: false, range: [1.2, 1.4] } };
  const back = { ...given(), yaxis: { autorange: true, range: [1, 2] } };
  assert.deepEqual(keepSelection(zoomed, zoomed, back).yaxis, { autorange: true });
});
