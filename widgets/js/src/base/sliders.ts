// A thumb below each number box of a panel: what is dragged stands in the box. The box's label has
// the range. Where that is wide the scale is logarithmic; hosts come in powers of two.
import { add } from "./dom.ts";

export interface Range {
  low: number;
  high: number;
  step: number | undefined;
  scale: "linear" | "log" | "two";
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
  const wide = high / (low || 1) > WIDE;
  const scale = label.startsWith("hosts") && low === 1 ? "two" : wide ? "log" : "linear";
  return { low, high, step: Number(step) || undefined, scale };
}

/** The value at a part of the way, from 0 to 1, as somebody would write it. */
export function valueAt({ low, high, step, scale }: Range, part: number): number {
  if (scale === "two") return Math.min(high, 2 ** Math.round(part * Math.log2(high)));
  const value =
    scale === "linear"
      ? low + part * (high - low)
      : low + Math.expm1(part * Math.log1p((high - low) / unit(low))) * unit(low);
  const even = scale === "linear" && step ? low + Math.round((value - low) / step) * step : value;
  const short = Number(even.toPrecision(scale === "log" || !step ? 2 : 12));
  const whole = step === 1 ? Math.round(short) : short;
  return Math.min(high, Math.max(low, whole));
}

/** The share of the way at which a value is; one out of range is at an end. */
export function partOf({ low, high, scale }: Range, value: number): number {
  const within = Math.min(high, Math.max(low, value || 0));
  if (scale === "two") return Math.log2(within) / Math.log2(high);
  if (scale === "linear") return (within - low) / (high - low);
  return Math.log1p((within - low) / unit(low)) / Math.log1p((high - low) / unit(low));
}

/** The value that stands for 1 on a logarithmic scale that may begin at 0. */
const unit = (low: number): number => low || 1;

/** Puts a thumb below each number box in an element that has a range and none yet. */
export function makeSliders(within: Element): void {
  for (const box of within.querySelectorAll<HTMLInputElement>("input[type=number]")) {
    const label = box.parentElement?.querySelector(".widget-label")?.textContent ?? "";
    const range = rangeOf(label.trim(), box.step);
    if (range && !box.closest(".braid-dialled")) makeSlider(box, range);
  }
}

function makeSlider(box: HTMLInputElement, range: Range): void {
  const place = document.createElement("span");
  place.className = "braid-dialled";
  box.replaceWith(place);
  place.append(box);
  const thumb = add(place, "input", "braid-dial");
  Object.assign(thumb, { type: "range", min: "0", max: String(FINE), step: "1", tabIndex: -1 });
  thumb.setAttribute("aria-hidden", "true"); // the box is for the keyboard, and says the name
  const follow = () => {
    const part = partOf(range, Number(box.value));
    thumb.value = String(Math.round(part * FINE));
    thumb.style.setProperty("--part", `${100 * part}%`);
  };
  // The control listens to what it holds: a place on the way is no value of its.
  for (const kind of ["input", "change"]) {
    thumb.addEventListener(kind, (event) => event.stopPropagation());
  }
  thumb.addEventListener("input", () => {
    box.value = String(valueAt(range, Number(thumb.value) / FINE));
    thumb.style.setProperty("--part", `${(100 * Number(thumb.value)) / FINE}%`);
  });
  thumb.addEventListener("change", () => {
    box.dispatchEvent(new Event("change", { bubbles: true }));
    follow();
  });
  for (const kind of ["input", "change"]) box.addEventListener(kind, follow);
  thumb.addEventListener("pointerenter", follow);
  follow();
}
