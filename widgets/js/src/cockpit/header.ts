// The head of the cockpit: state, name, verdict, and the figures after a batch.
import type { BatchFrame, CockpitPage } from "../../frames.ts";
import { records } from "../base/columns.ts";
import { add } from "../base/dom.ts";
import { age } from "../base/format.ts";
import { isLive } from "./page.ts";

const STATES: Record<string, string> = { live: "● live", paused: "❚❚ paused" };

/** Puts the figures of a frame in place of those that are there. */
export function showFigures(box: HTMLElement, { key_figures: facts }: BatchFrame): void {
  box.replaceChildren();
  for (const { name, value, tooltip: meaning } of records(facts)) {
    const fact = add(box, "div", "braid-fact");
    fact.title = meaning;
    add(fact, "b", "", value);
    add(fact, "span", "", name);
  }
}

export class Header {
  private readonly box: HTMLElement;
  private readonly clock = setInterval(() => this.tell(), 500);
  private left: HTMLElement | undefined;
  private page: CockpitPage | undefined;
  /** When the page said what its lag is, in milliseconds. */
  private since = 0;

  constructor(box: HTMLElement) {
    this.box = box;
  }

  close(): void {
    clearInterval(this.clock);
  }

  show(page: CockpitPage, frame: BatchFrame | undefined): void {
    if (page !== this.page) this.since = performance.now();
    this.page = page;
    const { box } = this;
    box.replaceChildren();
    const state = add(box, "span", "braid-state", STATES[page.state] ?? page.state);
    state.dataset.state = page.state;
    const name = add(box, "div", "braid-name");
    add(name, "b", "braid-title", frame ? page.name : `${page.name} · no batch yet`);
    this.left = add(name, "span", "braid-left");
    this.left.title = "time left, and seconds since the last batch was committed";
    add(name, "span", "braid-note", page.note).title = page.note;
    this.tell();
    if (!frame) return;
    const { word, figure, tone } = frame.verdict;
    const verdict = add(box, "div", "braid-verdict");
    verdict.dataset.tone = tone;
    add(verdict, "b", "", word);
    add(verdict, "span", "", figure);
    showFigures(add(box, "div", "braid-strip"), frame);
  }

  /** The time left, and how long ago the last batch was committed, as long as the run goes on. */
  private tell(): void {
    if (!this.page || !this.left) return;
    const { seconds_since_commit: lag, seconds_left: left } = this.page;
    const now = (lag ?? 0) + (performance.now() - this.since) / 1000;
    const late = isLive(this.page) && lag !== null ? `lag ${age(1e5 * Math.round(10 * now))}` : "";
    this.left.textContent = [left, late].filter(Boolean).join(" · ");
  }
}
