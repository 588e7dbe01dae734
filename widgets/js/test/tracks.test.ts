import assert from "node:assert/strict";
import { test } from "node:test";
import type { CockpitPage, Track } from "../frames.ts";
import { heatOf, placeOf, said, spanOf, strokes, ticks, valueAt } from "../src/cockpit/tracks.ts";

const BOX = { x: 40, y: 10, wide: 200, tall: 100 };

const track = (kind: string, ...values: (number | null)[][]): Track => ({
  name: "x",
  kind,
  unit: "rows",
  top: 1,
  limit: null,
  series: values.map((each) => {
    return { name: "x", role: "main", batch: each.map((_, k) => k + 1), values: each };
  }),
});

const page = (batch: number[], last: number, tracks: Track[] = []): CockpitPage =>
  ({ timeline: { batch, last, tracks } }) as unknown as CockpitPage;

test("the axis has all batches that there are, those to come, and those of baselines", () => {
  assert.deepEqual(spanOf(page([], 1)), { first: 1, last: 1 });
  assert.deepEqual(spanOf(page([3, 4], 9)), { first: 3, last: 9 });
  assert.deepEqual(spanOf(page([1], 2, [track("lines", [1, 2, 3, 4])])), { first: 1, last: 4 });
});

test("each batch has a column of its own", () => {
  const span = { first: 3, last: 12 };
  assert.deepEqual([placeOf(3, span, BOX), placeOf(13, span, BOX)], [40, 240]);
});

test("eight batches at most are named", () => {
  for (const last of [1, 9, 10, 11, 48, 400]) {
    const named = ticks({ first: 1, last });
    assert.ok(named.length <= 8 && (named.at(-1) ?? 0) <= last, `to ${last}: ${named}`);
  }
  assert.deepEqual(ticks({ first: 5, last: 7 }), [5, 6, 7]);
});

test("beside a track stands the sum of its bars, or the value of its main line", () => {
  assert.equal(valueAt(track("bars", [1, 2], [3, 4]), 2), 6);
  assert.equal(valueAt(track("lines", [1, 2], [3, 4]), 2), 2);
  assert.equal(valueAt(track("bars", [null]), 1), null);
  assert.equal(valueAt(track("lines", [1]), 7), null);
});

test("values are said with their unit", () => {
  assert.deepEqual(
    [said(0.338, "s"), said(7041, "rows"), said(null, "s")],
    ["0.34 s", "7,041 rows", "not known"],
  );
});

test("a curve is broken where values are unknown", () => {
  assert.deepEqual(strokes({ batch: [4, 5, 6, 7], values: [1, null, 2, 3] }), [
    [[4, 1]],
    [
      [6, 2],
      [7, 3],
    ],
  ]);
});

test("the rows of colour are those of the map, or of a measure of the hosts", () => {
  const own = { ...track("heat", [3, null], [1, 9]), name: "results by query", top: 9 };
  const hosts = { batch: [1, 2], names: ["stored"], values: [[[5]], [[6, 7]]] };
  const shown = { ...page([1, 2], 2, [own]), hosts } as CockpitPage;
  const rows = heatOf(shown, "");
  assert.deepEqual([rows?.name, rows?.of, rows?.top], ["results", "query", 9]);
  assert.deepEqual(rows?.rows[0], { name: "x", values: [3, 0] });
  const held = heatOf(shown, "stored");
  assert.deepEqual([held?.name, held?.of, held?.top], ["rows", "host", 7]);
  const values = held?.rows.map((row) => [row.name, row.values]);
  assert.deepEqual(values, [
    ["host:0", [5, 6]],
    ["host:1", [0, 7]],
  ]);
});
