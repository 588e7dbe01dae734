import assert from "node:assert/strict";
import { test } from "node:test";
import type { BatchFrame, CockpitPage, GridFrame, HostRows } from "../frames.ts";
import { rowOf as heldRow } from "../src/base/block_map.ts";
import { costOfResult } from "../src/cockpit/condition_flow.ts";
import { blocksOf, didPairs } from "../src/cockpit/inspector.ts";
import { longest } from "../src/cockpit/linked_views.ts";
import { extend, KEPT, openingOf, positionOf, reasonOf, scaled } from "../src/cockpit/page.ts";
import { answerOf } from "../src/cockpit/waits.ts";

function frame(batch: number, top = 1): BatchFrame {
  const grid = { scale_max: top, rows: [top, 1], across: 0 } as unknown as GridFrame;
  const facts = { name: [], value: [], tooltip: [] };
  const verdict = { word: "", figure: "", tone: "none" };
  const none = { step: [], text: [], reached: [], rows_in: [], rows_out: [], seconds: [] };
  const flow = { rows_in: 0, candidates: 0, results: 0, access: "", seconds: null, parts: none };
  const title = `batch ${batch}`;
  return { batch, title, key_figures: facts, verdict, flow, answers: [], state_map: { grid } };
}

function page(batches: number[], more: Partial<CockpitPage> = {}): CockpitPage {
  return {
    state: "live",
    name: "",
    condition: "",
    note: "",
    seconds_left: "",
    seconds_since_commit: null,
    frames: batches.map((batch) => frame(batch, batch)),
    timeline: { batch: batches, last: 1, tracks: [] },
    hosts: { batch: batches, names: ["stored"], values: batches.map((batch) => [[batch]]) },
    annotations: [],
    what_if_placements: [],
    host_word: "host",
    what_if_message: "",
    symptoms: [],
    touches: [],
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
    shown.frames.map(({ state_map: map }) => map.grid?.scale_max);
  assert.deepEqual(tops(scaled(page([1, 5, 2]))), [5, 5, 5]);
  assert.deepEqual(tops(extend(page([1, 2]), page([3]))), [3, 3, 3]);
});

test("a run without end needs no more memory", () => {
  const many = Array.from({ length: KEPT }, (_, k) => k + 1);
  const whole = extend(page(many), page([KEPT + 1]));
  assert.deepEqual([whole.frames.length, whole.frames[0]?.batch], [KEPT, 2]);
  assert.deepEqual([whole.hosts.batch.length, whole.hosts.batch[0]], [KEPT, 2]);
});

test("measures that appear only now were 0 before", () => {
  const hosts: HostRows = { batch: [3], names: ["moved", "stored"], values: [[[1], [3]]] };
  const { batch, names, values } = extend(page([1, 2]), page([3], { hosts })).hosts;
  assert.deepEqual([batch, names], [[1, 2, 3], hosts.names]);
  assert.deepEqual(values, [
    [[0], [1]],
    [[0], [2]],
    [[1], [3]],
  ]);
});

test("a batch without a picture is shown by the one before", () => {
  const { frames } = page([2, 4, 6]);
  assert.deepEqual(
    [1, 2, 3, 6, 9].map((batch) => positionOf(frames, batch)),
    [0, 0, 0, 2, 2],
  );
});

test("what a host did is said with its unit, and of all hosts the sum", () => {
  const hosts: HostRows = {
    batch: [7],
    names: ["rows held", "pairs compared", "seconds of work"],
    values: [
      [
        [10, 5],
        [2500, 1],
        [0.25, 0.5],
      ],
    ],
  };
  const shown = page([7], { hosts });
  assert.deepEqual(didPairs(shown, 7, 0), [
    ["rows held", "10"],
    ["pairs compared", "2,500"],
    ["seconds of work", "0.250 s"],
  ]);
  assert.deepEqual(didPairs(shown, 7)[0], ["rows held", "15"]);
});

const flag = (batch: number, rows: number, short = "", text = "") => {
  return { batch, end: null, short, text, kind: "change", rows, lost: [] };
};

test("a recording opens at the decision that moves most rows", () => {
  const batches = [1, 2, 3, 4, 5, 6];
  const flags = [flag(2, 10), flag(4, 90), flag(5, 20)];
  assert.equal(openingOf(page(batches, { annotations: flags })), 3);
  assert.equal(openingOf(page(batches)), 3, "else at 60 percent");
  assert.equal(openingOf(page([1])), 0);
});

test("rows of the fallback map get narrow, but never vanish", () => {
  assert.ok(heldRow(2, 340) === 40 && heldRow(1000, 340) === 10);
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

test("answers are said by stream", () => {
  const flow = {
    stream: 0,
    name: "a",
    held: 90,
    waiting: 40,
    answered: 1200,
    unmatched: 7,
    total_answered: 1300,
    total_unmatched: 8,
  };
  const done = "1,200 answered in this batch, 7 without a partner";
  assert.equal(answerOf(flow), `40 of a wait; ${done}; so far 1,300, 8 without`);
  assert.match(answerOf({ ...flow, answered: 0 }), /none answered/);
});

test("the reason is that of the last decision with a label, or of the last one", () => {
  const flags = [
    flag(1, 0, "8 × 4", "batch 1: it grows"),
    flag(2, 0, "", "grid: batch 2: it goes on"),
  ];
  assert.deepEqual(reasonOf(flags, 0), ["", "No decision yet."]);
  assert.deepEqual(reasonOf(flags, 3), ["batch 1: ", "it grows."]);
  assert.deepEqual(reasonOf(flags.slice(1), 3), ["grid: batch 2: ", "it goes on."]);
});

test("many pairs for a result are said of what was measured, not of a model", () => {
  const costly = { flow: { candidates: 26_800, results: 200 } } as BatchFrame;
  const cost = (state: string, each = costly) => costOfResult({ state } as CockpitPage, each);
  assert.equal(cost("live"), "134 pairs are looked at for one result");
  assert.equal(cost("modelled"), "");
  assert.equal(cost("live", { flow: { candidates: 900, results: 0 } } as BatchFrame), "");
});
