import assert from "node:assert/strict";
import { test } from "node:test";
import { fitting, panelTitles } from "../src/base/titles.ts";

test("a title is broken where its chart is narrow, and whole again where it is wide", () => {
  const given = "Segments by host: Aligned, 12 hosts (modelled run)";
  const narrow = fitting(given, undefined, 300);
  assert.deepEqual(narrow, {
    given,
    made: "Segments by host: Aligned, 12 hosts<br>(modelled run)",
  });
  assert.deepEqual(fitting(narrow.made, narrow, 300), narrow);
  assert.deepEqual(fitting(narrow.made, narrow, 900), { given, made: given });
  assert.equal(fitting("Another title", narrow, 900).given, "Another title");
});

test("titles of panels side by side are broken by the width of a panel", () => {
  const place = { xref: "paper", yref: "paper", yanchor: "bottom", showarrow: false, y: 1 };
  const notes = [
    { ...place, text: "state (tuples, modelled)", x: 0.2, font: { size: 16 } },
    { ...place, text: "comparisons per second (modelled)", x: 0.8, font: { size: 16 } },
    { ...place, text: "master r → t", x: 5, xref: "x" },
    { ...place, text: "a title that stands alone over its panel", x: 0.5, y: 0.4 },
  ];
  const narrow = panelTitles(notes, {}, 300);
  const made = ["state (tuples,<br>modelled)", "comparisons per<br>second (modelled)"];
  assert.deepEqual(Object.keys(narrow), ["0", "1"]);
  assert.deepEqual([narrow[0]?.made, narrow[1]?.made], made);
  const drawn = notes.map((note, k) => ({
    ...note,
    text: narrow[k]?.made ?? note.text,
    font: { size: 12 },
  }));
  assert.deepEqual(panelTitles(drawn, narrow, 300), narrow);
  const wide = panelTitles(drawn, narrow, 0);
  const text = "state (tuples, modelled)";
  assert.deepEqual(wide[0], { given: text, made: text, size: 16 });
});
