// A click on a query of a picture asks what serves it.
import { add } from "./dom.ts";

/** The query that was clicked: what shows one has its stream and name, as "0:late". */
export function queryOf(target: EventTarget | null): string | undefined {
  if (!(target instanceof Element)) return undefined;
  const shown = target.closest<SVGElement>("[data-query]")?.dataset.query;
  return shown?.slice(shown.indexOf(":") + 1);
}

/** Where the answer stands; nothing is seen of it before there is one. */
export function answers(box: Element): HTMLElement {
  const told = add(box, "pre", "braid-inspect");
  told.hidden = true;
  told.setAttribute("aria-live", "polite");
  return told;
}

/** Has clicks on queries ask; what it returns shows the answer. */
export function asking(root: HTMLElement, ask: (query: string) => void): (text: string) => void {
  const told = answers(root);
  root.classList.add("braid-asks");
  root.addEventListener("click", ({ target }) => {
    const query = queryOf(target);
    if (query !== undefined) ask(query);
  });
  return (text) => {
    told.textContent = text;
    told.hidden = !text;
  };
}
