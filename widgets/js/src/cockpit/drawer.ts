// The drawer beside the map: what can be changed in the run, what if another placement had taken
// over, what the rows of color show, how fast it plays, the keys, what is wrong, and all decisions.
import type { CockpitPage, Symptom } from "../../frames.ts";
import { add } from "../base/dom.ts";
import { type Touched, Touches } from "./touches.ts";

export interface Asked {
  placement: string;
  hosts: number;
  /** The batch (from 1) after which it takes over; 0: from the start. */
  since: number;
}

export type Ask = (asked: Asked) => void;

const SPEEDS = { "half speed": 2, "normal speed": 1, "double speed": 0.5, "four times": 0.25 };

const KEYS = {
  Space: "play, or pause",
  "← →": "one batch back or on; on the picture, the selection",
  "Home End": "first and last batch",
  "f F": "next decision, and the one before",
  Enter: "on the picture: select",
  Esc: "select nothing",
  "c l": "controls and decisions",
  i: "inspector",
  p: "present",
  "?": "this list",
};

export interface DrawerEvents {
  here: () => number;
  seek: (batch: number) => void;
  measure: (name: string) => void;
  ask: Ask | undefined;
  act: ((touched: Touched) => void) | undefined;
}

export class Drawer {
  readonly element: HTMLElement;
  /** Times longer than usual that a batch is shown. */
  slowness = 1;
  private readonly events: DrawerEvents;
  private readonly live: HTMLElement;
  private readonly touches: Touches;
  private readonly imagined: HTMLElement;
  private readonly placement: HTMLSelectElement;
  private readonly hosts: HTMLInputElement;
  private readonly told: HTMLElement;
  private readonly measure: HTMLSelectElement;
  private readonly list: HTMLOListElement;
  private readonly sick: HTMLElement;
  private readonly symptoms: HTMLOListElement;
  private readonly keys: HTMLDetailsElement;

  constructor(box: HTMLElement, events: DrawerEvents) {
    this.element = box;
    this.events = events;
    box.hidden = true;
    this.live = add(box, "div");
    add(this.live, "h2", "", "Change this run");
    this.touches = new Touches(this.live, events.act ?? (() => {}));
    this.imagined = add(box, "form", "braid-whatif");
    add(this.imagined, "h2", "", "What if");
    this.placement = add(field(this.imagined, "placement"), "select");
    this.hosts = add(field(this.imagined, "hosts"), "input");
    Object.assign(this.hosts, { type: "number", min: "1", max: "1024", step: "1", value: "16" });
    this.placement.setAttribute("aria-label", "placement of the what-if");
    this.hosts.setAttribute("aria-label", "hosts of the what-if");
    this.button("had taken over after this batch", events.here);
    this.button("had taken over from the start", () => 0);
    this.told = add(this.imagined, "p");
    this.told.setAttribute("aria-live", "polite");
    add(box, "h2", "", "Shown");
    this.measure = add(field(box, "rows of colour"), "select");
    this.measure.setAttribute("aria-label", "what the rows of colour show");
    this.measure.addEventListener("change", () => events.measure(this.measure.value));
    this.addSpeeds();
    this.keys = add(box, "details", "braid-keys");
    add(this.keys, "summary", "", "Keys");
    this.keys.addEventListener("toggle", () => listKeys(this.keys), { once: true });
    this.sick = add(box, "div", "braid-doctor");
    add(this.sick, "h2", "", "Doctor");
    this.symptoms = add(this.sick, "ol", "braid-decisions");
    add(box, "h2", "", "Decisions");
    this.list = add(box, "ol", "braid-decisions");
  }

  show(page: CockpitPage): void {
    const { what_if_placements: offers, what_if_message: message, hosts, annotations } = page;
    this.live.hidden = !page.touches.some(({ target }) => !target);
    this.touches.show(page.touches, "");
    this.imagined.hidden = !this.events.ask || !offers.length;
    if (this.placement.options.length !== offers.length) {
      options(this.placement, offers);
      this.hosts.value = String(Math.max(1, hosts.values.at(-1)?.[0]?.length ?? 1));
    }
    this.told.textContent = message;
    const own = page.timeline.tracks.filter(({ kind }) => kind === "heat").map(({ name }) => name);
    const measures = [...own, ...hosts.names];
    if (this.measure.options.length !== measures.length) options(this.measure, measures);
    this.tell(this.list, annotations);
    this.sick.hidden = !page.symptoms.length;
    this.tell(this.symptoms, page.symptoms);
  }

  /** Puts the focus on the first field that is seen. */
  focusFirst(): void {
    const fields = [...this.element.querySelectorAll<HTMLElement>("select, input")];
    fields.find((field) => field.checkVisibility())?.focus();
  }

  /** Opens the list of keys, or closes it. */
  toggleKeys(): void {
    this.keys.open = !this.keys.open;
  }

  /** What came of a change of the run. */
  touched(text: string): void {
    this.touches.answer(text);
  }

  /** Marks the decision that was the last one at a batch. */
  mark(batch: number): void {
    const links = [...this.list.querySelectorAll<HTMLElement>("button")];
    const here = links.findLast((link) => Number(link.dataset.batch) <= batch);
    for (const link of links) link.classList.toggle("here", link === here);
  }

  /** Lists sentences, each of which shows its batch. */
  private tell(list: HTMLOListElement, said: Symptom[]): void {
    if (said.map(({ text }) => text).join("") === list.textContent) return;
    list.replaceChildren();
    for (const { batch, text } of said) {
      const link = add(add(list, "li"), "button", "", text);
      link.type = "button";
      link.dataset.batch = String(batch);
      link.addEventListener("click", () => this.events.seek(batch));
    }
  }

  private addSpeeds(): void {
    const speed = add(field(this.element, "speed"), "select");
    speed.setAttribute("aria-label", "speed");
    for (const [name, times] of Object.entries(SPEEDS)) {
      const option = add(speed, "option", "", name);
      option.value = String(times);
      option.selected = times === 1;
    }
    speed.addEventListener("change", () => {
      this.slowness = Number(speed.value);
    });
  }

  private button(text: string, since: () => number): void {
    const made = add(this.imagined, "button", "", text);
    made.type = "button";
    made.addEventListener("click", () => {
      const hosts = this.hosts.valueAsNumber;
      if (!this.hosts.checkValidity() || Number.isNaN(hosts)) {
        this.told.textContent = `hosts is ${this.hosts.value || "empty"}; it must be a whole number, 1 to 1024`;
        return;
      }
      this.told.textContent = "simulating…";
      this.events.ask?.({ placement: this.placement.value, hosts, since: since() });
    });
  }
}

function listKeys(box: HTMLElement): void {
  const list = add(box, "dl", "braid-known");
  for (const [key, does] of Object.entries(KEYS)) {
    add(list, "dt", "", does);
    add(list, "dd", "", key);
  }
}

function field(box: Element, name: string): HTMLElement {
  const label = add(box, "label");
  add(label, "span", "", name);
  return label;
}

function options(select: HTMLSelectElement, names: string[]): void {
  select.replaceChildren();
  for (const name of names) add(select, "option", "", name).value = name;
}
