// The head of the cockpit: state, name, verdict, and the figures after a batch.
import type { BatchFrame, CockpitPage } from "../../frames.ts";
import { records } from "../base/columns.ts";
import { add, make } from "../base/dom.ts";
import { age } from "../base/format.ts";

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
  private readonly state = make("span", "braid-state");
  private readonly title = make("b", "braid-title");
  private readonly left = make("span", "braid-left");
  private readonly note = make("span", "braid-note");
  private readonly verdict = make("div", "braid-verdict");
  private readonly facts = make("div", "braid-strip");
  private readonly clock: ReturnType<typeof setInterval>;
  private page: CockpitPage | undefined;
  /** When the page said what its lag is, in milliseconds. */
  private since = 0;

  constructor(box: HTMLElement) {
    const name = make("div", "braid-name");
    name.append(this.title, this.left, this.note);
    box.append(this.state, name, this.verdict, this.facts);
    this.left.title = "time left, and seconds since the last batch was committed";
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
    const late = isLive(this.page) && lag !== null ? `lag ${age(1e5 * Math.round(10 * now))}` : "";
    this.left.textContent = [left, late].filter(Boolean).join(" · ");
  }
}
