// What a user can change in an active run: for each change a field, its cost, and a button.
import type { Touch } from "../../frames.ts";
import { add, make, pressed, sent } from "../base/dom.ts";
import { count } from "../base/format.ts";

export interface Touched {
  name: string;
  /** What was selected. */
  selected: string;
  value: string;
}

/** What a change to a value costs, in words: amount and seconds are on straight lines between the
 * points of its curve. The amount of a host is the rows that it holds. */
export function costOf({ cost, target, curve }: Touch, text: string, held = 0): string {
  const k = curve.findIndex(([x = 0], n) => n > 0 && x >= Number(text));
  const [from = [], to = []] = [curve[k - 1], curve[k]];
  const [x = 0, toX = 1] = [from[0], to[0]];
  const part = (Number(text) - x) / (toX - x);
  const [n = 0, s = 0] = [1, 2].map((j) => (1 - part) * (from[j] ?? 0) + part * (to[j] ?? 0));
  const amount = count(target === "host" ? held : n);
  return cost.replace("{n}", amount).replace("{s}", String(+s.toPrecision(2)));
}

/** What can be changed once something is selected: "a host (Lose this host)". */
export const offersOf = (touches: Touch[]): string[] =>
  [...Map.groupBy(touches, ({ target }) => target)].flatMap(([target, all]) =>
    target ? `a ${target} (${all.map(({ label }) => label).join(", ")})` : [],
  );

/** Whether a change that was answered after a batch has acted until a later one. */
export const hasActed = (answer: string, asked: number, now: number): boolean =>
  now > asked + (answer.includes("within two batches") ? 2 : 1) && / acts with/.test(answer);

export class Touches {
  private readonly box: HTMLElement;
  private readonly answer: HTMLElement;
  private readonly act: ((touched: Touched) => void) | undefined;
  private touches: Touch[] = [];
  private held = 0;
  private key = "";

  /** ``answer`` has what came of the last change, below its form. */
  constructor(box: HTMLElement, answer: HTMLElement, act?: (touched: Touched) => void) {
    this.box = add(box, "div", "braid-touches");
    this.answer = answer;
    this.act = act;
  }

  /** Offers the changes of a selection, "" for the run; what is typed stays from batch to batch. */
  show(all: Touch[], selected: string, held = 0): void {
    this.touches = all.filter(({ target }) => target === selected.split(":", 1)[0]);
    this.held = held;
    const key = [selected, ...this.touches.map(({ name }) => name)].join("|");
    if (key !== this.key) {
      this.box.replaceChildren(
        ...this.touches.map((touch, k) => this.makeForm(touch, k, selected)),
      );
    }
    this.key = key;
    for (const form of this.box.querySelectorAll("form")) form.dispatchEvent(new Event("input"));
  }

  private makeForm({ name, kind, label, value, choices }: Touch, k: number, selected: string) {
    const form = make("form", "braid-touch");
    const [tag, more] = FIELDS[kind as keyof typeof FIELDS] ?? [];
    const field = tag && Object.assign(add(form, tag), more, { ariaLabel: label, value });
    const ask = (asked: string) => {
      form.after(this.answer);
      this.answer.textContent = "asking…";
      this.act?.({ name: asked, selected, value: field?.value ?? "" });
    };
    const apply = add(form, "button", "", label);
    apply.hidden = kind === "note";
    for (const other of kind === "lines" ? choices : []) pressed(form, other, () => ask(other));
    const cost = add(form, "small");
    form.oninput = () => {
      const touch = this.touches[k] as Touch;
      if (field instanceof HTMLSelectElement) options(field, touch.choices, idOf);
      if (field instanceof HTMLInputElement) {
        Object.assign(field, { min: touch.low, max: touch.high });
      }
      const wrong = field?.validationMessage ?? "";
      cost.textContent = wrong || costOf(touch, field?.value ?? "", this.held);
      cost.classList.toggle("braid-worse", wrong !== "");
      apply.disabled = wrong !== "";
    };
    return sent(form, () => ask(name));
  }
}

/** The field of each kind of change that takes a value. */
const FIELDS = {
  choice: ["select", {}],
  lines: ["textarea", { rows: 4 }],
  number: ["input", { type: "number", step: "any", required: true }],
  text: ["input", { placeholder: "in the middle, or 10 minutes" }],
} as const;

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
