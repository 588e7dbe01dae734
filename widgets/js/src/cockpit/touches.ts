// What a user can change in an active run: for each change a field, its cost, and a button.
import type { Touch } from "../../frames.ts";
import { add, pressed, sent, spoken } from "../base/dom.ts";
import { count } from "../base/format.ts";

export interface Touched {
  name: string;
  /** What was selected. */
  selected: string;
  value: string;
}

/** The sentence about a value that a change does not take; empty if it takes it. */
export function refusal({ kind, low, high }: Touch, text: string): string {
  const value = Number(text);
  if (kind !== "number" || (text.trim() && value >= low && value <= high)) return "";
  return `${text.trim() || "nothing"} is given; it is a number from ${low} to ${high}`;
}

/** Amount and seconds of a value, on straight lines between the points of a curve. */
function interpolate(curve: number[][], value: number): [number, number] {
  const k = curve.findIndex(([x = 0], n) => n > 0 && x >= value);
  const [x = 0, n = 0, s = 0] = curve[k - 1] ?? [];
  const [toX = 1, toN = 0, toS = 0] = curve[k] ?? [];
  const part = (value - x) / (toX - x);
  return [n + part * (toN - n), s + part * (toS - s)];
}

/** What a change to a value costs, in words; that of a host costs the rows that it holds. */
export function costOf({ cost, target, curve }: Touch, text: string, held = 0): string {
  const [amount, seconds] = target === "host" ? [held, 0] : interpolate(curve, Number(text));
  return cost.replace("{n}", count(amount)).replace("{s}", String(+seconds.toPrecision(2)));
}

export class Touches {
  private readonly box: HTMLElement;
  private readonly told: HTMLElement;
  private readonly act: ((touched: Touched) => void) | undefined;
  private key = "";
  private tell: ((touch: Touch, held: number) => void)[] = [];

  constructor(box: HTMLElement, act?: (touched: Touched) => void) {
    this.box = add(box, "div", "braid-touches");
    this.told = spoken(add(box, "p", "braid-touched"));
    this.act = act;
  }

  /** Offers the changes of a selection, "" for the run; what is typed stays from batch to batch. */
  show(all: Touch[], selected: string, held = 0): void {
    const touches = all.filter(({ target }) => target === selected.split(":", 1)[0]);
    const key = [selected, ...touches.map(({ name }) => name)].join("|");
    if (key !== this.key) {
      this.box.replaceChildren();
      this.told.textContent = "";
      this.tell = touches.map((touch) => this.addTouch(touch, selected));
    }
    this.key = key;
    touches.forEach((touch, k) => {
      this.tell[k]?.(touch, held);
    });
  }

  /** What came of a change. */
  answer(text: string): void {
    this.told.textContent = this.tell.length ? text : "";
  }

  /** Adds a change, and returns what says its cost anew. */
  private addTouch(first: Touch, selected: string): (touch: Touch, held: number) => void {
    const { kind, label, choices } = first;
    let [touch, held] = [first, 0];
    const form = add(this.box, "form", "braid-touch");
    const field = addField(form, first);
    const value = () => field?.value ?? "";
    const ask = (name: string) => {
      this.answer("asking…");
      this.act?.({ name, selected, value: value() });
    };
    const apply = add(form, "button", "", label);
    apply.hidden = kind === "note";
    for (const more of kind === "lines" ? choices : []) pressed(form, more, () => ask(more));
    const cost = add(form, "small");
    const say = () => {
      const wrong = refusal(touch, value());
      cost.textContent = wrong || costOf(touch, value(), held);
      cost.classList.toggle("braid-worse", wrong !== "");
      apply.disabled = wrong !== "";
    };
    form.oninput = say;
    sent(form, () => ask(first.name));
    return (...now) => {
      [touch, held] = now;
      if (field instanceof HTMLSelectElement) options(field, touch.choices, idOf);
      say();
    };
  }
}

/** The field of each kind of change that takes a value. */
const FIELDS = {
  choice: ["select", {}],
  lines: ["textarea", { rows: 4 }],
  number: ["input", { inputMode: "decimal" }],
  text: ["input", { placeholder: "in the middle, or 10 minutes" }],
} as const;

function addField(form: HTMLElement, { kind, label, value }: Touch) {
  const [tag, more] = FIELDS[kind as keyof typeof FIELDS] ?? [];
  const field = tag && add(form, tag);
  field?.setAttribute("aria-label", label);
  return field && Object.assign(field, more, { value });
}

/** What stays of a choice, such as "3 at N1", when an operator moves. */
export const idOf = (choice: string): string => choice.replace(/ at .*/, "");

/** Offers names, unless they are offered already, and returns whether there were others before. */
export function options(
  select: HTMLSelectElement,
  names: string[],
  id = (name: string) => name,
): boolean {
  const before = [...select.options].map(({ textContent }) => textContent);
  if (before.join("|") === names.join("|")) return false;
  const chosen = select.value;
  select.replaceChildren();
  for (const name of names) add(select, "option", "", name).value = id(name);
  if (names.map(id).includes(chosen)) select.value = chosen;
  return true;
}
