// Asks what another placement would do from the batch that is looked at.
import { add } from "../base/dom.ts";
import type { CockpitPage } from "../frames.ts";

export interface Asked {
  placement: string;
  hosts: number;
  /** The batch (from 1) after which it takes over; 0: from the start. */
  since: number;
}

export type Ask = (asked: Asked) => void;

export class WhatIf {
  private readonly box: HTMLElement;
  private readonly placement: HTMLSelectElement;
  private readonly hosts: HTMLInputElement;
  private readonly told: HTMLElement;
  private readonly ask: Ask | undefined;

  constructor(box: HTMLElement, here: () => number, ask?: Ask) {
    this.box = box;
    this.ask = ask;
    box.hidden = true;
    add(box, "span", "", "What if");
    this.placement = add(box, "select");
    this.placement.setAttribute("aria-label", "placement of the what-if");
    add(box, "span", "", "on");
    this.hosts = add(box, "input");
    Object.assign(this.hosts, { type: "number", min: "1", max: "1024", value: "16" });
    this.hosts.setAttribute("aria-label", "hosts of the what-if");
    add(box, "span", "", "hosts had taken over");
    this.button("after this batch", here);
    this.button("from the start", () => 0);
    this.told = add(box, "span", "braid-left");
    this.told.setAttribute("aria-live", "polite");
  }

  show({
    what_if_placements: offers,
    what_if_message: told,
    timeline: line,
    hosts,
  }: CockpitPage): void {
    this.box.hidden = !this.ask || !offers.length;
    if (this.placement.options.length !== offers.length) {
      this.placement.replaceChildren();
      for (const name of offers) add(this.placement, "option", "", name).value = name;
      const used = Math.max(1, ...hosts.values.map((values) => values[0]?.length ?? 1));
      this.hosts.value = String(used);
    }
    const drawn = line.panels.flat().flatMap((curve) => curve.baselines ?? []);
    this.told.textContent = told || (drawn.length ? "" : "drawn beside the run; modelled");
  }

  private button(text: string, since: () => number): void {
    const made = add(this.box, "button", "", text);
    made.type = "button";
    made.addEventListener("click", () => {
      this.told.textContent = "simulating…";
      const hosts = Number(this.hosts.value);
      this.ask?.({ placement: this.placement.value, hosts, since: since() });
    });
  }
}
