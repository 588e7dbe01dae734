// The head of the cockpit: state, name, verdict, and the figures after a batch.
import type { BatchFrame, CockpitPage } from "../../frames.ts";
import { records } from "../base/columns.ts";
import { add } from "../base/dom.ts";
import { ago } from "../base/format.ts";

const STATES: Record<string, string> = { live: "● live", paused: "❚❚ paused" };

export const isLive = ({ state }: CockpitPage): boolean => state === "live" || state === "paused";

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
  private readonly state: HTMLElement;
  private readonly title: HTMLElement;
  private readonly note: HTMLElement;
  private readonly left: HTMLElement;
  private readonly verdict: HTMLElement;
  private readonly facts: HTMLElement;
  private readonly clock: ReturnType<typeof setInterval>;
  private page: CockpitPage | undefined;
  /** When the page said what its lag is, in milliseconds. */
  private since = 0;

  constructor(box: HTMLElement) {
    this.state = add(box, "span", "braid-state");
    const name = add(box, "div", "braid-name");
    this.title = add(name, "b", "braid-title");
    this.left = add(name, "span", "braid-left");
    this.left.title = "time left, and seconds since the last batch was committed";
    this.note = add(name, "span", "braid-note");
    this.verdict = add(box, "div", "braid-verdict");
    this.facts = add(box, "div", "braid-strip");
    this.clock = setInterval(() => this.tell(), 500);
  }

  close(): void {
    clearInterval(this.clock);
  }

  show(page: CockpitPage): void {
    this.page = page;
    this.since = performance.now();
    this.state.textContent = STATES[page.state] ?? page.state;
    this.state.dataset.state = page.state;
    this.title.textContent = page.frames.length ? page.name : `${page.name} · no batch yet`;
    this.note.textContent = page.note;
    this.note.title = page.note;
    this.tell();
  }

  showBatch(frame: BatchFrame): void {
    const { word, figure, tone } = frame.verdict;
    this.verdict.dataset.tone = tone;
    this.verdict.replaceChildren();
    add(this.verdict, "b", "", word);
    add(this.verdict, "span", "", figure);
    showFigures(this.facts, frame);
  }

  /** The time left, and how long ago the last batch was committed, as long as the run goes on. */
  private tell(): void {
    if (!this.page) return;
    const { seconds_since_commit: lag, seconds_left: left } = this.page;
    const now = (lag ?? 0) + (performance.now() - this.since) / 1000;
    const late = isLive(this.page) && lag !== null ? `lag ${ago(now)}` : "";
    this.left.textContent = [left, late].filter(Boolean).join(" · ");
  }
}
