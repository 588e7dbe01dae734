import assert from "node:assert/strict";
import { test } from "node:test";
import type { CubeFrame, HotKeysFrame, HubFrame, ShedBar, SheddingFrame } from "../frames.ts";
import { numberIn } from "../src/base/canvas_map.ts";
import { percent } from "../src/base/format.ts";
import { spreadOut } from "../src/base/geometry.ts";
import { inspectSpread, partOf } from "../src/hotkeys/spread.ts";
import { inspectHub } from "../src/hub/network.ts";
import { inspectCells, reached, unitBox } from "../src/hypercube/cells.ts";
import { expectedFor, inspectShares, yieldCurve } from "../src/shedding/shares.ts";

test("a selection has a kind and a number", () => {
  assert.equal(numberIn("host", "host:12"), 12);
  assert.ok(["", "host", "value:3"].every((selected) => Number.isNaN(numberIn("host", selected))));
});

const bar = (age_slice: number, pairs: number, matches: number, share: number): ShedBar => {
  return { stream: 0, window: 1, age_slice, pairs, matches, share };
};

test("the curve of results begins with the pairs that give most, and ends at all of them", () => {
  const curve = yieldCurve([bar(0, 50, 1, 0), bar(1, 50, 3, 1)]);
  assert.deepEqual(curve, [
    [0, 0],
    [0.5, 0.75],
    [1, 1],
  ]);
  assert.deepEqual(
    [0, 0.25, 0.5, 0.75, 1].map((work) => expectedFor(work, curve)),
    [0, 0.375, 0.75, 0.875, 1],
  );
  assert.deepEqual(yieldCurve([]), [[0, 0]]);
  assert.deepEqual([0, 0.002, 0.255, 1].map(percent), ["0 %", "<1 %", "26 %", "100 %"]);
});

test("an age slice says how much of it is compared", () => {
  const frame = {
    streams: ["n", "m"],
    lengths: [0, 2e6],
    is_learned: true,
    items: {
      stream: [0],
      window: [1],
      age_slice: [3],
      pairs: [900],
      matches: [1.134],
      share: [0.6],
    },
  } as unknown as SheddingFrame;
  const detail = inspectShares(frame, "item:0:1:3");
  assert.equal(detail?.words, "new rows of n against old rows of m, 6 s to 8 s");
  assert.deepEqual(detail?.pairs.slice(0, 3), [
    ["pairs in this batch", "900"],
    ["matches in 1,000 pairs", "1.13"],
    ["compared", "60 %"],
  ]);
  assert.equal(inspectShares(frame, "item:1:0:3"), undefined);
});

test("a value is shared evenly by its hosts", () => {
  const frame = {
    values: {
      value: [564, 7, 9],
      share: [0.12, 0.05, 0.07],
      hosts: [[0, 1, 3], [1], [0, 2, 3]],
      copied: [[], [], ["d"]],
      copied_share: [0, 0, 0.01],
    },
    stored: [1, 1, 1, 1],
    since: 14,
  } as unknown as HotKeysFrame;
  const once = { copied: [], copied_share: 0 };
  assert.equal(partOf({ value: 7, share: 0.3, hosts: [1, 2, 3], ...once }), 0.3 / 3);
  assert.deepEqual(inspectSpread(frame, "value:564")?.pairs.slice(0, 4), [
    ["of all rows", "12.0 %"],
    ["hosts that share it", "0, 1, 3"],
    ["of all rows, on each of them", "4.0 %"],
    ["rows on all of them", "none"],
  ]);
  assert.deepEqual(inspectSpread(frame, "value:9")?.pairs.slice(2, 4), [
    ["of all rows, on each of them", "3.0 %"],
    ["rows on all of them", "of d"],
  ]);
  assert.deepEqual(inspectSpread(frame, "host:1")?.pairs, [
    ["value 564", "4.0 %"],
    ["value 7", "5.0 %"],
  ]);
  assert.equal(inspectSpread(frame, "value:8"), undefined);
});

const cube = {
  streams: ["a", "b", "c"],
  dimensions: {
    streams: [
      [0, 1],
      [1, 2],
    ],
    parts: [2, 3],
  },
  cells: {
    host: [0, 1, 2, 3, 4, 5],
    parts: [
      [0, 0],
      [0, 1],
      [0, 2],
      [1, 0],
      [1, 1],
      [1, 2],
    ],
  },
  idle: [6],
  reach: [3, 1, 2],
  rows: [7, 8, 9],
  received: [1, 1, 1],
} as unknown as CubeFrame;

