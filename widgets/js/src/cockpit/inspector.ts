// The selection, a host or all of them: its state, its work, that of the condition, and the seconds
// by phase. Where a kernel can be asked, also the blocks on a host, their history, and what
// serves a query.
import type { BatchFrame, CockpitPage, FlowPart } from "../../frames.ts";
import type { Detail, Pair } from "../base/canvas_map.ts";
import { records, sum } from "../base/columns.ts";
import { add, figure, listed, make, named, pressed, sent, spoken } from "../base/dom.ts";
import { count, shareOf } from "../base/format.ts";
import { detailOf } from "./maps.ts";
import type { Offer } from "./touches.ts";

export type Place =
  | { host: number; batch: number }
  | { query: string; batch: number }
  | { blocks: number[] };

const NAMES: Record<string, string> = {
  stored: "rows held",
  received: "received in this batch",
  compared: "pairs compared",
  shed: "pairs left out",
  moved: "moved here in this batch",
  busy: "seconds of work",
  waits: "seconds of waiting",
};
/** Candidates for a result from which on they are said to be many. */
const MANY = 100;

/** The blocks that are typed, as "7", "7 12" or "blocks 7, 12". */
export const blocksOf = (text: string): number[] => (text.match(/\d+/g) ?? []).map(Number);

/** The work of a host, or of all of them, in a batch. */
export function didPairs({ hosts }: CockpitPage, batch: number, host?: number): Pair[] {
  const rows = hosts.values[hosts.batch.indexOf(batch)];
  return hosts.names.map((name, k) => {
    const value = host === undefined ? sum(rows?.[k] ?? []) : (rows?.[k]?.[host] ?? 0);
    const words = NAMES[name] ?? name;
    return [words, words.startsWith("seconds") ? `${value.toFixed(3)} s` : count(value)];
  });
}

export class Inspector {
  private readonly shown: HTMLElement;
  private readonly offerTouches: Offer;
  private readonly rest: HTMLElement;
  private readonly told = spoken(make("pre", "braid-inspect"));
  private readonly inspect: ((place: Place) => void) | undefined;

  constructor(
    box: HTMLElement,
    offerIn: (box: HTMLElement) => Offer,
    inspect?: (at: Place) => void,
  ) {
    box.ariaLabel = "inspector";
    this.inspect = inspect;
    this.shown = add(box, "div");
    this.offerTouches = offerIn(box);
    this.rest = add(box, "div");
    if (inspect) this.askForBlocks(add(box, "form", "braid-whatif"));
  }

  /** The answer to the last question, below what asked it. */
  answer(text: string): void {
    this.told.textContent = text;
    if (text) this.told.scrollIntoView({ block: "nearest" });
    else this.told.remove();
  }

  show(page: CockpitPage, frame: BatchFrame, selected: string): void {
    const [, kind, name = ""] = /^(host|query):(.*)$/.exec(selected) ?? [];
    const host = kind === "host" ? Number(name) : undefined;
    const { batch } = frame;
    const held = page.hosts.values.map((values) => values[0] ?? []);
    const latest = held.at(-1) ?? [];
    const detail = detailOf(frame.state_map, selected);
    const { title, words, pairs } = detail ?? wholeOf(page, latest.length, host);
    const did = detail && host === undefined ? [] : didPairs(page, batch, host);
    this.shown.replaceChildren(make("h2", "", title), words ? make("p", "", words) : "");
    if (host !== undefined) {
      const now = held[page.hosts.batch.indexOf(batch)] ?? [];
      did.splice(1, 0, ["mean of all hosts", count(shareOf(sum(now), now.length))]);
      const most = held.reduce((top, rows) => Math.max(top, ...rows), 1);
      this.shown.append(meter([(now[host] ?? 0) / most, "accent"]));
    }
    this.shown.append(listed("braid-pairs", [...did, ...pairs]));
    if (host !== undefined) this.offer("Blocks on this host", { host, batch });
    else if (kind && detail) this.offer("What serves it", { query: name, batch });
    const isThere = detail !== undefined || host !== undefined;
    this.offerTouches(isThere ? page.touches : [], selected, latest[Number(name)] ?? 0);
    this.rest.replaceChildren(...conditionPart(page, frame), ...secondsPart(page, batch));
  }

