import assert from "node:assert/strict";
import { test } from "node:test";
import type { CockpitPage, Track } from "../frames.ts";
import { heatOf, said, spanOf, strokes, ticks } from "../src/cockpit/tracks.ts";

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

test("eight batches at most are named", () => {
  for (const last of [1, 9, 10, 11, 48, 400]) {
    const named = ticks({ first: 1, last }, 8);
    assert.ok(named.length <= 8 && (named.at(-1) ?? 0) <= last, `to ${last}: ${named}`);
  }
  assert.deepEqual(ticks({ first: 5, last: 7 }, 8), [5, 6, 7]);
  assert.deepEqual(ticks({ first: 1, last: 48 }, 4), [12, 24, 36, 48]);
});

test("beside a track stands the sum of its bars, or the value of its main line", () => {
  assert.equal(said(track("bars", [1, 2], [3, 4000]), 2), "4,002 rows");
  assert.equal(said(track("lines", [1, 2], [3, 4]), 2), "2 rows");
  assert.equal(said({ ...track("bars", [0.3, null], [0.038, null]), unit: "s" }, 1), "0.34 s");
  assert.equal(said(track("bars", [null]), 1), "not known");
  assert.equal(said(track("lines", [1]), 7), "not known");
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
  assert.equal(heatOf(shown, ""), own);
  const held = heatOf(shown, "stored");
  assert.deepEqual([held?.name, held?.top], ["rows by host", 7]);
  const values = held?.series.map((row) => [row.name, row.values]);
  assert.deepEqual(values, [
    ["host:0", [5, 6]],
    ["host:1", [0, 7]],
  ]);
});
