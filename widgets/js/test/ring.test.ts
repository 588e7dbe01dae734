import assert from "node:assert/strict";
import { test } from "node:test";
import type { RingFrame } from "../frames.ts";
import { endOfNumber, inspectRing, span } from "../src/psp/ring.ts";

const frame = {
  streams: ["r", "s"],
  nodes: [0, 6, 3],
  slices: {
    stream: [0, 1, 0],
    node: [6, 6, 3],
    rows: [1200, 40, 9],
    place: [1, 1, 2],
    retention: ["2 s", "", "2 s"],
  },
  moves: { stream: [1], source: [6], target: [3], rows: [30], reason: ["aged"] },
} as unknown as RingFrame;

test("places go clockwise from the top and do not touch", () => {
  assert.ok(span(0, 4)[0] > -Math.PI / 2 && span(0, 4)[1] < 0);
  for (const places of [1, 3, 24, 1024]) {
    const spans = Array.from({ length: places }, (_, k) => span(k, places));
    assert.ok(
      spans.every(([from, to], k) => from < to && from > (spans[k - 1]?.[1] ?? -Math.PI / 2)),
    );
    assert.ok((spans.at(-1)?.[1] ?? 9) < 1.5 * Math.PI);
  }
});

test("a node has a place in ring order, slices, and moves", () => {
  assert.deepEqual(inspectRing(frame, "host:6"), {
    title: "Node 6",
    words: "place 2 of 3 on the ring",
    pairs: [
      ["rows of r, 2 s of its window", "1,200"],
      ["rows of s", "40"],
      ["30 of s move", "6 → 3"],
    ],
  });
  assert.equal(inspectRing(frame, "host:1"), undefined);
  assert.equal(inspectRing(frame, ""), undefined);
});

test("the number of a slice stands where neither its dots nor its end are", () => {
  assert.equal(endOfNumber([0, 4, 9], 3), 9);
  assert.equal(endOfNumber([0, 8, 9], 3), 8);
  assert.equal(endOfNumber([7, 2, 9], 3), undefined, "dots cover what is free");
  assert.equal(endOfNumber([6, 8, 9], 3), undefined);
});
