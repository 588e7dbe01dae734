import assert from "node:assert/strict";
import { test } from "node:test";
import { compareRows } from "../src/base/stepper.ts";

const HEAD = ["part", "definition"];
const plain = (text: string) => ({ text, was: "", change: "" });

test("a cell that changed has the text that it replaces; the others of its row are as before", () => {
  const before = [HEAD, ["RANGE", "1 min"], ["SLIDE", "1 min"]];
  const after = [HEAD, ["RANGE", "5 min"], ["SLIDE", "1 min"]];
  assert.deepEqual(compareRows(after, before), [
    HEAD.map(plain),
    [plain("RANGE"), { text: "5 min", was: "1 min", change: "new" }],
    ["SLIDE", "1 min"].map(plain),
  ]);
});

test("a column that is added is new, and takes the place of nothing", () => {
  const [, row] = compareRows(
    [
      ["", "a", "b"],
      ["joins", "x", "y"],
    ],
    [
      ["", "a"],
      ["joins", "x"],
    ],
  );
  assert.deepEqual(row, [plain("joins"), plain("x"), { text: "y", was: "", change: "new" }]);
});

test("rows that are added are new, rows without a successor are gone, the head is neither", () => {
  const found = compareRows([["level"], ["joins"]], [["other"], ["streams"]]);
  assert.deepEqual(
    found.map((row) => row.map((cell) => cell.change)),
    [[""], ["new"], ["gone"]],
  );
});

test("of rows that begin alike, those that stay are not taken for the one before", () => {
  const rows = [
    ["level", "key"],
    ["selections", "a"],
    ["selections", "b"],
  ];
  const found = compareRows(rows, rows.slice(0, 2));
  assert.deepEqual(found[1], ["selections", "a"].map(plain));
  assert.ok(found[2]?.every((cell) => cell.change === "new" && !cell.was));
});

test("without rows from before nothing is compared", () => {
  const found = compareRows([HEAD, ["RANGE", "5 min"]], []);
  assert.ok(found.flat().every((cell) => cell.change === ""));
});
