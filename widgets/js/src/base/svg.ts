import { add, type Headed, header, spoken } from "./dom.ts";

const SVG = "http://www.w3.org/2000/svg";

export type Attributes = Record<string, string | number>;

/** A new SVG element at the end of another. */
export function make<K extends keyof SVGElementTagNameMap>(
  parent: Element,
  tag: K,
  attributes: Attributes,
  text?: string | number,
): SVGElementTagNameMap[K] {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  if (text !== undefined) node.textContent = String(text);
  parent.append(node);
  return node;
}

/** A node with a text that shows when the pointer rests on it. */
export function titled<T extends SVGElement>(node: T, text: string): T {
  make(node, "title", {}, text);
  return node;
}

/** Empties the box, and puts the frame's header and an empty picture in it. */
export function picture(
  box: HTMLElement,
  frame: Headed,
  wide: number,
  tall: number,
  role = "img",
): SVGSVGElement {
  box.replaceChildren();
  header(box, frame);
  const viewBox = `0 0 ${wide} ${tall}`;
  return make(box, "svg", { viewBox, role, "aria-label": spoken(frame) });
}

/** Empties the box, and puts the frame's header and two empty pictures in it: the part of a drawing
 * to the left of ``at`` and the part to its right, which comes below where there is no room. */
export function pair(
  box: HTMLElement,
  frame: Headed,
  at: number,
  wide: number,
  tall: number,
): [SVGSVGElement, SVGSVGElement] {
  box.replaceChildren();
  header(box, frame);
  const both = add(box, "div", "braid-pair");
  const half = (x: number, width: number) => {
    const viewBox = `${x} 0 ${width} ${tall}`;
    const svg = make(both, "svg", { viewBox, role: "img", "aria-label": spoken(frame) });
    svg.style.flexGrow = String(width);
    return svg;
  };
  return [half(0, at), half(at, wide - at)];
}

/** Lines of text below one another: [text, class]. */
export function lines(
  svg: Element,
  texts: [string, string][],
  x: number,
  y: number,
  gap: number,
  anchor = "start",
): void {
  texts.forEach(([text, kind], k) => {
    make(svg, "text", { x, y: y + gap * k, "text-anchor": anchor, class: kind }, text);
  });
}

/** Names with their colors, below one another. */
export function legend(
  svg: Element,
  entries: { text: string; colour: string }[],
  x: number,
  y: number,
  gap: number,
): void {
  entries.forEach(({ text, colour }, k) => {
    make(svg, "rect", { x, y: y + gap * k - 9, width: 11, height: 11, fill: colour });
    make(svg, "text", { x: x + 18, y: y + gap * k }, text);
  });
}
