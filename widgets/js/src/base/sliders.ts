// A thumb below each number box of a panel: what is dragged stands in the box. The box's label has
// the range. The thumb stops at the steps of the box, in a wide range at 1, 2, 5, 10 and so on, and
// for hosts at powers of two.
import { make } from "./dom.ts";

/** From so many times the least on, and from so many on where the least is 0, a range is wide. */
const WIDE = 100;
const POWERS = Array.from({ length: 20 }, (_, k) => 2 ** k);
const ROUND = [-3, -2, -1, 0, 1, 2, 3, 4, 5].flatMap((k) =>
  [1, 2, 5].map((n) => Number(`${n}e${k}`)),
);

/** Where a thumb stops in the range that a label ends with, as "hosts (J) · 1 to 256". */
export function stopsOf(label: string, step = 0): number[] {
  const found = / · ([\d.,]+) to ([\d.,]+)$/.exec(label)?.slice(1) ?? [];
  const [low = 0, high = 0] = found.map((text) => Number(text.replaceAll(",", "")));
  const by = step || (high - low) / WIDE;
  const even = () =>
    Array.from({ length: (high - low) / by }, (_, k) => +(low + k * by).toFixed(9));
  const stops = label.startsWith("hosts") ? POWERS : high / (low || 1) > WIDE ? ROUND : even();
  return found.length ? [low, ...stops.filter((value) => value > low && value < high), high] : [];
}

/** Puts a thumb below each number box in an element that has a range and none yet. */
export function makeSliders(within: Element): void {
  for (const box of within.querySelectorAll<HTMLInputElement>("input[type=number]")) {
    const label = box.parentElement?.querySelector(".widget-label")?.textContent ?? "";
    const stops = stopsOf(label.trim(), Number(box.step));
    if (stops.length && !box.closest(".braid-dialled")) makeSlider(box, stops);
  }
}

function makeSlider(box: HTMLInputElement, stops: number[]): void {
  const thumb = make("input", "braid-dial");
  const place = make("span", "braid-dialled");
  const last = stops.length - 1;
  box.replaceWith(place);
  place.append(box, thumb);
  Object.assign(thumb, { type: "range", min: "0", max: String(last), step: "1", tabIndex: -1 });
  thumb.setAttribute("aria-hidden", "true"); // the box is for the keyboard, and says the name
  const follow = () => {
    const at = stops.findIndex((stop) => stop >= Number(box.value));
    thumb.value = String(at < 0 ? last : at);
    thumb.style.setProperty("--part", `${(100 * Number(thumb.value)) / last}%`);
  };
  // The control listens to what it holds: a place on the way is no value of its.
  thumb.oninput = (event) => {
    event.stopPropagation();
    box.value = String(stops[Number(thumb.value)]);
    follow();
  };
  thumb.onchange = (event) => {
    event.stopPropagation();
    box.dispatchEvent(new Event("change", { bubbles: true }));
  };
  for (const kind of ["input", "change"]) box.addEventListener(kind, follow);
  thumb.onpointerenter = follow;
  follow();
}