  /** Asks about a place; the answer comes below what asked. */
  private ask(place: Place, below: Element): void {
    below.after(this.told);
    this.inspect?.(place);
  }

  private offer(text: string, place: Place): void {
    if (this.inspect) pressed(this.shown, text, () => this.ask(place, this.shown));
  }

  /** Asks for the history of a block, or why two met. */
  private askForBlocks(form: HTMLFormElement): void {
    const ids = named(add(form, "input"), "a block, or two");
    ids.placeholder = "block 7, or 7 12";
    add(form, "button", "", "Its history, or why two met");
    sent(form, () => this.ask({ blocks: blocksOf(ids.value) }, form));
  }
}

/** The text without a selection, or for a host that the map does not describe. */
function wholeOf(page: CockpitPage, hosts: number, host?: number): Detail {
  if (host !== undefined) return { title: `Host ${host}`, words: "", pairs: [] };
  const act = page.touches.some(({ target }) => target) ? "read or change it" : "read it";
  const words = `${count(hosts)} in use; select something in the picture to ${act}`;
  return { title: "All hosts", words, pairs: [] };
}

/** The cost of a result, if it is high; empty for a model, which has no index. */
export function costOfResult({ state }: CockpitPage, { flow }: BatchFrame): string | undefined {
  const pairs = Math.round(shareOf(flow.candidates, flow.results));
  const isTold = pairs >= MANY && state !== "modelled";
  return isTold ? `${count(pairs)} pairs are looked at for one result` : undefined;
}

/** The condition of the run: what all of it tested and found, then each of its parts. */
function conditionPart(page: CockpitPage, frame: BatchFrame): Node[] {
  const [{ condition }, { flow }] = [page, frame];
  const { rows_in, candidates, results, seconds } = flow;
  const cells = make("div", "braid-flow", figure(count(rows_in), "rows in"));
  cells.append(figure(count(candidates), "candidates"), figure(count(results), "results"));
  cells.append(figure(seconds?.toFixed(2) ?? "–", "seconds"));
  const parts = records(flow.parts);
  const whole = condition && !parts.length ? make("code", "", condition) : undefined;
  const part = make("div", "braid-part", whole, cells);
  part.append(meter([shareOf(results, candidates), "accent"]));
  const cost = costOfResult(page, frame);
  if (cost) add(part, "div", "braid-worse", cost);
  part.append(...parts.map(testedPart));
  return [make("h3", "", "Condition, all hosts, this batch"), part];
}

/** A part of the condition: the rows or pairs that it tests, and the pairs that it keeps. */
function testedPart({ step, text, reached, rows_in, rows_out, seconds }: FlowPart): Node {
  const [tested, kept] = step ? ["rows", "candidates"] : ["pairs", "pairs stay"];
  const spent = seconds ? `, ${seconds.toFixed(3)} s` : "";
  const words = `${reached}: ${count(rows_in)} ${tested} in, ${count(rows_out)} ${kept}${spent}`;
  const texts = [make("code", "", text), make("small", "", words)];
  if (step) return make("div", "braid-step", make("b", "", step), ...texts);
  return make("div", "braid-check", ...texts, meter([shareOf(rows_out, rows_in), "accent"]));
}

function secondsPart({ timeline }: CockpitPage, batch: number): Node[] {
  const phases = timeline.tracks.find(({ kind }) => kind === "bars")?.series ?? [];
  const spent = phases.map((each) => each.values[each.batch.indexOf(batch)] ?? 0);
  const total = sum(spent);
  if (!total) return [];
  const shares = phases.map(({ role }, k): Share => [(spent[k] ?? 0) / total, `phase-${role}`]);
  const each = phases.map(({ name }, k): Pair => [name, `${spent[k]?.toFixed(3)} s`]);
  const head = make("h3", "", `Where the ${total.toFixed(2)} seconds went`);
  return [head, meter(...shares), listed("braid-pairs", each)];
}

/** A share of a bar, and its color in the style sheet. */
type Share = [share: number, colour: string];

function meter(...parts: Share[]): HTMLElement {
  const whole = make("div", "braid-meter");
  for (const [share, colour] of parts) {
    const width = `${100 * Math.max(0, Math.min(1, share))}%`;
    Object.assign(add(whole, "i").style, { width, background: `var(--ck-${colour})` });
  }
  return whole;
}
