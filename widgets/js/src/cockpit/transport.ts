// The row between the map and the time line: buttons, the batch, and the last decision's reason.
import type { BatchFrame, CockpitPage } from "../../frames.ts";
import { add, make, pressed, spoken } from "../base/dom.ts";
import { isLive, reasonOf } from "./page.ts";

export class Transport {
  private readonly where: HTMLElement;
  private readonly why: HTMLElement;
  private readonly now: HTMLButtonElement;

  /** ``press`` does what a key does; ``names`` are those of the quiet buttons by their keys. */
  constructor(bar: HTMLElement, press: (key: string) => void, names: Record<string, string>) {
    const button = (text: string, key: string) => pressed(bar, text, () => press(key));
    this.where = add(bar, "span", "braid-where");
    this.why = spoken(add(bar, "div", "braid-why"));
    this.now = button("Back to now", "End");
    this.now.title = "show the newest batch, and follow the run";
    const quiet = Object.entries(names).map(([key, text]) => button(text, key));
    add(bar, "span", "braid-quiet").append(...quiet);
  }

  show(page: CockpitPage, frame: BatchFrame | undefined): void {
    this.now.hidden = !isLive(page) || frame === page.frames.at(-1);
    this.where.textContent = frame?.title.split(" · ", 1)[0] ?? "";
    const [head, reason] = reasonOf(page.annotations, frame?.batch ?? 0);
    if (this.why.textContent === head + reason) return; // else it is read aloud again
    this.why.replaceChildren(make("b", "", head), reason);
  }
}
