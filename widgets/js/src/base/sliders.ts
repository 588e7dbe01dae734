// A thumb below each number box of a panel: what is dragged stands in the box. The box's label has
// the range. Where that is wide the scale is logarithmic; hosts come in powers of two.
import { make } from "./dom.ts";

export interface Range {
  low: number;
  high: number;
  step: number | undefined;
  isWide: boolean;
  isOfHosts: boolean;
}

/** From so many times the least on, and from so many on where the least is 0, a range is wide. */
const WIDE = 100;
/** Steps of a thumb. */
const FINE = 1000;

/** The range that a label ends with, as "hosts (J) · 1 to 256"; ``step`` is that of the box. */
export function rangeOf(label: string, step = ""): Range | undefined {
  const found = / · ([\d.,]+) to ([\d.,]+)$/.exec(label);
  if (!found) return undefined;
  const [low = 0, high = 0] = found.slice(1).map((text) => Number(text.replaceAll(",", "")));
  const isOfHosts = label.startsWith("hosts") && low === 1;
  const isWide = isOfHosts || high / (low || 1) > WIDE;
  return { low, high, step: Number(step) || undefined, isWide, isOfHosts };
}

/** The value at a part of the way, from 0 to 1, as somebody would write it. */
export function valueAt(range: Range, part: number): number {
  const { low, high, step = 0, isWide, isOfHosts } = range;
  const unit = low || 1; // what stands for 1 on a logarithmic scale, which may begin at 0
  const wide = Math.expm1(part * Math.log1p((high - low) / unit)) * unit;
  const value = low + (isWide ? wide : part * (high - low));
  const even = isWide || !step ? value : low + Math.round((value - low) / step) * step;
  const short = Number(even.toPrecision(isWide || !step ? 2 : 12));
  const whole = isOfHosts
    ? 2 ** Math.round(Math.log2(value))
    : step === 1
      ? Math.round(short)
      : short;
  return Math.min(high, Math.max(low, whole));
}

/** The share of the way at which a value is; one out of range is at an end. */
export function partOf({ low, high, isWide }: Range, value: number): number {
  const above = Math.min(high, Math.max(low, value || 0)) - low;
  const scaled = (length: number) => (isWide ? Math.log1p(length / (low || 1)) : length);
  return scaled(above) / scaled(high - low);
}

/** Puts a thumb below each number box in an element that has a range and none yet. */
export function makeSliders(within: Element): void {
  for (const box of within.querySelectorAll<HTMLInputElement>("input[type=number]")) {
    const label = box.parentElement?.querySelector(".widget-label")?.textContent ?? "";
    const range = rangeOf(label.trim(), box.step);
    if (range && !box.closest(".braid-dialled")) makeSlider(box, range);
  }
}

function makeSlider(box: HTMLInputElement, range: Range): void {
  const thumb = make("input", "braid-dial");
  const place = make("span", "braid-dialled");
  box.replaceWith(place);
  place.append(box, thumb);
  Object.assign(thumb, { type: "range", min: "0", max: String(FINE), step: "1", tabIndex: -1 });
  thumb.setAttribute("aria-hidden", "true"); // the box is for the keyboard, and says the name
  const follow = (part = partOf(range, Number(box.value))) => {
    thumb.value = String(Math.round(part * FINE));
    thumb.style.setProperty("--part", `${100 * part}%`);
  };
  // The control listens to what it holds: a place on the way is no value of its.
  thumb.oninput = (event) => {
    event.stopPropagation();
    const part = Number(thumb.value) / FINE;
    box.value = String(valueAt(range, part));
    follow(part);
  };
  thumb.onchange = (event) => {
    event.stopPropagation();
    box.dispatchEvent(new Event("change", { bubbles: true }));
  };
  for (const kind of ["input", "change"]) box.addEventListener(kind, () => follow());
  thumb.onpointerenter = () => follow();
  follow();
}
