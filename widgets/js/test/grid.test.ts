import assert from "node:assert/strict";
import { test } from "node:test";
import { progress } from "../src/base/canvas.ts";
import { fontSize, hit } from "../src/base/painter.ts";
import { clamped } from "../src/base/player.ts";
import type { GridFrame, HostGroup, MatrixCell, MoveChip } from "../src/frames.ts";
import { layout, oneScale } from "../src/theta/grid.ts";
import { bar, hostBoxes, upright } from "../src/theta/hosts.ts";
import { boxOf, chipAt, eased, LEAST, rectangle } from "../src/theta/matrix.ts";

const SQUARE = { x: 10, y: 20, size: 100 };
const AREA = { x: 10, y: 20, wide: 100, tall: 100 };
const CELL: MatrixCell = {
  top: 0.5,
  bottom: 1,
  left: 0,
  right: 0.25,
  host: 3,
  percent: 60,
  moving: true,
};
const CHIP: MoveChip = { x0: 0, y0: 0, x1: 1, y1: 0.5, stream: 0, rows: 7, source: 0, target: 1 };

function group(n: number, m: number): HostGroup {
  const hosts = Array.from({ length: n * m }, (_, host) => host);
  const row = hosts.map((host) => Math.floor(host / m));
  return {
    n,
    m,
    mapping: true,
    cells: { host: hosts, row, column: hosts.map((host) => host % m) },
  };
}

test("matrix and hosts stand side by side where there is room, else below one another", () => {
  const [wide, narrow] = [layout(1000), layout(400)];
  assert.deepEqual([wide.hosts.x > wide.side, wide.hosts.y], [true, 0]);
  assert.deepEqual([narrow.hosts.x, narrow.hosts.y > narrow.side], [0, true]);
  for (const { hosts, side, tall } of [wide, narrow]) assert.ok(tall >= hosts.y + side);
});

test("row 0 of the matrix is on top, column 0 at the left", () => {
  assert.deepEqual(boxOf(CELL, AREA), { x: 10, y: 70, wide: 25, tall: 50 });
});

test("the matrix is to scale: |R| down, |S| across, the largest of the run fills a side", () => {
  const [box, faithful] = rectangle([50, 25], 100, SQUARE);
  assert.deepEqual([box, faithful], [{ x: 10, y: 20, wide: 25, tall: 50 }, true]);
  assert.deepEqual(rectangle([100, 100], 100, SQUARE)[0], AREA);
});

test("a side too short to be seen is drawn longer, and that is said", () => {
  const [box, faithful] = rectangle([100, 1], 100, SQUARE);
  assert.deepEqual([box.wide, box.tall, faithful], [100 * LEAST, 100, false]);
  assert.deepEqual(rectangle([0, 0], 0, SQUARE)[0], AREA);
});

test("all pictures of a run are on the scale of the greatest", () => {
  const frame = (scale_max: number, max_rows: number) =>
    ({ hosts: { scale_max }, matrix: { max_rows } }) as unknown as GridFrame;
  const frames = [frame(3, 40), frame(9, 20)];
  oneScale(frames);
  assert.deepEqual(
    frames.map(({ hosts, matrix }) => [hosts.scale_max, matrix.max_rows]),
    [
      [9, 40],
      [9, 40],
    ],
  );
});

test("a chip starts slowly, and ends at its target", () => {
  assert.deepEqual(
    [chipAt(CHIP, AREA, 0), chipAt(CHIP, AREA, 1)],
    [
      [10, 20],
      [110, 70],
    ],
  );
  assert.deepEqual([eased(0), eased(0.5), eased(1)], [0, 0.5, 1]);
  assert.ok(eased(0.1) < 0.1 && eased(0.9) > 0.9);
});

test("a glide is over when its time is", () => {
  assert.deepEqual([progress(50, 40), progress(50, 350), progress(50, 5000)], [0, 0.5, 1]);
});

test("hosts tile the room of their group", () => {
  const boxes = hostBoxes([group(2, 3)], { x: 0, y: 10, wide: 300, tall: 200 });
  const area = boxes.reduce((sum, { box }) => sum + box.wide * box.tall, 0);
  assert.equal(Math.round(area), 300 * 200);
  assert.deepEqual(boxes[4]?.box, { x: 100, y: 110, wide: 100, tall: 100 });
});

test("groups lie below one another, with a gap, by the root of their hosts", () => {
  const boxes = hostBoxes([group(2, 2), group(1, 1)], { x: 0, y: 0, wide: 100, tall: 314 });
  assert.equal(boxes.length, 5);
  assert.deepEqual([boxes[0]?.box.tall, boxes[4]?.box.y, boxes[4]?.box.tall], [100, 214, 100]);
});

test("bars stand on the floor of tall boxes, and begin at the left of wide ones", () => {
  const [tall, wide] = [
    { x: 0, y: 0, wide: 50, tall: 102 },
    { x: 0, y: 0, wide: 302, tall: 50 },
  ];
  assert.deepEqual([upright(tall), upright(wide)], [true, false]);
  assert.deepEqual(bar(tall, 0.5), { x: 1, y: 51, wide: 48, tall: 50 });
  assert.deepEqual(bar(wide, 0.5), { x: 1, y: 1, wide: 150, tall: 48 });
});

test("a number is written where it can be read", () => {
  const box = { x: 0, y: 0, wide: 30, tall: 40 };
  assert.equal(fontSize(7, box, 13), 13);
  assert.equal(fontSize(1234, box, 13), 27 / (0.62 * 4));
  assert.equal(fontSize(12345, box, 13), undefined);
});

test("the pointer finds what was painted last", () => {
  const below = { box: { x: 0, y: 0, wide: 100, tall: 100 }, text: "cell" };
  const above = { box: { x: 40, y: 40, wide: 10, tall: 10 }, text: "chip" };
  const found = [hit([below, above], 45, 45), hit([below, above], 5, 5), hit([below], 101, 5)];
  assert.deepEqual(
    found.map((target) => target?.text),
    ["chip", "cell", undefined],
  );
});

test("a film has no frame before the first and after the last", () => {
  assert.deepEqual(
    [-1, 0, 2, 3].map((to) => clamped(to, 3)),
    [0, 0, 2, 2],
  );
});
