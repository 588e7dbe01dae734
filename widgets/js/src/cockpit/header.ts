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

/** Fills the header, and returns what shows a batch and what ends its clock. */
export function makeHeader(box: HTMLElement) {
  const left = make("span", "braid-left");
  left.title = "time left, and seconds since the last batch was committed";
  const facts = make("div", "braid-strip");
  let shown: CockpitPage | undefined;
  let since = 0; // when the page said what its lag is, in milliseconds
  const tell = () => {
    if (shown) left.textContent = timesOf(shown, (performance.now() - since) / 1000);
  };
  const clock = setInterval(tell, 500);
  const show = (page: CockpitPage, frame: BatchFrame | undefined) => {
    if (page !== shown) since = performance.now();
    shown = page;
    tell();
    const state = make("span", "braid-state", STATES[page.state] ?? page.state);
    state.dataset.state = page.state;
    state.title = page.note;
    const title = make("b", "braid-title", frame ? page.name : `${page.name} · no batch yet`);
    const note = Object.assign(make("span", "braid-note", page.note), { title: page.note });
    box.replaceChildren(state, make("div", "braid-name", title, left, note));
    if (!frame) return;
    const { word, figure: share, tone } = frame.verdict;
    const verdict = figure(word, share, "braid-verdict");
    verdict.dataset.tone = tone;
    box.append(word ? verdict : "", facts);
    showFigures(facts, frame);
  };
  return { show, close: () => clearInterval(clock) };
}

/** The time left, and how long ago the last batch was committed, as long as the run goes on. */
function timesOf(page: CockpitPage, seconds: number): string {
  const { seconds_since_commit: lag, seconds_left: left } = page;
  const late = isLive(page) && lag !== null;
  const text = late ? `lag ${age(1e5 * Math.round(10 * (lag + seconds)))}` : "";
  return [left, text].filter(Boolean).join(" · ");
}
