import assert from "node:assert/strict";
import { test } from "node:test";
import { segmentScale, switches } from "../src/diffusion/segments.ts";
import type { Segment, SegmentsFrame } from "../src/frames.ts";

const segment = (stream: number, first: number): Segment => {
  return { stream, host: 0, first, last: first, copied: 0 };
};

test("a switch is where a segment has another master than the one before", () => {
  const found = switches([segment(0, 1), segment(0, 2), segment(1, 3), segment(0, 4)]);
  assert.deepEqual(
    found.map(({ first }) => first),
    [3, 4],
  );
  assert.deepEqual(switches([segment(2, 1)]), []);
});

test("bars of all frames are on one scale", () => {
  const frames = [{ scale_max: 3 }, { scale_max: 8 }] as SegmentsFrame[];
  segmentScale(frames);
  assert.deepEqual(
    frames.map(({ scale_max }) => scale_max),
    [8, 8],
  );
});
