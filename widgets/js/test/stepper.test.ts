import assert from "node:assert/strict";
import { test } from "node:test";
import { compareRows } from "../src/base/stepper.ts";

const HEAD = ["part", "definition"];

test("a row that changed stands below the one that it replaces", () => {
  const before = [HEAD, ["RANGE", "1 min"], ["SLIDE", "1 min"]];
  const after = [HEAD, ["RANGE", "5 min"], ["SLIDE", "1 min"]];
  assert.deepEqual(compareRows(after, before), [
    { cells: HEAD, change: "" },
    { cells: ["RANGE", "1 min"], change: "gone" },
    { cells: ["RANGE", "5 min"], change: "new" },
    { cells: ["SLIDE", "1 min"], change: "" },
  ]);
});

test("rows that are added are new, rows without a successor are gone, the head is neither", () => {
  const found = compareRows([["level"], ["joins"]], [["other"], ["streams"]]);
  assert.deepEqual(
    found.map((row) => row.change),
    ["", "new", "gone"],
  );
});

test("without rows from before nothing is compared", () => {
  const found = compareRows([HEAD, ["RANGE", "5 min"]], []);
  assert.ok(found.every((row) => row.change === ""));
});
