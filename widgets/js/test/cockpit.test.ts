import assert from "node:assert/strict";
import { test } from "node:test";
import { rowOf as heldRow } from "../src/base/block_map.ts";
import { blocksOf, hostOf } from "../src/cockpit/block_details.ts";
import { batchAt, didWords, rowOf, within } from "../src/cockpit/lines.ts";
import { longest } from "../src/cockpit/linked_views.ts";
import { extend, KEPT, positionOf, scaled } from "../src/cockpit/page.ts";
import type { BatchFrame, CockpitPage, GridFrame, HostRows } from "../src/frames.ts";

const BOX = { x: 40, y: 0, wide: 100, tall: 50 };

function frame(batch: number, top = 1): BatchFrame {
  const grid = { hosts: { scale_max: top }, matrix: { max_rows: top } } as unknown as GridFrame;
  const facts = { name: [], value: [], tooltip: [] };
  return { batch, title: `batch ${batch}`, key_figures: facts, state_map: { grid } };
}

function page(batches: number[], more: Partial<CockpitPage> = {}): CockpitPage {
  return {
    state: "live",
    note: "",
    seconds_left: "",
    seconds_since_commit: null,
    frames: batches.map((batch) => frame(batch, batch)),
    timeline: { title: "", axis: "batch", batch: batches, last: 1, migrations: [], panels: [] },
    hosts: { batch: batches, names: ["stored"], values: batches.map((batch) => [[batch]]) },
    annotations: [],
    what_if_placements: [],
    what_if_message: "",
    ...more,
  };
}

test("what comes is put to what is there, and nothing is there twice", () => {
  const whole = extend(page([1, 2]), page([2, 3], { state: "recorded" }));
  assert.deepEqual(
    whole.frames.map(({ batch }) => batch),
    [1, 2, 3],
  );
  assert.deepEqual(whole.hosts.batch, [1, 2, 3]);
  assert.deepEqual(whole.hosts.values, [[[1]], [[2]], [[3]]]);
  assert.equal(whole.state, "recorded");
  assert.deepEqual(extend(whole, page([3])).hosts.batch, [1, 2, 3]);
});

test("what comes puts all that is there on its scale", () => {
  const tops = (shown: CockpitPage) =>
    shown.frames.map(({ state_map: map }) => map.grid?.hosts.scale_max);
  assert.deepEqual(tops(scaled(page([1, 5, 2]))), [5, 5, 5]);
  assert.deepEqual(tops(extend(page([1, 2]), page([3]))), [3, 3, 3]);
});

test("a run without end needs no more memory", () => {
  const many = Array.from({ length: KEPT }, (_, k) => k + 1);
  const whole = extend(page(many), page([KEPT + 1]));
  assert.deepEqual([whole.frames.length, whole.frames[0]?.batch], [KEPT, 2]);
  assert.deepEqual([whole.hosts.batch.length, whole.hosts.batch[0]], [KEPT, 2]);
});

test("measures that appear only now begin the hosts' rows anew", () => {
  const hosts: HostRows = { batch: [3], names: ["stored", "moved"], values: [[[3], [1]]] };
  assert.deepEqual(extend(page([1, 2]), page([3], { hosts })).hosts, hosts);
});

test("a batch without a picture is shown by the one before", () => {
  const { frames } = page([2, 4, 6]);
  assert.deepEqual(
    [1, 2, 3, 6, 9].map((batch) => positionOf(frames, batch)),
    [0, 0, 0, 2, 2],
  );
});

test("the pointer is at the nearest batch", () => {
  const span = { first: 1, last: 11 };
  assert.deepEqual(
    [0, 40, 44, 46, 140, 999].map((x) => batchAt(x, span, BOX)),
    [1, 1, 1, 2, 11, 11],
  );
});

test("a stretch has two batches at least, and lies in the run", () => {
  const whole = { first: 1, last: 10 };
  assert.deepEqual(within(7, 3, whole), { first: 3, last: 7 });
  assert.deepEqual(within(10, 10, whole), { first: 9, last: 10 });
  assert.deepEqual(within(-4, 40, whole), whole);
});

test("what a host did is said with its unit", () => {
  const rows: HostRows = {
    batch: [7],
    names: ["stored", "compared", "shed", "busy"],
    values: [[[10], [2500], [40], [0.25]]],
  };
  assert.equal(
    didWords(rows, 0, 0),
    "host 0, batch 7\nstored 10 tuples\ncompared 2.5k pairs\nshed 40 pairs\nbusy 0.250 s",
  );
});

test("rows get narrow, but never vanish", () => {
  assert.deepEqual([rowOf(4), rowOf(64), rowOf(1000)], [9, 2, 2]);
  assert.ok(heldRow(2) === 40 && heldRow(1000) === 10);
});

test("what is clicked says which host it is", () => {
  assert.equal(hostOf("host 12, row 1, column 0: 7 tuples stored"), 12);
  assert.equal(hostOf("block 4: 9 tuples of r on host 3"), 3);
  assert.equal(hostOf("node 5: 120"), 5);
  assert.equal(hostOf("batch 7: (8, 8) to (16, 4)"), undefined);
});

test("blocks are typed with anything between them", () => {
  assert.deepEqual(blocksOf("blocks 7, 12"), [7, 12]);
  assert.deepEqual(blocksOf(" "), []);
});

test("side by side, the run that goes on longest leads; the others stay at their last batch", () => {
  const [short, long] = [page([1, 2]), page([1, 2, 3, 4])];
  const frames = longest([short, long]);
  assert.equal(frames.at(-1)?.batch, 4);
  assert.deepEqual(
    frames.map(({ batch }) => short.frames[positionOf(short.frames, batch)]?.batch),
    [1, 2, 2, 2],
  );
  assert.deepEqual(longest([]), []);
});
