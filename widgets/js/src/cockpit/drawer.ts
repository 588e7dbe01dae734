// The drawer beside the map: what can be changed in the run, what if another placement had taken
// over, what the rows of color show, how fast it plays, the keys, what is wrong, and all decisions.
import type { CockpitPage, Symptom } from "../../frames.ts";
import { add, listed, make, named, pressed, sent, spoken } from "../base/dom.ts";
import { type Offer, offersOf, options } from "./touches.ts";

export interface Asked {
  placement: string;
  hosts: number;
  /** The batch (from 1) after which it takes over; 0: from the start. */
  since: number;
}

export type Ask = (asked: Asked) => void;

const KEYS = {
  "play, or pause": "Space",
  "one batch back or on; on the picture, the selection": "← →",
  "first and last batch": "Home End",
  "next decision, and the one before": "f F",
  "on the picture: select": "Enter",
  "select nothing": "Esc",
  "controls and decisions": "c l",
  inspector: "i",
  present: "p",
  "this list": "?",
};

export interface DrawerEvents {
  here: () => number;
  seek: (batch: number) => void;
  measure: (name: string) => void;
  ask: Ask | undefined;
  offerIn: (box: HTMLElement) => Offer;
}

export class Drawer {
  readonly element: HTMLElement;
  private readonly events: DrawerEvents;
  private readonly live = make("div", "", make("h2", "", "Change this run"));
  private readonly offerTouches: Offer;
  private readonly offers: HTMLElement;
  private readonly imagined = make("form", "braid-whatif", make("h2", "", "What if"));
  private readonly placement = named(make("select"), "placement of the what-if");
  private readonly hosts = named(make("input"), "hosts of the what-if");
  private readonly told = spoken(make("p"));
  private readonly measure = named(make("select"), "what the rows of colour show");
  private readonly speed = named(make("select"), "speed");
  private readonly keys = make("details", "braid-keys", make("summary", "", "Keys"));
  private readonly symptoms = make("ol", "braid-decisions");
  private readonly sick = make("div", "braid-doctor", make("h2", "", "Doctor"), this.symptoms);
  private readonly list = make("ol", "braid-decisions");

  constructor(box: HTMLElement, events: DrawerEvents) {
    this.element = box;
    this.events = events;
    this.offers = add(this.live, "p");
    this.offerTouches = events.offerIn(this.live);
    Object.assign(this.hosts, {
      type: "number",
      min: "1",
      max: "1024",
      required: true,
      value: "16",
    });
    this.imagined.append(labelled("placement", this.placement), labelled("hosts", this.hosts));
    this.offer("had taken over after this batch", events.here);
    this.offer("had taken over from the start", () => 0);
    sent(this.imagined, () => {}).append(this.told);
    options(this.speed, ["0.5 ×", "1 ×", "2 ×", "4 ×"]);
    this.speed.value = "1 ×";
    this.measure.onchange = () => events.measure(this.measure.value);
    const list = () => this.keys.append(listed("braid-known", Object.entries(KEYS)));
    this.keys.addEventListener("toggle", list, { once: true });
    box.append(this.live, this.imagined, make("h2", "", "Shown"));
    box.append(labelled("rows of colour", this.measure), labelled("speed", this.speed), this.keys);
    box.append(this.sick, make("h2", "", "Decisions"), this.list);
  }

  /** Times longer than usual that a batch is shown. */
  get slowness(): number {
    return 1 / Number.parseFloat(this.speed.value);
  }

  show(page: CockpitPage): void {
    const { what_if_placements: offers, what_if_message: message, hosts, annotations } = page;
    const offered = offersOf(page.touches);
    this.live.hidden = !page.touches.length;
    this.offerTouches(page.touches, "");
    this.offers.hidden = !offered.length;
    this.offers.textContent = `Select in the picture ${offered.join(" or ")}`;
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
      const { validationMessage: refused, valueAsNumber: hosts } = this.hosts;
      this.told.textContent = refused || "simulating…";
      if (!refused) this.events.ask?.({ placement: this.placement.value, hosts, since: since() });
    });
  }
}

const labelled = (name: string, field: HTMLElement) =>
  make("label", "", make("span", "", name), field);
