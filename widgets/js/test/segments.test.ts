import assert from "node:assert/strict";
import { test } from "node:test";
import type { Segment, SegmentsFrame } from "../frames.ts";
import { inspectSegments, streamOf, switches } from "../src/diffusion/segments.ts";

const segment = (stream: number, first: number): Segment => {
  return { stream, host: 0, first, last: first, held: first, copied: 0 };
};

const frame = {
  streams: ["r", "s", "t"],
  stored: [5, 7],
  segments: {
    stream: [0, 1],
    host: [1, 1],
    first: [1, 4],
    last: [3, 4],
    held: [3, 4],
    copied: [0, 8],
  },
  orders: {
    stream: [0, 0, 2],
    order: ["s, then t", "t, then s", "r, then s"],
    overhead: [3, 4, 5],
  },
  latest: 2,
} as unknown as SegmentsFrame;

test("a switch is where a segment has another master than the one before", () => {
  const found = switches([segment(0, 1), segment(0, 2), segment(1, 3), segment(0, 4)]);
  assert.deepEqual(
    found.map(({ first }) => first),
    [3, 4],
  );
  assert.deepEqual(switches([segment(2, 1)]), []);
});

test("the path of the selected stream is shown, else the newest", () => {
  assert.deepEqual(
    ["stream:0", "stream:1", "host:1", ""].map((selected) => streamOf(frame, selected)),
    [0, 2, 2, 2],
  );
});

test("a host lists its segments, the newest first, and a stream the orders of its hops", () => {
  assert.deepEqual(inspectSegments(frame, "host:1"), {
    title: "Host 1",
    words: "its newest segment: s, batch 4",
    pairs: [
      ["s, batch 4", "8 copied"],
      ["r, batches 1 to 3", ""],
    ],
  });
  assert.deepEqual(inspectSegments(frame, "stream:0")?.pairs, [
    ["chosen: s, then t", "3 rows"],
    ["rejected: t, then s", "4 rows"],
  ]);
  assert.equal(inspectSegments(frame, "stream:1"), undefined);
  assert.equal(inspectSegments(frame, "host:9"), undefined);
});
