// The figures of a run after a batch.
import { records } from "../base/columns.ts";
import { add } from "../base/dom.ts";
import type { BatchFrame } from "../frames.ts";

/** Puts the figures of a frame in place of those that are there. */
export function strip(box: HTMLElement, { key_figures: facts }: BatchFrame): void {
  box.replaceChildren();
  for (const { name, value, tooltip: meaning } of records(facts)) {
    const fact = add(box, "div", "braid-fact");
    fact.title = meaning;
    add(fact, "b", "", value);
    add(fact, "span", "", name);
  }
}
