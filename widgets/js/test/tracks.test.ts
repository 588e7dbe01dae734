import assert from "node:assert/strict";
import { test } from "node:test";
import type { Annotation, CockpitPage, Track } from "../frames.ts";
import { heatOf, orderFlags, said, spanOf } from "../src/cockpit/tracks.ts";

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
  assert.deepEqual(spanOf(page([], 1)), [1, 1]);
  assert.deepEqual(spanOf(page([3, 4], 9)), [3, 9]);
  assert.deepEqual(spanOf(page([1], 2, [track("lines", [1, 2, 3, 4])])), [1, 4]);
});

test("beside a track stands the sum of its bars, or the value of its main line", () => {
  assert.equal(said(track("bars", [1, 2], [3, 4000]), 2), "4,002 rows");
  assert.equal(said(track("lines", [1, 2], [3, 4]), 2), "2 rows");
  assert.equal(said({ ...track("bars", [0.3, null], [0.038, null]), unit: "s" }, 1), "0.34 s");
  assert.equal(said(track("bars", [null]), 1), "not known");
  assert.equal(said(track("lines", [1]), 7), "not known");
});

test("the rows of colour are those of the map, or of a measure of the hosts", () => {
  const own = { ...track("heat", [3, null], [1, 9]), name: "results by query", top: 9 };
  const hosts = { batch: [1, 2], names: ["rows held"], values: [[[5]], [[6, 7]]] };
  const shown = { ...page([1, 2], 2, [own]), hosts, host_word: "node" } as CockpitPage;
  assert.equal(heatOf(shown, ""), own);
  const held = heatOf(shown, "rows held");
  assert.deepEqual([held?.name, held?.top], ["rows held by node", 7]);
  const values = held?.series.map((row) => [row.name, row.values]);
  assert.deepEqual(values, [
    ["host:0", [5, 6]],
    ["host:1", [0, 7]],
  ]);
});

test("the label at the playhead comes first, then those of all faults", () => {
  const flag = (batch: number, kind: string, short = `${kind} ${batch}`) =>
    ({ batch, kind, short }) as Annotation;
  const flags = [flag(1, "change"), flag(2, "fault"), flag(3, "query"), flag(3, "minor", "")];
  const names = (at: number) => orderFlags(flags, at).map((all) => all.map((each) => each.short));
  assert.deepEqual(names(4), [["query 3", "fault 2"], ["change 1"]]);
  assert.deepEqual(names(2), [["fault 2"], ["change 1", "query 3"]]);
  assert.deepEqual(names(0), [["fault 2"], ["change 1", "query 3"]]);
});
