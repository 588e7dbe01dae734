import assert from "node:assert/strict";
import { test } from "node:test";
import { Annulus, CENTRE } from "../src/base/annulus.ts";
import { along, bent, dots, height, shortWay } from "../src/psp/ring.ts";

test("as many dots as the square root of the tuples, 14 at most", () => {
  assert.deepEqual([0, 1, 5, 100, 10_000].map(dots), [0, 1, 3, 10, 14]);
});

test("state moves the short way round", () => {
  const step = (2 * Math.PI) / 6;
  assert.ok(Math.abs(shortWay(0, 1, step) - step) < 1e-9);
  assert.ok(Math.abs(shortWay(5, 0, step) - step) < 1e-9);
  assert.ok(Math.abs(shortWay(0, 5, step) + step) < 1e-9);
});

test("a move begins and ends on its nodes", () => {
  const ring = new Annulus(6, 2, 96, 205, 0.03);
  const curve = bent(ring, 0, 2, 3);
  assert.deepEqual([along(curve, 0), along(curve, 1)], [curve[0], curve[2]]);
  const [inner, outer] = ring.lane(0);
  for (const [x, y] of [curve[0], curve[2]]) {
    const radius = Math.hypot(x - CENTRE, y - CENTRE);
    assert.ok(radius > inner && radius < outer);
  }
});

test("a move to a node that is far off goes past the centre", () => {
  const far = bent(new Annulus(6, 2, 96, 205, 0.03), 0, 0, 2)[1];
  const near = bent(new Annulus(6, 2, 96, 205, 0.03), 0, 0, 1)[1];
  const radius = ([x, y]: [number, number]) => Math.hypot(x - CENTRE, y - CENTRE);
  assert.ok(radius(far) < 96 && radius(near) > 96);
});

test("bars of any number of nodes end above the words", () => {
  for (const nodes of [1, 6, 24]) {
    for (const streams of [2, 5]) {
      const top = 36 + 18 * streams;
      assert.ok(top + 10 + nodes * height(nodes, top) < 415);
      assert.ok(height(nodes, top) >= 9);
    }
  }
});
