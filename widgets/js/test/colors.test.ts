import assert from "node:assert/strict";
import { test } from "node:test";
import { cycled } from "../src/base/colors.ts";

test("colours begin again after the last", () => {
  assert.deepEqual(
    [0, 1, 2].map((k) => cycled(["#111111", "#222222"], k)),
    ["#111111", "#222222", "#111111"],
  );
});
