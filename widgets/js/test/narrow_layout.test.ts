import assert from "node:assert/strict";
import { test } from "node:test";
import {
  broken,
  columnsIn,
  type Layout,
  narrow,
  ours,
  panelsOf,
  type Trace,
} from "../src/base/narrow_layout.ts";

const paper = { xref: "paper", yref: "paper" };

/** Two panels side by side in two rows, as plotly has them. */
function facets(): [Layout, Trace[]] {
  const wide: [number, number][] = [
    [0, 0.48],
    [0.52, 1],
  ];
  const axes = ["", "2", "3", "4"];
  const layout: Layout = { title: { text: "A title that goes on and on and on for long" } };
  axes.forEach((n, k) => {
    const [low, high] = k < 2 ? [0, 0.46] : [0.54, 1];
    layout[`xaxis${n}`] = { domain: wide[k % 2], title: k < 2 ? { text: "rate" } : {} };
    layout[`yaxis${n}`] = { domain: [low, high], title: k % 2 ? {} : { text: "share" } };
  });
  layout.annotations = [
    { ...paper, text: "left", x: 0.24, y: 1 },
    { ...paper, text: "right", x: 0.76, y: 1 },
    { ...paper, text: "lower", x: 0.98, y: 0.23, textangle: 90 },
    { ...paper, text: "upper", x: 0.98, y: 0.77, textangle: 90 },
    { text: "in a panel", x: 3, y: 4, xref: "x", yref: "y" },
  ];
  const traces = axes.map((n) => ({ name: `curve ${n}`, xaxis: `x${n}`, yaxis: `y${n}` }));
  return [layout, traces];
}

type Panel = { domain: [number, number]; title: { text: string }; showticklabels: boolean };

test("panels stand below each other, none over another, each with its titles", () => {
  const [layout, traces] = facets();
  const before = structuredClone(layout);
  const made = narrow(layout, traces, 400);
  assert.deepEqual(layout, before, "the one given stays as it is");
  const order = ["3", "4", "", "2"].map((n) => made[`yaxis${n}`] as Panel);
  for (const [k, panel] of order.entries()) {
    const below = order[k + 1];
    assert.ok(panel.domain[0] < panel.domain[1]);
    if (below) assert.ok(below.domain[1] < panel.domain[0] - 0.05);
    assert.deepEqual([panel.title.text, panel.showticklabels], ["share", true]);
  }
  for (const n of ["", "2", "3", "4"]) {
    const { domain, title } = made[`xaxis${n}`] as Panel;
    assert.deepEqual([domain, title.text], [[0, 1], "rate"]);
  }
  const notes = (made.annotations ?? []).map(({ text }) => text);
  const titles = ["left · upper", "right · upper", "left · lower", "right · lower"];
  assert.deepEqual(notes, ["in a panel", ...titles]);
  assert.ok(made.height && made.height > 4 * 200);
});

test("a chart of one panel keeps its axes, and has its legend below", () => {
  const layout: Layout = { title: { text: "short" }, xaxis: { domain: [0, 0.7] } };
  const made = narrow(layout, [{ name: "a" }, { name: "b" }], 400);
  assert.deepEqual((made.xaxis as Panel).domain, [0, 0.7]);
  assert.equal((made.legend as { orientation: string }).orientation, "h");
});

test("titles break between words, and tags take no room", () => {
  assert.equal(broken("one two three", 7), "one two<br>three");
  assert.equal(broken("<b>one</b> two<br>x", 7), "<b>one</b> two<br>x");
  assert.equal(broken("longerthanfits", 5), "longerthanfits");
});

test("where panels find no room side by side, fewer do; a wide chart is as it was given", () => {
  const [layout, traces] = facets();
  assert.deepEqual(
    [400, 640, 1080].map((width) => columnsIn(layout, traces, width)),
    [1, 0, 0],
  );
  layout.title = { text: "A title in 90 letters, ".repeat(4) };
  assert.deepEqual(
    [700, 1080].map((width) => columnsIn(layout, traces, width)),
    [2, 0],
  );
  const row: Layout = {};
  const four = [1, 2, 3, 4].map((k): Trace => ({ xaxis: `x${k}`, yaxis: `y${k}` }));
  four.forEach((_, k) => {
    row[`xaxis${k + 1}`] = { domain: [k / 4, k / 4 + 0.2], title: { text: "m" } };
    row[`yaxis${k + 1}`] = { domain: [0, 1] };
  });
  row.annotations = four.map((_, k) => ({
    ...paper,
    text: `the title of panel ${k} and what it is against`,
    x: k / 4 + 0.1,
    y: 1,
  }));
  assert.deepEqual(
    [600, 850, 1080, 1500].map((width) => columnsIn(row, four, width)),
    [1, 2, 3, 0],
  );
  const made = narrow(row, four, 850, 2);
  const [a, b, c] = ["1", "2", "3"].map((n) => made[`xaxis${n}`] as Panel);
  assert.ok(a && b && c && a.domain[1] < b.domain[0] && b.domain[1] <= 1);
  assert.deepEqual(c.domain, a.domain);
  const [first, third] = ["1", "3"].map((n) => made[`yaxis${n}`] as Panel);
  assert.ok(first && third && third.domain[1] < first.domain[0]);
  assert.ok((made.annotations ?? []).every(({ text }) => text?.includes("<br>") === false));
  const tight = narrow(row, four, 640, 2);
  assert.ok((tight.annotations ?? []).every(({ text }) => text?.includes("<br>")));
});

test("names below an axis that find no room are slanted, and what is below makes room", () => {
  const layout: Layout = { xaxis: { domain: [0, 1] } };
  const names = ["isolated", "pull-up", "slices, Mem-Opt", "slices, CPU-Opt", "partition"];
  const drawn = (x: string[]) => narrow(layout, [{ name: "a", x }], 400);
  const short = drawn(names.map((_, k) => `${k}`));
  const long = drawn(names);
  const angle = (made: Layout) => (made.xaxis as { tickangle?: number }).tickangle;
  assert.deepEqual([angle(short), angle(long)], [undefined, -45]);
  assert.ok((long.height ?? 0) > (short.height ?? 0) + 50);
});

test("only charts of ours that have traces are fitted", () => {
  const traces = [{ name: "a" }];
  const asked: [Layout, Trace[]][] = [
    [{ meta: "braid" }, traces],
    [{ meta: "braid" }, []],
    [{}, traces],
    [{ meta: { braid: 1 } }, traces],
  ];
  assert.deepEqual(
    asked.map(([layout, each]) => ours(layout, each)),
    [true, false, false, false],
  );
});

test("looking at a chart leaves its layout as it is, without axes too", () => {
  const pie: Layout = { title: { text: "a pie" } };
  const before = structuredClone(pie);
  const traces: Trace[] = [{ name: "a" }];
  assert.equal(panelsOf(pie, traces).length, 1);
  assert.equal(columnsIn(pie, traces, 900), 0);
  assert.deepEqual(pie, before);
});
