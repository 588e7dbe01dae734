import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgesFrame } from "../frames.ts";
import { age } from "../src/base/format.ts";
import { agePlace, heightsOf, inspectAges, stretchesOf } from "../src/slices/ages.ts";

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

test("a query says its results and how far back it looks", () => {
  const detail = inspectAges(frame(), "query:near");
  assert.equal(detail?.title, "Query “near”");
  assert.deepEqual(detail?.pairs, [
    ["results so far", "70"],
    ["in this batch", "7"],
    ["selection", "every row"],
    ["window of r", "5 s"],
    ["window of s", "15 s"],
  ]);
});

test("a slice says which queries read it", () => {
  const details = [0, 5e6].map((first) =>
    inspectAges(frame(), `slice:0:${first ? "5000000:15000000" : "0:5000000"}`),
  );
  assert.equal(details[1]?.title, "5 s to 15 s of r");
  assert.deepEqual(
    details.map((each) => [each?.words, each?.pairs[1]?.[1]]),
    [
      ["on host 0", "near"],
      ["on host 0", "none"],
    ],
  );
  assert.equal(inspectAges(frame(), "host:3"), undefined);
});

test("thirty queries of three streams fit in a low pane; names have room while there is some", () => {
  const ringOf = (n: number): AgesFrame => {
    const queries = { ...frame().queries, name: Array(n).fill("q") };
    return { ...frame(), streams: ["a", "d", "w"], hosts: 4, queries };
  };
  const row = (n: number, pane: number) => heightsOf(ringOf(n), pane).row;
  assert.ok(heightsOf(ringOf(12), 0).least < 190 && heightsOf(ringOf(30), 0).least < 240);
  assert.ok(row(12, 330) > 10 && row(2, 900) === 34, "a name is 10 pixels high");
  for (const n of [1, 12, 30, 60]) {
    const { least } = heightsOf(ringOf(n), 0);
    assert.ok(row(n, least) >= 3 && least - row(n, least) * (n + 1) >= 144 - 1e-9, `${n}`);
  }
});

test("where several hosts share the ages, each is named at what it holds", () => {
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
