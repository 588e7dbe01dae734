// The drawer beside the map: what can be changed in the run, what if another placement had taken
// over, what the rows of color show, how fast it plays, the keys, what is wrong, and all decisions.
import type { CockpitPage, Symptom } from "../../frames.ts";
import { add, make, pressed, spoken } from "../base/dom.ts";
import { options, type Touched, Touches } from "./touches.ts";

export interface Asked {
  placement: string;
  hosts: number;
  /** The batch (from 1) after which it takes over; 0: from the start. */
  since: number;
}

export type Ask = (asked: Asked) => void;

const SPEEDS: Record<string, number> = {
  "half speed": 2,
  "normal speed": 1,
  "double speed": 0.5,
  "four times": 0.25,
};

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
  private readonly live = make("div");
  private readonly touches: Touches;
  private readonly imagined = make("form", "braid-whatif");
  private readonly placement: HTMLSelectElement;
  private readonly hosts: HTMLInputElement;
  private readonly told = spoken(make("p"));
  private readonly measure: HTMLSelectElement;
  private readonly keys: HTMLDetailsElement;
  private readonly sick = make("div", "braid-doctor");
  private readonly symptoms: HTMLElement;
  private readonly list: HTMLElement;

  constructor(box: HTMLElement, events: DrawerEvents) {
    this.element = box;
    this.events = events;
    box.hidden = true;
    box.append(this.live, this.imagined);
    add(this.live, "h2", "", "Change this run");
    this.touches = new Touches(this.live, events.act ?? (() => {}));
    add(this.imagined, "h2", "", "What if");
    this.placement = field(this.imagined, "placement", "select", "placement of the what-if");
    this.hosts = field(this.imagined, "hosts", "input", "hosts of the what-if");
    Object.assign(this.hosts, { type: "number", min: "1", max: "1024", step: "1", value: "16" });
    this.offer("had taken over after this batch", events.here);
    this.offer("had taken over from the start", () => 0);
    this.imagined.append(this.told);
    add(box, "h2", "", "Shown");
    const rows = "what the rows of colour show";
    this.measure = field(box, "rows of colour", "select", rows);
    this.measure.addEventListener("change", () => events.measure(this.measure.value));
    const speed = field(box, "speed", "select", "speed");
    options(speed, Object.keys(SPEEDS));
    speed.value = "normal speed";
    speed.addEventListener("change", () => {
      this.slowness = SPEEDS[speed.value] ?? 1;
    });
    this.keys = add(box, "details", "braid-keys");
    add(this.keys, "summary", "", "Keys");
    this.keys.addEventListener("toggle", () => listKeys(this.keys), { once: true });
    box.append(this.sick);
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
    if (options(this.placement, offers)) {
      this.hosts.value = String(Math.max(1, hosts.values.at(-1)?.[0]?.length ?? 1));
    }
    this.told.textContent = message;
    const own = page.timeline.tracks.filter(({ kind }) => kind === "heat").map(({ name }) => name);
    options(this.measure, [...own, ...hosts.names]);
    this.tell(this.list, annotations);
    this.sick.hidden = !page.symptoms.length;
    this.tell(this.symptoms, page.symptoms);
  }

  /** Puts the focus on the first field that is seen. */
  focusFirst(): void {
    const fields = [...this.element.querySelectorAll<HTMLElement>("select, input, textarea")];
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
  private tell(list: HTMLElement, said: Symptom[]): void {
    if (said.map(({ text }) => text).join("") === list.textContent) return;
    list.replaceChildren();
    for (const { batch, text } of said) {
      const link = pressed(add(list, "li"), text, () => this.events.seek(batch));
      link.dataset.batch = String(batch);
    }
  }

  /** Offers a what-if from a batch on. */
  private offer(text: string, since: () => number): void {
    pressed(this.imagined, text, () => {
      const { value, valueAsNumber: hosts } = this.hosts;
      const taken = this.hosts.checkValidity() && !Number.isNaN(hosts);
      const refused = `hosts is ${value || "empty"}; it must be a whole number, 1 to 1024`;
      this.told.textContent = taken ? "simulating…" : refused;
      if (taken) this.events.ask?.({ placement: this.placement.value, hosts, since: since() });
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

function field<K extends "select" | "input">(box: Element, name: string, tag: K, label: string) {
  const row = add(box, "label");
  add(row, "span", "", name);
  const made = add(row, tag);
  made.setAttribute("aria-label", label);
  return made;
}
