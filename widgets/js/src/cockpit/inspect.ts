// What a host holds, where somebody can be asked: a click on it in the map or in the rows over time.
import { add } from "../base/dom.ts";

export interface Place {
  host: number;
  batch: number;
}

/** The host that a text of the picture is about. */
export function hostOf(text: string): number | undefined {
  const found = /(?:host|node) (\d+)/.exec(text)?.[1];
  return found === undefined ? undefined : Number(found);
}

export class Inspect {
  private readonly told: HTMLElement;
  private readonly here: () => number;
  private readonly ask: ((place: Place) => void) | undefined;

  constructor(box: HTMLElement, here: () => number, ask?: (place: Place) => void) {
    this.here = here;
    this.ask = ask;
    this.told = add(box, "pre", "braid-inspect");
    this.told.hidden = true;
    this.told.setAttribute("aria-live", "polite");
  }

  /** Asks about what is clicked in an element. */
  watch(element: HTMLElement): void {
    element.addEventListener("named", (event) => this.named((event as CustomEvent).detail));
    element.addEventListener("click", (event) => {
      if (!(event.target instanceof SVGElement)) return;
      const group = event.target.closest("g, path, rect");
      this.named(group?.querySelector("title")?.textContent ?? "");
    });
  }

  show(text: string): void {
    this.told.textContent = text;
    this.told.hidden = !text;
  }

  private named(text: string): void {
    const host = hostOf(text);
    const batch = /batch (\d+)/.exec(text)?.[1];
    if (host !== undefined) this.ask?.({ host, batch: batch ? Number(batch) : this.here() });
  }
}
