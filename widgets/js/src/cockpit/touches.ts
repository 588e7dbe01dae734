// The changes that an active run takes: for each of them a field, its cost, and a button.
import type { Touch } from "../../frames.ts";
import { add, make, pressed, sent, spoken } from "../base/dom.ts";
import { count } from "../base/format.ts";

export interface Touched {
  name: string;
  /** The selection. */
  selected: string;
  value: string;
}

/** The cost of a change to a value, in words: amount and seconds are on straight lines between the
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

/** The changes that a selection would offer: "a host (Lose this host)". */
export const offersOf = (touches: Touch[]): string[] =>
  [...Map.groupBy(touches, ({ target }) => target)].flatMap(([target, all]) =>
    target ? `a ${target} (${all.map(({ label }) => label).join(", ")})` : [],
  );

/** Whether a change that was answered after a batch has acted until a later one. */
export const hasActed = (answer: string, asked: number, now: number): boolean =>
  now > asked + (answer.includes("within two batches") ? 2 : 1) && / acts with/.test(answer);

/** The outcome of the last change, below what asked for it, until that change has acted; ``newest``
 * is the newest batch of the run. */
export function makeOutcome(newest: () => number) {
  const element = spoken(make("p", "braid-touched"));
  let asked = 0;
  return {
    element,
    show(text: string): void {
      element.textContent = text;
      if (text) element.scrollIntoView({ block: "nearest" });
      asked = newest();
    },
    refresh(): void {
      if (hasActed(element.textContent, asked, newest())) element.textContent = "";
    },
  };
}

/** Offers the changes of a selection, "" for the run; what is typed stays from batch to batch. */
export type Offer = (all: Touch[], selected: string, held?: number) => void;

/** Puts what offers changes into a box. */
export type OfferIn = (box: HTMLElement) => Offer;

/** Makes what offers changes in a box; ``answer`` has what came of the last one, below its form. */
export function makeOffer(
  box: HTMLElement,
  answer: HTMLElement,
  act?: (touched: Touched) => void,
): Offer {
  const place = add(box, "div", "braid-touches");
  let touches = new Map<string, Touch>();
  let forms = new Map<string, HTMLElement>();
  let [rows, key, chosen] = [0, "", ""];
  const makeForm = (first: Touch, selected: string) => {
    const { name, kind, label, value, choices } = first;
    const form = make("form", "braid-touch");
    const [tag, more] = FIELDS[kind as keyof typeof FIELDS] ?? [];
    const field = tag && Object.assign(add(form, tag), more, { ariaLabel: label, value });
    const ask = (asked: string) => {
      form.after(answer);
      answer.textContent = "asking…";
      act?.({ name: asked, selected, value: field?.value ?? "" });
    };
    const apply = add(form, "button", "", label);
    apply.hidden = kind === "note";
    for (const other of kind === "lines" ? choices : []) pressed(form, other, () => ask(other));
    const cost = add(form, "small");
    form.oninput = () => {
      const touch = touches.get(name) ?? first;
      const range = { min: touch.low, max: touch.high };
      if (field instanceof HTMLInputElement) Object.assign(field, range);
      if (field instanceof HTMLSelectElement) options(field, touch.choices, idOf);
      const wrong = field?.validationMessage ?? "";
      cost.textContent = wrong || costOf(touch, field?.value ?? "", rows);
      cost.classList.toggle("braid-worse", wrong !== "");
      apply.disabled = wrong !== "";
    };
    return sent(form, () => ask(name));
  };
  return (all, selected, held = 0) => {
    const offered = all.filter(({ target }) => target === selected.split(":", 1)[0]);
    touches = new Map(offered.map((touch) => [touch.name, touch]));
    rows = held;
    const now = [selected, ...touches.keys()].join("|");
    if (now !== key) {
      const kept = (name: string) => (selected === chosen ? forms.get(name) : undefined);
      forms = new Map(
        offered.map((each) => [each.name, kept(each.name) ?? makeForm(each, selected)]),
      );
      const asked = answer.previousElementSibling;
      place.replaceChildren(...forms.values());
      if (asked && [...forms.values()].some((form) => form === asked)) asked.after(answer);
    }
    [key, chosen] = [now, selected];
    for (const form of place.querySelectorAll("form")) form.dispatchEvent(new Event("input"));
  };
}

/** The field of each kind of change that takes a value. */
const FIELDS = {
  choice: ["select", {}],
  lines: ["textarea", { rows: 4 }],
  number: ["input", { type: "number", step: "any", required: true }],
  text: ["input", { placeholder: "in the middle, or 10 minutes" }],
} as const;

/** The identity of a choice, such as "3 at N1", when an operator moves. */
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
