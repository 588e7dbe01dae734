// The row between the map and the time line: buttons, the batch, and the last decision's reason.
import type { BatchFrame, CockpitPage } from "../../frames.ts";
import { add, make, pressed, spoken } from "../base/dom.ts";
import { count } from "../base/format.ts";
import { isLive, reasonOf } from "./page.ts";

/** ``press`` does what a key does; ``names`` are those of the quiet buttons by their keys. Returns
 * what shows a batch. */
export function makeTransport(
  bar: HTMLElement,
  press: (key: string) => void,
  names: Record<string, string>,
) {
  const button = (text: string, key: string) => pressed(bar, text, () => press(key));
  const where = add(bar, "span", "braid-where");
  const why = spoken(add(bar, "div", "braid-why"));
  const now = button("Back to now", "End");
  now.title = "show the newest batch, and follow the run";
  const quiet = Object.entries(names).map(([key, text]) => button(text, key));
  add(bar, "span", "braid-quiet").append(...quiet);
  return (page: CockpitPage, frame: BatchFrame | undefined) => {
    now.hidden = !isLive(page) || frame === page.frames.at(-1);
    const [at = ""] = frame?.title.split(" · ", 1) ?? [];
    const isOpen = isLive(page) || !at || at.includes(" of ");
    where.textContent = isOpen ? at : `${at} of ${count(page.frames.at(-1)?.batch ?? 0)}`;
    const [head, reason] = reasonOf(page.annotations, frame?.batch ?? 0);
    if (why.textContent === head + reason) return; // else it is read aloud again
    why.replaceChildren(make("b", "", head), reason);
  };
}
