// The rows of a join with answers: those that wait, as a share of what is held, and what this batch
// answered.
import type { AnswerFlow } from "../../frames.ts";
import type { Pair } from "../base/canvas_map.ts";
import { add } from "../base/dom.ts";
import { count } from "../base/format.ts";

/** What a batch answered of a stream, in a sentence. */
export function answerOf({ name, waiting, answered, unmatched }: AnswerFlow): string {
  const done = answered
    ? `${count(answered)} answered in this batch, ${count(unmatched)} without a partner`
    : "none answered in this batch";
  return `${count(waiting)} of ${name} wait; ${done}`;
}

/** The figures of all streams, for the inspector. */
export function answerPairs(flows: AnswerFlow[]): Pair[] {
  return flows.flatMap((flow): Pair[] => [
    [`rows of ${flow.name} that wait`, count(flow.waiting)],
    ["answered in this batch", count(flow.answered)],
    ["without a partner", count(flow.unmatched)],
    ["answered so far", count(flow.total_answered)],
    ["of them without a partner", count(flow.total_unmatched)],
  ]);
}

/** Shows a bar for each stream; the longest is as long as most rows that were held. */
export function showWaits(box: HTMLElement, flows: AnswerFlow[], most: number): void {
  box.hidden = !flows.length;
  while (box.children.length > flows.length + 1) box.lastElementChild?.remove();
  if (!box.children.length) add(box, "b", "", "Answers: rows wait while a partner can still come");
  flows.forEach((flow, k) => {
    const row = box.children[k + 1] ?? makeRow(box);
    const [bar, text] = row.children as unknown as [HTMLElement, HTMLElement];
    const [held, waits] = bar.children as unknown as [HTMLElement, HTMLElement];
    const colour = `var(--ck-stream${flow.stream % 6})`;
    const share = (rows: number) => `${Math.min(100, (100 * rows) / Math.max(1, most))}%`;
    held.style.cssText = `width: ${share(flow.held)}; border-color: ${colour}`;
    waits.style.cssText = `width: ${share(flow.waiting)}; background: ${colour}`;
    text.textContent = answerOf(flow);
  });
}

function makeRow(box: HTMLElement): HTMLElement {
  const row = add(box, "div");
  const bar = add(row, "div", "braid-held");
  add(bar, "u");
  add(bar, "u");
  add(row, "span");
  return row;
}
