import assert from "node:assert/strict";
import { test } from "node:test";
import type { SharedPiece } from "../src/frames.ts";
import { bySector, sizes } from "../src/slices/shared_ring.ts";

const piece = (stream: number, host: number, ages: string): SharedPiece => {
  return { stream, host, ages, rows: 1, share: 1, queries: [] };
};

test("pieces are by stream and host, and keep their order", () => {
  const found = bySector([piece(0, 1, "a"), piece(0, 2, "b"), piece(0, 1, "c"), piece(1, 1, "d")]);
  assert.deepEqual([...found.keys()], ["0:1", "0:2", "1:1"]);
  assert.deepEqual(
    found.get("0:1")?.map(({ ages }) => ages),
    ["a", "c"],
  );
});

test("many hosts and queries are drawn smaller, in a taller picture", () => {
  const [few, many] = [sizes(3, 3, 2), sizes(24, 3, 40)];
  assert.ok(many.bar < few.bar && many.row < few.row && many.tall > few.tall);
});
