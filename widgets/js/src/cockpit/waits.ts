// The rows of a join with answers: those that wait, as a share of what is held, and what this batch
// answered.
import type { AnswerFlow } from "../../frames.ts";
import type { Pair } from "../base/canvas_map.ts";
import { add } from "../base/dom.ts";
import { count } from "../base/format.ts";
import { hue } from "../base/theme.ts";

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
  for (const [k, flow] of flows.entries()) {
    const row = (box.children[k + 1] as HTMLElement) ?? add(box, "div");
    row.innerHTML ||= '<div class="braid-held"><u></u><u></u></div><span></span>';
    row.style.setProperty("--hue", `var(--ck-${hue(flow.stream)})`);
    row.style.setProperty("--held", `${Math.min(1, flow.held / Math.max(1, most))}`);
    row.style.setProperty("--waits", `${Math.min(1, flow.waiting / Math.max(1, most))}`);
    row.lastElementChild?.replaceChildren(answerOf(flow));
  }
}
