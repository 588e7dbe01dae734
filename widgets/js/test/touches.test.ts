import assert from "node:assert/strict";
import { test } from "node:test";
import type { Touch } from "../frames.ts";
import { costOf, hasActed, idOf, offersOf, options } from "../src/cockpit/touches.ts";

const budget: Touch = {
  name: "budget",
  label: "Compare this share",
  target: "",
  kind: "number",
  value: "0.5",
  choices: [],
  low: 0.001,
  high: 1,
  cost: "about {n} pairs",
  curve: [
    [0, 0, 0],
    [1, 9000, 0],
  ],
};

test("a change says its cost for the value that is typed", () => {
  assert.equal(costOf(budget, "0.25"), "about 2,250 pairs");
  assert.equal(costOf({ ...budget, target: "host" }, "", 1750), "about 1,750 pairs");
  const curve = [
    [0, 100, 0.5],
    [1, 200, 0.75],
    [2, 400, 1.75],
  ];
  const skew = { ...budget, curve, cost: "{n} results, {s} s (modelled)" };
  const costs = ["0", "0.5", "1", "1.2", "2"].map((text) => costOf(skew, text).split(" (")[0]);
  const rows = ["100 results, 0.5", "150 results, 0.63", "200 results, 0.75"];
  assert.deepEqual(
    costs,
    [...rows, "240 results, 0.95", "400 results, 1.8"].map((t) => `${t} s`),
  );
});

test("what can be changed once something is selected is listed by what it is", () => {
  const lose = { ...budget, target: "host", label: "Lose this host" };
  const [split, merge] = ["Split", "Merge"].map((label) => ({ ...budget, target: "slice", label }));
  assert.deepEqual(offersOf([budget, lose]), ["a host (Lose this host)"]);
  assert.deepEqual(offersOf([split, lose, merge] as Touch[]), [
    "a slice (Split, Merge)",
    "a host (Lose this host)",
  ]);
});

test("an answer is over once the change has acted", () => {
  const [next, later] = ["it acts with the next batch.", "it acts within two batches."];
  assert.deepEqual([hasActed(next, 4, 5), hasActed(next, 4, 6)], [false, true]);
  assert.deepEqual([hasActed(later, 4, 6), hasActed(later, 4, 7)], [false, true]);
  assert.equal(hasActed("join at N1", 4, 99), false);
});

/** A select as far as its options are replaced: its value is that of one, at first the first. */
class Select {
  options: { value: string; textContent: string }[] = [];
  private chosen = "";
  get value(): string {
    return this.options.find(({ value }) => value === this.chosen)?.value ?? "";
  }
  set value(value: string) {
    this.chosen = value;
  }
  append(option: { value: string; textContent: string }): void {
    this.options.push(option);
    if (!this.value) this.chosen = option.value || option.textContent;
  }
  replaceChildren(): void {
    this.options = [];
  }
}

/** An option as far as it is made. */
class Option {
  value = "";
  textContent = "";
  append(text: string): void {
    this.textContent += text;
  }
}

test("the choice of an operator stays when it moves", () => {
  Object.assign(globalThis, { document: { createElement: () => new Option() } });
  const select = new Select();
  const offer = (names: string[]) => options(select as unknown as HTMLSelectElement, names, idOf);
  assert.ok(offer(["1 at N1", "3 at N1"]));
  select.value = "3";
  assert.ok(offer(["0 at N2", "1 at N1", "3 at N4"]));
  assert.equal(select.value, "3");
  assert.equal(offer(["0 at N2", "1 at N1", "3 at N4"]), false);
  assert.equal(idOf("least state"), "least state");
});
