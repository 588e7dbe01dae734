import assert from "node:assert/strict";
import { test } from "node:test";
import { cycled, darker, luminance, paler, textColor } from "../src/base/colors.ts";

test("luminance goes from 0 to 1", () => {
  assert.equal(luminance("#000000"), 0);
  assert.ok(Math.abs(luminance("#ffffff") - 1) < 1e-9);
});

test("ink is what reads better on a colour", () => {
  assert.deepEqual(
    [textColor("#000000"), textColor("#ffff00"), textColor("#2f3fde")],
    ["#ffffff", "#111111", "#ffffff"],
  );
});

test("a paler colour is nearer to white in each channel", () => {
  assert.equal(paler("#000000"), "#666666");
  assert.equal(paler("#ffffff"), "#ffffff");
  assert.ok(luminance(paler("#2f6fde")) > luminance("#2f6fde"));
});

test("letters on white are dark enough to be read, and as they were where they are", () => {
  assert.equal(darker("#7a1f9c"), "#7a1f9c");
  const shown = darker("#f08c00");
  assert.ok(luminance(shown) <= 1.05 / 4.5 - 0.05 && luminance(shown) > 0.15, shown);
});

test("colours begin again after the last", () => {
  assert.deepEqual(
    [0, 1, 2].map((k) => cycled(["#111111", "#222222"], k)),
    ["#111111", "#222222", "#111111"],
  );
});
