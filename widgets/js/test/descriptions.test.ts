import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChainFrame } from "../src/frames.ts";
import { describeSlice } from "../src/slices/descriptions.ts";

const FRAME: ChainFrame = {
  title: "",
  note: "",
  batch: 3,
  pick: false,
  streams: [
    {
      name: "r",
      index: 1,
      received_tuples: 7,
      expired: 0,
      marks: [
        { age: 0, text: "0", place: 0 },
        { age: 4e6, text: "4 s", place: 0.5 },
        { age: 12e6, text: "12 s", place: 1 },
      ],
      slices: [
        { first: 0, last: 4e6, rows: 1, share: 0, serves: "near, far" },
        { first: 4e6, last: 12e6, rows: 1200, share: 1, serves: "far" },
      ],
      aged: [{ source: 0, target: 1, rows: 5 }],
      trimmed: [{ slice: 1, rows: 2 }],
      queries: [
        { name: "near", window: 4e6, selection: "" },
        { name: "far", window: 12e6, selection: "n > 3" },
      ],
    },
  ],
};

test("a slice tells its ages, what it holds, what came and went, and whom it serves", () => {
  assert.deepEqual(describeSlice(FRAME, { slice: "1:0" }).split("\n"), [
    "slice 1 of r after batch 3, ages 0 to 4 s",
    "  1 tuple held, of 1,201 in all slices",
    "  in this batch: 7 came, 5 aged out of it",
    "  serves near, far",
  ]);
  assert.match(describeSlice(FRAME, { slice: "1:1" }), /5 aged into it, 2 cut off before it/);
});

test("a query tells the slices that serve it", () => {
  assert.deepEqual(describeSlice(FRAME, { query: "near" }).split("\n"), [
    "query near after batch 3",
    "r: window 4 s, no selection; served by 1 of 2 slices",
    "  slice 1, ages 0 to 4 s: 1 tuple",
  ]);
  assert.match(describeSlice(FRAME, { query: "far" }), /where n > 3; served by 2 of 2 slices/);
});

test("of what is not there nothing is told", () => {
  assert.equal(describeSlice(FRAME, { slice: "0:0" }), "");
  assert.equal(describeSlice(FRAME, { slice: "1:2" }), "");
  assert.equal(describeSlice(FRAME, { query: "late" }), "");
});