test("a row reaches the cells along the dimensions that its stream lacks", () => {
  const hosts = (stream: number) => reached(cube, stream).map((cells) => cells.map((c) => c.host));
  assert.deepEqual(
    [hosts(0), hosts(2)],
    [
      [
        [0, 1, 2],
        [3, 4, 5],
      ],
      [
        [0, 3],
        [1, 4],
        [2, 5],
      ],
    ],
  );
  assert.deepEqual(hosts(1).flat(), [0, 1, 2, 3, 4, 5]);
  assert.equal(hosts(1).length, 6);
});

test("cells fill a unit square without overlap, also in three dimensions", () => {
  const sizes = [2, 3, 2];
  const boxes = [0, 1].flatMap((a) =>
    [0, 1, 2].flatMap((b) => [0, 1].map((c) => unitBox([a, b, c], sizes))),
  );
  const places = new Set(boxes.map(({ x, y }) => `${x.toFixed(6)} ${y.toFixed(6)}`));
  assert.equal(places.size, 12);
  const area = boxes.reduce((sum, { wide, tall }) => sum + wide * tall, 0);
  assert.ok(Math.abs(area - 1) < 1e-9);
});

test("a host of a cube has a part by each equality, a stream the equalities that hash it", () => {
  assert.deepEqual(inspectCells(cube, "host:5")?.pairs, [
    ["part by a = b", "2 of 2"],
    ["part by b = c", "3 of 3"],
  ]);
  assert.equal(inspectCells(cube, "stream:1")?.words, "hashed by a = b and b = c");
  assert.equal(inspectCells(cube, "host:6")?.words, "has no cell");
  assert.equal(inspectCells(cube, "host:9"), undefined);
});

const hub = {
  nodes: { name: ["N1", "SINK4"], role: ["node", "sink"], is_down: [true, false] },
  operators: {
    id: [2],
    node: ["N1"],
    streams: ["flights ⋈ checkins"],
    reads: [["flights", "operator 0"]],
    demands: [2],
    results: [178],
    live: [40],
    live_bytes: [2500],
  },
  queries: {
    name: ["late"],
    sink: ["SINK4"],
    operator: [2],
    sql: ["SELECT 1"],
    reuse_kind: ["relaxed"],
    options: [["a new join at N2", "operator 2 at N1"]],
    costs: [[3.48, 0.196]],
  },
  flows: { source: ["N1"], target: ["SINK4"], stream: [-1], bytes: [1200] },
} as unknown as HubFrame;

test("a query says what was considered for it, and what serves it", () => {
  const detail = inspectHub(hub, "query:late");
  assert.equal(detail?.words, "asked at SINK4, answered by operator 2: flights ⋈ checkins at N1");
  assert.deepEqual(detail?.pairs.slice(0, 5), [
    ["a running operator was widened", ""],
    ["text", "SELECT 1"],
    ["considered: bytes in transit, modelled", ""],
    ["a new join at N2", "3.48"],
    ["operator 2 at N1", "0.196"],
  ]);
  assert.deepEqual(detail?.pairs.at(-1), ["rows that it holds", "40, 2.5 kB"]);
  assert.equal(inspectHub(hub, "operator:2")?.words, "flights ⋈ checkins at N1");
  assert.equal(inspectHub(hub, "query:other"), undefined);
});

test("a node says whether it is down, and its bytes", () => {
  assert.equal(inspectHub(hub, "node:N1")?.words, "down");
  assert.deepEqual(inspectHub(hub, "node:N1")?.pairs, [
    ["operator 2 holds", "40 rows"],
    ["bytes in, this batch", "0 B"],
    ["bytes out, this batch", "1.2 kB"],
  ]);
  assert.equal(inspectHub(hub, "node:N9"), undefined);
});

test("nodes of a hub do not cover one another, and stay on a narrow map", () => {
  const area = { x: 2, y: 2, wide: 392, tall: 300 };
  const size = { wide: 90, tall: 44 };
  const places = [
    [20, 0],
    [45, 4],
    [350, 2],
    [330, 2],
    [45, 4],
    [200, 290],
  ];
  const boxes = places.map(([x = 0, y = 0]) => ({ x, y, ...size }));
  const placed = spreadOut(boxes, area, 4);
  placed.forEach((a, k) => {
    assert.ok(a.x >= 2 && a.y >= 2 && a.x + a.wide <= 394 && a.y + a.tall <= 302);
    for (const b of placed.slice(k + 1)) {
      assert.ok(Math.abs(a.x - b.x) > 93 || Math.abs(a.y - b.y) > 47, `${k}`);
    }
  });
  const apart = [
    { x: 2, y: 2, ...size },
    { x: 100, y: 90, ...size },
  ];
  assert.deepEqual(spreadOut(apart, area, 4), apart, "what is apart stays");
});
