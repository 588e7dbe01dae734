import assert from "node:assert/strict";
import { test } from "node:test";
import { stopsOf } from "../src/base/sliders.ts";

test("a thumb stops at both ends of the range that the label ends with", () => {
  for (const [label, step, low, high] of [
    ["tuples a batch · 1 to 25,000", 1, 1, 25_000],
    ["data (GB, TPC-H SF) · 0.001 to 100", 0.01, 0.001, 100],
    ["window (s; 0: all) · 0 to 1,000,000", 1, 0, 1_000_000],
    ["hosts (J) · 1 to 24", 1, 1, 24],
    ["sample (γ) · 0.01 to 1", 0.05, 0.01, 1],
  ] as const) {
    const stops = stopsOf(label, step);
    assert.deepEqual([stops[0], stops.at(-1)], [low, high]);
    assert.ok(stops.every((stop, k) => k === 0 || stop > (stops[k - 1] ?? 0)));
  }
  assert.deepEqual(stopsOf("rates (λ, tuples/s)"), []);
});

test("hosts come in powers of two, wide ranges in round numbers, others by their steps", () => {
  assert.deepEqual(stopsOf("hosts (J) · 1 to 24", 1), [1, 2, 4, 8, 16, 24]);
  assert.deepEqual(stopsOf("slowest rate · 0.1 to 500"), [
    ...[0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500],
  ]);
  assert.deepEqual(stopsOf("skew (Zipf z) · 0 to 1", 0.25), [0, 0.25, 0.5, 0.75, 1]);
  assert.equal(stopsOf("days · 1 to 31", 1).length, 31);
});
