import assert from "node:assert/strict";
import { test } from "node:test";
import { arc } from "../src/base/stepper.ts";

test("an arc begins and ends at its nodes, and is below a way to the right or left between", () => {
  for (const [from, to] of [
    [10, 210],
    [210, 10],
  ]) {
    const way = arc([from ?? 0, 50], [to ?? 0, 50]);
    assert.deepEqual(
      [way.at(0), way.at(1)],
      [
        [from, 50],
        [to, 50],
      ],
    );
    assert.ok(way.at(0.5)[1] > 60 && way.path.startsWith(`M ${from} 50 Q`));
  }
});

test("an arc between two nodes above one another goes beside them", () => {
  const [x, y] = arc([50, 10], [50, 210]).at(0.5);
  assert.ok(Math.abs(x - 50) > 10 && y === 110);
});
