// What a user can change in an active run: for each change a field, its cost, and a button.
import type { Touch } from "../../frames.ts";
import { add, pressed } from "../base/dom.ts";
import { count } from "../base/format.ts";

export interface Touched {
  name: string;
  /** What was selected. */
  selected: string;
  value: string;
}

type Field = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

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
  private readonly act: (touched: Touched) => void;
  private key = "";
  private tell: (() => void)[] = [];
  private touches: Touch[] = [];
  private held = 0;

  constructor(box: HTMLElement, act: (touched: Touched) => void) {
    this.box = add(box, "div", "braid-touches");
    this.told = add(box, "p", "braid-touched");
    this.told.setAttribute("aria-live", "polite");
    this.act = act;
  }

  /** Offers the changes of a selection, "" for the run; what is typed stays from batch to batch. */
  show(touches: Touch[], selected: string, held = 0): void {
    this.held = held;
    const kind = selected.split(":", 1)[0];
    this.touches = touches.filter(({ target }) => target === kind);
    const key = [selected, ...this.touches.map(({ name }) => name)].join("|");
    if (key !== this.key) this.make(selected);
    this.key = key;
    for (const tell of this.tell) tell();
  }

  /** What came of a change. */
  answer(text: string): void {
    this.told.textContent = this.touches.length ? text : "";
  }

  private make(selected: string): void {
    this.box.replaceChildren();
    this.answer("");
    this.tell = this.touches.map((touch, k) => this.addTouch(touch, k, selected));
  }

  /** Adds a change, and returns what says its cost anew. */
  private addTouch(touch: Touch, k: number, selected: string): () => void {
    const { name, label } = touch;
    const form = add(this.box, "form", "braid-touch");
    const field = addField(form, touch);
    const value = () => field?.value ?? "";
    const ask = (name: string) => {
      this.answer("asking…");
      this.act({ name, selected, value: value() });
    };
    const apply = add(form, "button", "", label);
    for (const more of touch.kind === "lines" ? touch.choices : []) {
      pressed(form, more, () => ask(more));
    }
    apply.hidden = touch.kind === "note";
    const cost = add(form, "small");
    const tell = () => {
      const now = this.touches[k] ?? touch;
      if (field instanceof HTMLSelectElement) options(field, now.choices, idOf);
      const wrong = refusal(now, value());
      cost.textContent = wrong || costOf(now, value(), this.held);
      cost.classList.toggle("braid-worse", wrong !== "");
      apply.disabled = wrong !== "";
    };
    field?.addEventListener("input", tell);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      ask(name);
    });
    return tell;
  }
}

function addField(form: HTMLElement, touch: Touch): Field | undefined {
  const { kind, label, value } = touch;
  if (["press", "note"].includes(kind)) return undefined;
  const tags = { choice: "select", lines: "textarea" } as const;
  const field = add(form, kind === "choice" || kind === "lines" ? tags[kind] : "input");
  field.setAttribute("aria-label", label);
  if (field instanceof HTMLSelectElement) return field;
  if (field instanceof HTMLTextAreaElement) field.rows = 4;
  else if (kind === "number") field.inputMode = "decimal";
  else field.placeholder = "in the middle, or 10 minutes";
  field.value = value;
  return field;
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
