import assert from "node:assert/strict";
import { test } from "node:test";
import { arc } from "../src/base/stepper.ts";

const read = (path: string): number[] => path.match(/[-\d.]+/g)?.map(Number) ?? [];

test("an arc begins and ends at its nodes, and is below a way to the right or left between", () => {
  for (const [from = 0, to = 0] of [
    [10, 210],
    [210, 10],
  ]) {
    const [x1, y1, , below, x2, y2] = read(arc([from, 50], [to, 50]));
    assert.deepEqual([x1, y1, x2, y2], [from, 50, to, 50]);
    assert.ok(Number(below) > 70);
  }
});

test("an arc between two nodes above one another goes beside them", () => {
  const [, , x, y] = read(arc([50, 10], [50, 210]));
  assert.ok(Math.abs(Number(x) - 50) > 20 && y === 110);
});
