import assert from "node:assert/strict";
import { test } from "node:test";
import { Annulus, CENTRE, point, sector } from "../src/base/annulus.ts";

test("angles go clockwise from the top", () => {
  const [x, y] = point(Math.PI / 2, 100);
  assert.ok(Math.abs(x - CENTRE - 100) < 1e-9 && Math.abs(y - CENTRE) < 1e-9);
  assert.deepEqual(point(0, 50), [CENTRE, CENTRE - 50]);
});

test("a sector of more than half the ring takes the long way round", () => {
  assert.match(sector(0, 4, 10, 20), /A20 20 0 1 1 .*A10 10 0 1 0 /);
  assert.match(sector(0, 1, 10, 20), /A20 20 0 0 1 .*A10 10 0 0 0 /);
});

test("streams' rings lie within one another, the first outermost, and do not touch", () => {
  const ring = new Annulus(6, 3, 90, 210, 0.03);
  const lanes = [0, 1, 2].map((stream) => ring.lane(stream));
  assert.ok(lanes.every(([inner, outer]) => inner >= 90 && outer <= 210 && inner < outer));
  assert.ok(lanes.every(([inner], k) => k === 2 || inner > (lanes[k + 1]?.[1] ?? 0)));
});

test("hosts' sectors go once round, with gaps", () => {
  const ring = new Annulus(4, 2, 90, 210, 0.03);
  const spans = [0, 1, 2, 3].map((host) => ring.span(host));
  assert.ok(spans.every(([from, to], host) => from < ring.middle(host) && ring.middle(host) < to));
  assert.ok(spans.every(([, to], host) => host === 3 || to < (spans[host + 1]?.[0] ?? 0)));
  assert.ok((spans[3]?.[1] ?? 0) < 2 * Math.PI);
});

test("a ring without hosts is drawn as one of one host", () => {
  assert.equal(new Annulus(0, 1, 90, 210, 0.03).step, 2 * Math.PI);
});
