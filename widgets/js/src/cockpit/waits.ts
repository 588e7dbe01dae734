// The rows of a join with answers: those that wait, as a share of what is held, and what this batch
// answered.
import type { AnswerFlow } from "../../frames.ts";
import { add } from "../base/dom.ts";
import { count } from "../base/format.ts";
import { hue } from "../base/theme.ts";

/** The answers of a stream, in this batch and so far, in a sentence. */
export function answerOf({ name, waiting, answered, ...flow }: AnswerFlow): string {
  const done = answered
    ? `${count(answered)} answered in this batch, ${count(flow.unmatched)} without a partner`
    : "none answered in this batch";
  const total = `so far ${count(flow.total_answered)}, ${count(flow.total_unmatched)} without`;
  return `${count(waiting)} of ${name} wait; ${done}; ${total}`;
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
