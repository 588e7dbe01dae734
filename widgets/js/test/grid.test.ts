import assert from "node:assert/strict";
import { test } from "node:test";
import type { GridFrame } from "../frames.ts";
import { arcAt, beside, eased, fitted } from "../src/base/geometry.ts";
import { hit } from "../src/base/pen.ts";
import { shownHosts } from "../src/base/quantiles.ts";
import { cellsOf, inspectGrid, sameWay } from "../src/theta/grid.ts";

const AREA = { x: 10, y: 20, wide: 100, tall: 100 };

/** Hosts row by row in a grid of n parts of stream 0 and m of stream 1. */
function grid(n: number, m: number, more: Partial<GridFrame> = {}): GridFrame {
  const host = Array.from({ length: n * m }, (_, k) => k);
  const places = { host, row: host.map((k) => Math.floor(k / m)), column: host.map((k) => k % m) };
  const none = { top: [], bottom: [], left: [], right: [], host: [], percent: [], moving: [] };
  return { n, m, rows: [1, 1], places, cells: none, scale_max: 1, ...more } as GridFrame;
}

test("stream 0 lies across, stream 1 down; turned it is the other way round", () => {
  const [plain, turned] = [cellsOf(grid(4, 2), false), cellsOf(grid(4, 2), true)];
  assert.deepEqual(plain.get(3), { x: 0.25, y: 0.5, wide: 0.25, tall: 0.5 });
  assert.deepEqual(turned.get(3), { x: 0.5, y: 0.25, wide: 0.5, tall: 0.25 });
});

test("the areas of all cells are the rectangle", () => {
  for (const [n, m] of [
    [1, 1],
    [16, 4],
    [2, 32],
  ] as const) {
    const boxes = [...cellsOf(grid(n, m), false).values()];
    const area = boxes.reduce((sum, { wide, tall }) => sum + wide * tall, 0);
    assert.ok(Math.abs(area - 1) < 1e-9 && boxes.length === n * m);
  }
});

test("without a grid each host has the largest rectangle that it joined", () => {
  const cells = {
    top: [0, 0.5],
    bottom: [0.5, 1],
    left: [0, 0],
    right: [1, 0.25],
    host: [3, 3],
    percent: [100, 100],
    moving: [false, false],
  };
  const found = cellsOf(grid(0, 0, { cells }), false);
  assert.deepEqual(found.get(3), { x: 0, y: 0, wide: 0.5, tall: 1 });
});

test("both sides are at one scale, and the rectangle is the largest in the middle", () => {
  assert.deepEqual(fitted(400, 100, AREA), { x: 10, y: 57.5, wide: 100, tall: 25 });
  assert.deepEqual([fitted(100, 400, AREA).wide, fitted(100, 400, AREA).tall], [25, 100]);
  assert.ok(fitted(1000, 0, AREA).tall > 8, "a side can always be seen");
});

test("copies fly from host to host on arcs; partners bend opposite ways", () => {
  assert.deepEqual(arcAt([0, 0], [10, 0], 0), [0, 0]);
  assert.deepEqual(arcAt([0, 0], [10, 0], 1), [10, 0]);
  assert.deepEqual(arcAt([3, 3], [3, 3], 0.5), [3, 3]);
  const [there, back] = [arcAt([0, 0], [10, 0], 0.5), arcAt([10, 0], [0, 0], 0.5)];
  assert.ok(there[1] > 0 && back[1] < 0);
  const [start, end] = beside([0, 0], [10, 0], 3);
  assert.ok(start[1] === 3 && end[1] === 3 && Math.abs(end[0] - 10) < 1e-9);
});

test("all frames of a run are the same way round", () => {
  const frames = [
    grid(2, 2, { scale_max: 5, rows: [1, 9], across: 1 }),
    grid(2, 2, { scale_max: 7, rows: [20, 9], across: 0 }),
  ];
  sameWay(frames);
  assert.deepEqual(
    frames.map(({ across }) => across),
    [0, 0],
  );
});

test("the topmost target is hit", () => {
  const targets = [
    { box: AREA, name: "a", text: "below" },
    { box: { ...AREA, wide: 10 }, name: "b", text: "above" },
  ];
  assert.equal(hit(targets, 15, 50)?.text, "above");
  assert.equal(hit(targets, 50, 50)?.text, "below");
  assert.equal(hit(targets, 500, 50), undefined);
});

test("things start and stop slowly", () => {
  assert.deepEqual([eased(-1), eased(0), eased(0.5), eased(1), eased(2)], [0, 0, 0.5, 1, 1]);
  assert.ok(eased(0.1) < 0.1 && eased(0.9) > 0.9);
});

test("a host of a grid has a part of each stream, and rows go from it", () => {
  const frame = {
    n: 16,
    m: 4,
    streams: ["l", "o"],
    places: { host: [20, 21], row: [5, 5], column: [1, 2] },
    copies: { source: [1, 21], target: [21, 2], stream: [1, 1], rows: [285, 259] },
  } as unknown as GridFrame;
  assert.deepEqual(inspectGrid(frame, "host:21"), {
    title: "Host 21",
    words: "part 6 of 16 of l, part 3 of 4 of o",
    pairs: [["goes to other hosts", "259 rows"]],
  });
});

test("above 1,024 hosts four of them are shown: the fullest, at 90 %, the median and the least", () => {
  const hosts = (many: number) => Array.from({ length: many }, (_, host) => ({ host, row: host }));
  const held = hosts(1101).map(({ host }) => (host * 7) % 1101);
  assert.deepEqual(shownHosts(hosts(1024), held), hosts(1024));
  const shown = shownHosts(hosts(1101), held);
  assert.deepEqual(
    shown.map(({ host, row, quantile }) => [held[host], row, quantile]),
    [
      [1100, 0, "fullest"],
      [990, 0, "90 %"],
      [550, 0, "median"],
      [0, 0, "least"],
    ],
  );
});
