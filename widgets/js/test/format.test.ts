import assert from "node:assert/strict";
import { test } from "node:test";
import { count, short } from "../src/base/format.ts";

test("numbers have commas between thousands, and are rounded", () => {
  assert.deepEqual([0, 999.6, 1234567].map(count), ["0", "1,000", "1,234,567"]);
});

test("short numbers have three digits and a unit", () => {
  const shown = [0, 3.38e-4, 0.0421, 12.3456, 999, 12345, -2.5e6, 7e9].map(short);
  assert.deepEqual(shown, ["0", "3.4e-4", "0.0421", "12.3", "999", "12.3k", "-2.5M", "7G"]);
});
