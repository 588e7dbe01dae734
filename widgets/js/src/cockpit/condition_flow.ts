// The condition of a run in a batch: what its parts tested, what they kept, and the cost of a result.
import type { BatchFrame, CockpitPage, FlowPart } from "../../frames.ts";
import { records } from "../base/columns.ts";
import { figure, make, meter } from "../base/dom.ts";
import { count, shareOf } from "../base/format.ts";

/** Candidates for a result from which on they are said to be many. */
const MANY = 100;

/** The cost of a result, if it is high; empty for a model, which has no index. */
export function costOfResult({ state }: CockpitPage, { flow }: BatchFrame): string {
  const pairs = Math.round(shareOf(flow.candidates, flow.results));
  const isHigh = pairs >= MANY && state !== "modelled";
  return isHigh ? `${count(pairs)} pairs are looked at for one result` : "";
}

/** The condition of the run: what all of it tested and found, then each of its parts. */
export function conditionPart(page: CockpitPage, frame: BatchFrame): Node[] {
  const { rows_in, candidates, results, seconds, parts } = frame.flow;
  const counts = Object.entries({ "rows in": rows_in, candidates, results });
  const cells = make("div", "braid-flow", ...counts.map(([name, n]) => figure(count(n), name)));
  cells.append(figure(seconds?.toFixed(2) ?? "–", "seconds"));
  const tested = records(parts).map(testedPart);
  const whole = page.condition && !tested.length ? make("code", "", page.condition) : undefined;
  const bar = meter(candidates, { accent: results });
  const cost = make("div", "braid-worse", costOfResult(page, frame));
  const part = make("div", "braid-part", whole, cells, bar, cost, ...tested);
  return [make("h3", "", `Condition, all ${page.host_word}s, this batch`), part];
}

/** A part of the condition: the rows or pairs that it tests, and the pairs that it keeps. */
function testedPart({ step, text, reached, rows_in, rows_out, seconds }: FlowPart): HTMLElement {
  const [tested, kept] = step ? ["rows", "candidates"] : ["pairs", "pairs stay"];
  const spent = seconds ? `, ${seconds.toFixed(3)} s` : "";
  const words = `${reached}: ${count(rows_in)} ${tested} in, ${count(rows_out)} ${kept}${spent}`;
  const texts = [make("code", "", text), make("small", "", words)];
  if (step) return make("div", "braid-step", make("b", "", step), ...texts);
  return make("div", "braid-check", ...texts, meter(rows_in, { accent: rows_out }));
}
