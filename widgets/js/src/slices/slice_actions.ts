// Clicks on a chain say what is to be merged or split: an event "pick" bubbles up from the picture.
import { pressable } from "../base/keyboard.ts";
import { make, titled } from "../base/svg.ts";
import type { ChainSlice, ChainStream } from "../frames.ts";
import { ageAt, inWords, TALL } from "./axis.ts";
import type { Lane } from "./chain.ts";

/** The clicked part; ``n`` differs from click to click, so that the same one counts again. */
export interface Pick {
  act: "merge" | "split";
  stream: number;
  age: number;
  n: number;
}

function send(from: Element, act: Pick["act"], stream: ChainStream, age: number): void {
  const detail: Pick = { act, stream: stream.index, age: Math.round(age), n: Date.now() };
  from.dispatchEvent(new CustomEvent("pick", { bubbles: true, detail }));
}

/** A click inside a slice splits it there. */
export function splittable({ svg, stream }: Lane, cell: SVGRectElement, slice: ChainSlice): void {
  cell.style.cursor = "copy";
  cell.dataset.split = `${stream.index}:${slice.last}`;
  cell.addEventListener("click", (event) => {
    const matrix = svg.getScreenCTM();
    if (!matrix) return;
    const { x } = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    send(svg, "split", stream, ageAt(stream.marks, slice, x));
  });
}

/** A click on the boundary at an age, Enter or Space, merges the slices that meet there. */
export function mergeable({ svg, stream, top, at }: Lane, age: number): void {
  const where = `${stream.name} that meet at ${inWords(stream.marks, age)}`;
  const box = { x: at(age) - 5, y: top - 3, width: 10, height: TALL + 6, rx: 3 };
  const bar = make(svg, "rect", {
    ...box,
    fill: "var(--braid-fg)",
    "fill-opacity": 0,
    "data-merge": `${stream.index}:${age}`,
    "aria-label": `merge the slices of ${where}`,
  });
  pressable(bar, `merge ${stream.index}:${age}`);
  titled(bar, `merge the slices of ${where}`);
  bar.style.cursor = "pointer";
  const light = (on: boolean) => bar.setAttribute("fill-opacity", on ? "0.35" : "0");
  for (const kind of ["mouseenter", "focus"]) bar.addEventListener(kind, () => light(true));
  for (const kind of ["mouseleave", "blur"]) bar.addEventListener(kind, () => light(false));
  bar.addEventListener("click", () => send(svg, "merge", stream, age));
}
