// A click on a query of a picture asks what serves it, and one on a slice what it holds.
import { add } from "./dom.ts";

/** The query that was clicked: what shows one has its stream and name, as "0:late". */
export function queryOf(target: EventTarget | null): string | undefined {
  if (!(target instanceof Element)) return undefined;
  const shown = target.closest<SVGElement>("[data-query]")?.dataset.query;
  return shown?.slice(shown.indexOf(":") + 1);
}

/** The clicked part: a query by its name, or a slice as the picture has it in ``data-tells``. */
export type Asked = { query: string } | { slice: string };

function askedOf(target: EventTarget | null): Asked | undefined {
  const query = queryOf(target);
  if (query !== undefined) return { query };
  if (!(target instanceof Element)) return undefined;
  const slice = target.closest<SVGElement>("[data-tells]")?.dataset.tells;
  return slice === undefined ? undefined : { slice };
}

/** The place of the answer, which is hidden before there is one. */
export function showAnswer(box: Element): HTMLElement {
  const told = add(box, "pre", "braid-inspect");
  told.hidden = true;
  told.setAttribute("aria-live", "polite");
  return told;
}

/** Has clicks on queries and slices ask; what it returns shows the answer. */
export function asking(root: HTMLElement, ask: (what: Asked) => void): (text: string) => void {
  const told = showAnswer(root);
  root.classList.add("braid-asks");
  root.addEventListener("click", ({ target }) => {
    const what = askedOf(target);
    if (what !== undefined) ask(what);
  });
  return (text) => {
    told.textContent = text;
    told.hidden = !text;
  };
}
