// What a host holds and what serves a query, where somebody can be asked: a click on it in the map or
// in the rows over time. Of the blocks that are told then, the story of one, or why two met or did
// not.

import { add } from "../base/dom.ts";
import { queryOf, showAnswer } from "../base/query_help.ts";

export type Place =
  | { host: number; batch: number }
  | { query: string; batch: number }
  | { blocks: number[] };

/** The host that a text of the picture is about. */
export function hostOf(text: string): number | undefined {
  const found = /(?:host|node) (\d+)/.exec(text)?.[1];
  return found === undefined ? undefined : Number(found);
}

/** The blocks that are typed, as "7", "7 12" or "blocks 7, 12". */
export function blocksOf(text: string): number[] {
  return (text.match(/\d+/g) ?? []).map(Number);
}

export class Inspect {
  private readonly told: HTMLElement;
  private readonly form: HTMLFormElement;
  private readonly here: () => number;
  private readonly ask: ((place: Place) => void) | undefined;

  constructor(box: HTMLElement, here: () => number, ask?: (place: Place) => void) {
    this.here = here;
    this.ask = ask;
    if (ask) box.classList.add("braid-asks");
    this.told = showAnswer(box);
    this.form = add(box, "form", "braid-whatif");
    this.form.hidden = true;
    this.blocks();
  }

  /** Asks about what is clicked in an element. */
  watch(element: HTMLElement): void {
    element.addEventListener("named", (event) => this.named((event as CustomEvent).detail));
    element.addEventListener("click", (event) => {
      if (!(event.target instanceof SVGElement)) return;
      const query = queryOf(event.target);
      if (query !== undefined) {
        this.ask?.({ query, batch: this.here() });
        return;
      }
      const group = event.target.closest("g, path, rect");
      this.named(group?.querySelector("title")?.textContent ?? "");
    });
  }

  show(text: string): void {
    this.told.textContent = text;
    this.told.hidden = this.form.hidden = !text;
  }

  /** Where one or two blocks are typed. */
  private blocks(): void {
    add(this.form, "span", "", "Block");
    const ids = add(this.form, "input");
    ids.setAttribute("aria-label", "a block, or two");
    ids.placeholder = "7, or 7 12";
    add(this.form, "button", "", "its story, or why two met");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask?.({ blocks: blocksOf(ids.value) });
    });
  }

  private named(text: string): void {
    const host = hostOf(text);
    const batch = /batch (\d+)/.exec(text)?.[1];
    if (host !== undefined) this.ask?.({ host, batch: batch ? Number(batch) : this.here() });
  }
}
