// The condition of a run in a batch: what all of it tested and found, then each of its parts.
import type { BatchFrame, CockpitPage, FlowPart } from "../../frames.ts";
import { records } from "../base/columns.ts";
import { add, make } from "../base/dom.ts";
import { count, shareOf } from "../base/format.ts";

/** Candidates for a result from which on they are said to be many. */
const MANY = 100;

/** What a result costs, if that is much; a model has no index, so that its pairs say nothing. */
export function costOf({ state }: CockpitPage, { flow }: BatchFrame): string | undefined {
  const pairs = Math.round(shareOf(flow.candidates, flow.results));
  const isTold = pairs >= MANY && state !== "modelled";
  return isTold ? `${count(pairs)} pairs are looked at for one result` : undefined;
}

export function conditionPart(page: CockpitPage, frame: BatchFrame): Node[] {
  const [{ condition }, { flow }] = [page, frame];
  const { rows_in, candidates, results, seconds } = flow;
  const parts = records(flow.parts);
  const cells = [
    [count(rows_in), "rows in"],
    [count(candidates), "candidates"],
    [count(results), "results"],
    [seconds?.toFixed(2) ?? "–", "seconds"],
  ].map(([value = "", name = ""]) => make("div", "", make("b", "", value), make("span", "", name)));
  const whole = condition && !parts.length ? make("code", "", condition) : "";
  const box = make("div", "braid-part", whole);
  box.append(make("div", "braid-flow", ...cells), meter([results / (candidates || 1), "accent"]));
  const cost = costOf(page, frame);
  if (cost) add(box, "div", "braid-worse", cost);
  box.append(...parts.map(testedPart));
  return [make("h3", "", "Condition, all hosts, this batch"), box];
}

/** A part of the condition: the rows or pairs that it tests, and the pairs that it keeps. */
function testedPart({ step, text, reached, rows_in, rows_out, seconds }: FlowPart): Node {
  const [tested, kept] = step ? ["rows", "candidates"] : ["pairs", "pairs stay"];
  const spent = seconds ? `, ${seconds.toFixed(3)} s` : "";
  const words = `${reached}: ${count(rows_in)} ${tested} in, ${count(rows_out)} ${kept}${spent}`;
  const texts = [make("code", "", text), make("small", "", words)];
  if (step) return make("div", "braid-step", make("b", "", step), ...texts);
  return make("div", "braid-check", ...texts, meter([rows_out / (rows_in || 1), "accent"]));
}

/** A share of a bar, and its color in the style sheet. */
export type Share = [share: number, colour: string];

export function meter(...parts: Share[]): HTMLElement {
  const whole = make("div", "braid-meter");
  for (const [share, colour] of parts) {
    const width = `${100 * Math.max(0, Math.min(1, share))}%`;
    Object.assign(add(whole, "i").style, { width, background: `var(--ck-${colour})` });
  }
  return whole;
}
