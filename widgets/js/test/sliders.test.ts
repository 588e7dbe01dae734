import assert from "node:assert/strict";
import { test } from "node:test";
import { partOf, rangeOf, valueAt } from "../src/base/sliders.ts";

const of = (label: string, step = "") => {
  const range = rangeOf(label, step);
  assert.ok(range);
  return range;
};

test("the range is what the label ends with", () => {
  assert.equal(of("tuples a batch · 1 to 25,000", "1").high, 25_000);
  assert.equal(of("data (GB, TPC-H SF) · 0.001 to 100", "0.01").low, 0.001);
  assert.equal(rangeOf("rates (λ, tuples/s)"), undefined);
});

test("hosts come in powers of two, wide ranges on a logarithmic scale, others by their steps", () => {
  const hosts = of("hosts (J) · 1 to 256", "1");
  assert.deepEqual(
    [0, 0.3, 0.5, 1].map((part) => valueAt(hosts, part)),
    [1, 4, 16, 256],
  );
  const data = of("data (GB, TPC-H SF) · 0.001 to 100", "0.01");
  assert.deepEqual(
    [0, 0.5, 1].map((part) => valueAt(data, part)),
    [0.001, 0.32, 100],
  );
  const window = of("window (s; 0: all) · 0 to 1,000,000", "1");
  assert.deepEqual(
    [0, 0.5, 1].map((part) => valueAt(window, part)),
    [0, 1000, 1_000_000],
  );
  const skew = of("skew (Zipf z) · 0 to 4", "0.25");
  assert.deepEqual(
    [0, 0.3, 1].map((part) => valueAt(skew, part)),
    [0, 1.25, 4],
  );
});

test("a value is where the thumb would give it, and one out of range is at an end", () => {
  for (const label of ["hosts (J) · 1 to 256", "scale · 0.001 to 100", "pace · 0 to 60"]) {
    const range = of(label, "1");
    for (const part of [0, 0.25, 0.5, 1]) {
      const value = valueAt(range, part);
      assert.equal(valueAt(range, partOf(range, value)), value);
    }
    assert.equal(partOf(range, 10 ** 9), 1);
  }
});
