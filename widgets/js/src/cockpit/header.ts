// The head of the cockpit: state, name, verdict, and the figures after a batch.
import type { BatchFrame, CockpitPage } from "../../frames.ts";
import { records } from "../base/columns.ts";
import { figure, make } from "../base/dom.ts";
import { age } from "../base/format.ts";
import { isLive } from "./page.ts";

const STATES: Record<string, string> = { live: "● live", paused: "❚❚ paused" };

/** Puts the figures of a frame in place of those that are there. */
export function showFigures(box: HTMLElement, { key_figures: figures }: BatchFrame): void {
  const facts = records(figures).map(({ name, value, tooltip: meaning }) => {
    return Object.assign(figure(value, name, "braid-fact"), { title: meaning });
  });
  box.replaceChildren(...facts);
}

export class Header {
  private readonly box: HTMLElement;
  private readonly left = make("span", "braid-left");
  private readonly facts = make("div", "braid-strip");
  private readonly clock = setInterval(() => this.tell(), 500);
  private page: CockpitPage | undefined;
  /** When the page said what its lag is, in milliseconds. */
  private since = 0;

  constructor(box: HTMLElement) {
    this.box = box;
    this.left.title = "time left, and seconds since the last batch was committed";
  }

  close(): void {
    clearInterval(this.clock);
  }

  show(page: CockpitPage, frame: BatchFrame | undefined): void {
    if (page !== this.page) this.since = performance.now();
    this.page = page;
    this.tell();
    const state = make("span", "braid-state", STATES[page.state] ?? page.state);
    state.dataset.state = page.state;
    const title = make("b", "braid-title", frame ? page.name : `${page.name} · no batch yet`);
    const note = Object.assign(make("span", "braid-note", page.note), { title: page.note });
    this.box.replaceChildren(state, make("div", "braid-name", title, this.left, note));
    if (!frame) return;
    const { word, figure: share, tone } = frame.verdict;
    const verdict = figure(word, share, "braid-verdict");
    verdict.dataset.tone = tone;
    this.box.append(verdict, this.facts);
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
