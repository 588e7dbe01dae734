import assert from "node:assert/strict";
import { test } from "node:test";
import type { GridFrame } from "../frames.ts";
import { arcAt, beside, eased, entryOf, fitted, sectorOf, tipOf } from "../src/base/geometry.ts";
import { nameParts, placeBars, shownHosts, stayedTexts } from "../src/base/host_bars.ts";
import { hit, type Pen } from "../src/base/pen.ts";
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

test("an arrow ends where its line enters a box, and its tip points there", () => {
  assert.deepEqual(
    entryOf(
      [
        [0, 50],
        [60, 50],
      ],
      { ...AREA, x: 40 },
    ),
    [40, 50],
  );
  assert.deepEqual(
    entryOf(
      [
        [60, 200],
        [60, 70],
      ],
      AREA,
    ),
    [60, 120],
    "straight up",
  );
  assert.deepEqual(
    entryOf(
      [
        [15, 50],
        [60, 50],
      ],
      AREA,
    ),
    [15, 50],
    "it starts inside",
  );
  const [left, end, right] = tipOf([0, 0], [10, 0], 2);
  assert.deepEqual(end, [10, 0]);
  assert.ok(left && right && left[0] < 9 && right[0] < 9 && left[1] * right[1] < 0);
});

test("the outline of a sector goes along both arcs and both sides", () => {
  const points = sectorOf([0, 0], [2, 4], [0, Math.PI]);
  const radii = points.map(([x, y]) => Math.round(Math.hypot(x, y)));
  assert.deepEqual([...new Set(radii)], [4, 2]);
  assert.deepEqual(points[0], points.at(-1), "it is closed");
  assert.ok(points.every(([, y]) => y > -1e-9));
});

test("bars stand apart from row to row, each part of a stream is named below its bars", () => {
  const shown = [0, 0, 1, 1, 2, 2].map((row, host) => ({ host: host + 7, row }));
  const bars = placeBars(shown, 306, 50);
  assert.deepEqual(
    bars.map(({ x }) => x),
    [0, 50, 103, 153, 206, 256],
  );
  assert.deepEqual(bars[3], { host: 10, x: 153, y: 4, wide: 50, tall: 50 });
  const found: [string, number][] = [];
  const text = (name: string, x: number) => found.push([name, x]);
  const pen = { wide: 306, width: () => 30, text } as unknown as Pen;
  nameParts(pen, shown, bars, "l");
  assert.deepEqual(found, [
    ["part 1", 50],
    ["3 of l", 256],
    ["2", 153],
  ]);
  nameParts(pen, shown.slice(0, 2), bars, "l");
  assert.equal(found.length, 3, "there is but one part");
});

test("a dashed line says what the old grid would hold, in fewer words where room is short", () => {
  const [long, short] = stayedTexts("8 × 8", 7518, 8295);
  assert.equal(long, "had the grid stayed 8 × 8: 8,295 rows, +10 %");
  assert.equal(short, "stayed 8 × 8: 8,295 rows, +10 %");
  assert.deepEqual(stayedTexts("8 × 8", 7518, null), []);
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
