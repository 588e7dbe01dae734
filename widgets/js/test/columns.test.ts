import assert from "node:assert/strict";
import { test } from "node:test";
import { type Columns, records } from "../src/base/columns.ts";

interface Pair {
  host: number;
  text: string;
}

test("columns are read as records", () => {
  const columns: Columns<Pair> = { host: [3, 4], text: ["a", "b"] };
  assert.deepEqual(records(columns), [
    { host: 3, text: "a" },
    { host: 4, text: "b" },
  ]);
});

test("no records are in empty columns", () => {
  assert.deepEqual(records({ host: [], text: [] }), []);
});
