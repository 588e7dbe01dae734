import assert from "node:assert/strict";
import { test } from "node:test";
import { broken, type Layout, narrow, type Trace } from "../src/base/narrow.ts";

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
