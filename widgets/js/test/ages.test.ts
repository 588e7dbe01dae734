import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgesFrame } from "../frames.ts";
import { age } from "../src/base/format.ts";
import { agePlace, inspectAges, leastHeight, stretchesOf, titleOf } from "../src/slices/ages.ts";

const frame = (): AgesFrame => ({
  streams: ["r", "s"],
  rows: [3, 5],
  received: [1, 1],
  hosts: 1,
  pieces: {
    stream: [0, 0, 1],
    host: [0, 0, 0],
    first: [0, 5e6, 0],
    last: [5e6, 15e6, 15e6],
    slice: [0, 1, 0],
    rows: [1, 2, 5],
  },
  queries: {
    name: ["near"],
    windows: [[5e6, 15e6]],
    results: [70],
    batch_results: [7],
    selection: [""],
  },
  scale_max: 5,
});

test("ages rise from left to right, by their logarithm where windows differ much", () => {
  const near = agePlace([5e6, 30e6]);
  assert.deepEqual([near.isLog, near.place(0), near.place(15e6)], [false, 0, 0.5]);
  const far = agePlace([1e6, 100e6]);
  assert.deepEqual([far.isLog, far.place(0), far.place(100e6)], [true, 0, 1]);
  assert.ok(far.place(1e6) < far.place(2e6) && far.place(2e6) - far.place(1e6) > 0.02);
});

test("an age is said in the largest unit", () => {
  assert.deepEqual([5e6, 90e6, 3600e6, 86400e6, 0].map(age), [
    "5 s",
    "1.5 min",
    "1 h",
    "1 d",
    "0 s",
  ]);
});

test("a query says its results and how many slices it reads", () => {
  const detail = inspectAges(frame(), "query:near");
  assert.equal(detail?.title, "Query “near”");
  assert.deepEqual(detail?.pairs, [
    ["results so far", "70"],
    ["in this batch", "7"],
    ["selection", "every row"],
    ["window of r", "5 s, 1 of 2 slices"],
    ["window of s", "15 s, 1 of 1 slices"],
  ]);
});

test("a slice says which queries read it", () => {
  const details = [0, 5e6].map((first) =>
    inspectAges(frame(), `slice:0:${first ? "5000000:15000000" : "0:5000000"}`),
  );
  assert.equal(details[1]?.title, "5 s to 15 s of r");
  assert.deepEqual(
    details.map((each) => each?.pairs[2]?.[1]),
    ["near", "none"],
  );
  assert.equal(inspectAges(frame(), "host:3"), undefined);
});

test("twelve queries on a ring of four hosts fit in a low pane", () => {
  const twelve = { ...frame().queries, name: Array(12).fill("q") };
  const ring = { ...frame(), streams: ["a", "d", "w"], hosts: 4, queries: twelve };
  assert.ok(leastHeight(ring) < 320 && leastHeight(ring) > leastHeight({ ...ring, hosts: 1 }));
});

test("where several hosts share the ages, each is named at what it holds", () => {
  assert.equal(titleOf({ ...frame(), hosts: 4 })[0], "State by age, on a ring of 4 hosts");
  assert.equal(titleOf(frame())[0], "State by age");
  const piece = { stream: 0, slice: 0, rows: 1 };
  const held = [
    { ...piece, host: 2, first: 0, last: 5 },
    { ...piece, host: 2, first: 5, last: 8 },
    { ...piece, host: 0, first: 8, last: 9 },
  ];
  const shown = stretchesOf(held).map(({ host, first, last }) => [host, first, last]);
  assert.deepEqual(shown, [
    [2, 0, 8],
    [0, 8, 9],
  ]);
});
