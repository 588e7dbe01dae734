// The drawer beside the map: what can be changed in the run, what if another placement had taken
// over, what the rows of color show, how fast it plays, the keys, what is wrong, and all decisions.
import type { CockpitPage, Symptom } from "../../frames.ts";
import { add, listed, make, named, pressed, sent, spoken } from "../base/dom.ts";
import { type OfferIn, offersOf, options } from "./touches.ts";

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
  /** Shows the batch again, with another measure. */
  redraw: () => void;
  ask: Ask | undefined;
  offerIn: OfferIn;
}

/** Fills the drawer, and returns what shows a page, and what reads its fields. */
export function makeDrawer(element: HTMLElement, events: DrawerEvents) {
  const { here, seek, redraw, ask, offerIn } = events;
  const live = add(element, "div", "", make("h2", "", "Change this run"));
  const offered = add(live, "p");
  const offerTouches = offerIn(live);

  const imagined = sent(add(element, "form", "braid-whatif", make("h2", "", "What if")), () => {});
  const placement = addField(imagined, "select", "placement", "placement of the what-if");
  const hosts = addField(imagined, "input", "hosts", "hosts of the what-if");
  Object.assign(hosts, { type: "number", min: 1, max: 1024, required: true, value: 16 });
  const reply = spoken(make("p"));
  const offerFrom = (text: string, since: () => number) =>
    pressed(imagined, text, () => {
      const { validationMessage: refused, valueAsNumber } = hosts;
      reply.textContent = refused || "simulating…";
      if (!refused) ask?.({ placement: placement.value, hosts: valueAsNumber, since: since() });
    });
  offerFrom("had taken over after this batch", here);
  offerFrom("had taken over from the start", () => 0);
  imagined.append(reply);

  add(element, "h2", "", "Shown");
  const measure = addField(element, "select", "rows of colour", "what the rows of colour show");
  measure.onchange = redraw;
  const speed = addField(element, "select", "speed", "speed");
  options(speed, ["0.5 ×", "1 ×", "2 ×", "4 ×"]);
  speed.value = "1 ×";
  const keys = add(element, "details", "braid-keys", make("summary", "", "Keys"));
  const listKeys = () => keys.append(listed("braid-known", Object.entries(KEYS)));
  keys.addEventListener("toggle", listKeys, { once: true });
  const sick = add(element, "div", "braid-doctor", make("h2", "", "Doctor"));
  const symptoms = add(sick, "ol", "braid-decisions");
  add(element, "h2", "", "Decisions");
  const decisions = add(element, "ol", "braid-decisions");

  /** Lists sentences, each of which shows its batch. */
  const list = (box: HTMLElement, sentences: Symptom[]) => {
    if (sentences.map(({ text }) => text).join("") === box.textContent) return;
    box.replaceChildren();
    for (const { batch, text } of sentences) {
      pressed(add(box, "li"), text, () => seek(batch)).dataset.batch = String(batch);
    }
  };

  return {
    element,
    show(page: CockpitPage): void {
      const { touches, what_if_placements: placements, timeline } = page;
      const kinds = offersOf(touches);
      live.hidden = !touches.length;
      offerTouches(touches, "");
      offered.hidden = !kinds.length;
      offered.textContent = `Select in the picture ${kinds.join(" or ")}`;
      imagined.hidden = !ask || !placements.length;
      if (options(placement, placements)) {
        hosts.value = String(Math.max(1, page.hosts.values.at(-1)?.[0]?.length ?? 1));
      }
      reply.textContent = page.what_if_message;
      const own = timeline.tracks.filter(({ kind }) => kind === "heat").map(({ name }) => name);
      options(measure, [...own, ...page.hosts.names]);
      list(decisions, page.annotations);
      sick.hidden = !page.symptoms.length;
      list(symptoms, page.symptoms);
    },
    /** The measure that the rows of color show. */
    measure: () => measure.value,
    /** Times longer than usual that a batch is shown. */
    slowness: () => 1 / Number.parseFloat(speed.value),
    /** Puts the focus on the first field that is seen. */
    focusFirst(): void {
      const fields = [...element.querySelectorAll<HTMLElement>("select, input, textarea")];
      fields.find((field) => field.checkVisibility())?.focus();
    },
    /** Opens the list of keys, or closes it. */
    toggleKeys(): void {
      keys.open = !keys.open;
    },
    /** Marks the decision that was the last one at a batch. */
    mark(batch: number): void {
      const links = [...decisions.querySelectorAll<HTMLElement>("button")];
      const latest = links.findLast((link) => Number(link.dataset.batch) <= batch);
      for (const link of links) link.classList.toggle("here", link === latest);
    },
  };
}

/** A field with a text before it, and a name for who hears it. */
function addField<K extends "input" | "select">(box: Element, tag: K, text: string, name: string) {
  const field = named(make(tag), name);
  add(box, "label", "", make("span", "", text), field);
  return field;
}
