import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChainMark, ChainSlice } from "../src/frames.ts";
import {
  ageAt,
  between,
  crossings,
  inWords,
  Labels,
  LEFT,
  placed,
  RIGHT,
  said,
} from "../src/slices/axis.ts";
import { layout, part } from "../src/slices/chain.ts";

const MARKS: ChainMark[] = [
  { age: 0, text: "0", place: 0 },
  { age: 4e6, text: "4 s", place: 0.4 },
  { age: 12e6, text: "12 s", place: 1 },
];
const OLD: ChainSlice = { first: 4e6, last: 12e6, rows: 1, share: 1, serves: "far" };

test("ages between marks lie between their places", () => {
  assert.equal(placed(MARKS, 0), LEFT);
  assert.equal(placed(MARKS, 12e6), RIGHT);
  assert.equal(placed(MARKS, 8e6), LEFT + (RIGHT - LEFT) * 0.7);
  assert.equal(between([[5, 7]], 9), 7);
});

test("a click gives the age where it was, to two digits", () => {
  assert.equal(ageAt(MARKS, OLD, LEFT + (RIGHT - LEFT) * 0.71), 8.1e6);
});

test("a click near a mark inside the slice gives the mark's age, exactly", () => {
  const marks = [
    ...MARKS.slice(0, 2),
    { age: 7_654_321, text: "7.654 s", place: 0.7 },
    ...MARKS.slice(2),
  ];
  assert.equal(ageAt(marks, OLD, LEFT + (RIGHT - LEFT) * 0.71), 7_654_321);
});

test("a rounded age outside the slice is not taken", () => {
  const narrow = { ...OLD, first: 4_000_000, last: 4_040_000 };
  const age = ageAt(MARKS, narrow, placed(MARKS, 4_020_000));
  assert.ok(age > narrow.first && age < narrow.last);
});

test("what ages over several boundaries crosses each", () => {
  const aged = [
    { source: 0, target: 2, rows: 5 },
    { source: 1, target: 2, rows: 3 },
  ];
  assert.deepEqual(
    [...crossings({ aged })],
    [
      [0, 5],
      [1, 8],
    ],
  );
});

test("labels that would overlap are left out", () => {
  const labels = new Labels();
  assert.deepEqual(
    [labels.fits(100, 40), labels.fits(130, 30), labels.fits(140, 40)],
    [true, false, true],
  );
});

test("ages and queries are put in words", () => {
  assert.deepEqual([inWords(MARKS, 4e6), inWords(MARKS, 5e6)], ["4 s", "5 s"]);
  assert.equal(said({ name: "far", window: 1, selection: "v < 3" }), "far: v < 3");
  assert.equal(said({ name: "near", window: 1, selection: "" }), "near");
  assert.deepEqual([part(1200, "n →", "").text, part(0, "n →", "").text], ["1,200 →", ""]);
});

test("streams lie below one another, and many queries are drawn thinner", () => {
  const few = layout([2, 3]);
  assert.ok((few.tops[1] ?? 0) > (few.tops[0] ?? 0) + 2 * few.row && few.end > (few.tops[1] ?? 0));
  assert.ok(layout([17]).row < few.row);
});
