// The selection, a host or all of them: its state, its work, that of the condition, and the seconds
// by phase. Where a kernel can be asked, also the blocks on a host, their history, and what
// serves a query.
import type { BatchFrame, CockpitPage, FlowPart } from "../../frames.ts";
import type { Detail, Pair } from "../base/canvas_map.ts";
import { records } from "../base/columns.ts";
import { add, make, pressed, spoken } from "../base/dom.ts";
import { count } from "../base/format.ts";
import { detailOf } from "./maps.ts";
import { type Touched, Touches } from "./touches.ts";
import { answerPairs } from "./waits.ts";

export type Place =
  | { host: number; batch: number }
  | { query: string; batch: number }
  | { blocks: number[] };

const NAMES: Record<string, [string, string]> = {
  stored: ["rows held", ""],
  received: ["received in this batch", ""],
  compared: ["pairs compared", ""],
  shed: ["pairs left out", ""],
  moved: ["moved here in this batch", ""],
  results: ["results", ""],
  busy: ["seconds of work", "s"],
  waits: ["seconds of waiting", "s"],
};

/** Candidates for a result from which on they are said to be many. */
const MANY = 100;

/** Letters from which on a value has a line of its own. */
const LONG = 28;

/** The blocks that are typed, as "7", "7 12" or "blocks 7, 12". */
export function blocksOf(text: string): number[] {
  return (text.match(/\d+/g) ?? []).map(Number);
}

/** The work of a host, or of all of them, in a batch. */
export function didPairs({ hosts }: CockpitPage, batch: number, host?: number): Pair[] {
  const at = hosts.batch.indexOf(batch);
  return hosts.names.map((name, k) => {
    const row = hosts.values[at]?.[k] ?? [];
    const value = host === undefined ? sum(row) : (row[host] ?? 0);
    const [words, unit] = NAMES[name] ?? [name, ""];
    return [words, unit === "s" ? `${value.toFixed(3)} s` : count(value)];
  });
}

const sum = (values: number[]): number => values.reduce((total, each) => total + each, 0);

export class Inspector {
  private readonly shown = make("div");
  private readonly touches: Touches;
  private readonly rest = make("div");
  private readonly form = make("form", "braid-whatif");
  private readonly told = spoken(make("pre", "braid-inspect"));
  private readonly ask: ((place: Place) => void) | undefined;
  private readonly here: () => number;

  constructor(
    box: HTMLElement,
    here: () => number,
    ask?: (place: Place) => void,
    act: (touched: Touched) => void = () => {},
  ) {
    box.setAttribute("aria-label", "inspector");
    this.here = here;
    this.ask = ask;
    box.append(this.shown);
    this.touches = new Touches(box, act);
    box.append(this.rest, this.form, this.told);
    this.form.hidden = !ask;
    this.told.hidden = true;
    this.addForm();
  }

  /** The answer to a question, as text. */
  answer(text: string): void {
    this.told.textContent = text;
    this.told.hidden = !text;
  }

  show(page: CockpitPage, frame: BatchFrame, selected: string): void {
    const host = /^host:(\d+)$/.exec(selected)?.[1];
    const detail = detailOf(frame.state_map, selected);
    this.shown.replaceChildren();
    if (host !== undefined) this.showHost(page, frame, Number(host), detail);
    else if (detail) this.showDetail(detail, selected);
    else this.showAll(page, frame);
    const held = page.hosts.values.at(-1)?.[0]?.[Number(host)] ?? 0;
    this.touches.show(selected ? page.touches : [], selected, held);
    this.rest.replaceChildren();
    this.showCondition(page, frame);
    this.showSeconds(page, frame.batch);
  }

  /** What came of a change of the run. */
  touched(text: string): void {
    this.touches.answer(text);
  }

  private showHost(page: CockpitPage, { batch }: BatchFrame, host: number, detail?: Detail): void {
    this.head(detail?.title ?? `Host ${host}`, detail?.words);
    const { hosts } = page;
    const [stored, ...did] = didPairs(page, batch, host);
    const held = hosts.values[hosts.batch.indexOf(batch)]?.[0] ?? [];
    const most = Math.max(1, ...hosts.values.flatMap((values) => values[0] ?? []));
    bar(this.shown, [[(held[host] ?? 0) / most, "accent"]]);
    const mean: Pair = ["mean of all hosts", count(sum(held) / Math.max(1, held.length))];
    pairs(this.shown, stored ? [stored, mean] : [mean]);
    pairs(this.shown, [...did, ...(detail?.pairs ?? [])]);
    this.offer("Blocks on this host", () => ({ host, batch: this.here() }));
  }

  private showDetail({ title, words, pairs: found }: Detail, selected: string): void {
    this.head(title, words);
    pairs(this.shown, found);
    const query = /^query:(.*)$/.exec(selected)?.[1];
    if (query !== undefined) this.offer("What serves it", () => ({ query, batch: this.here() }));
  }

  /** Offers to ask about a place. */
  private offer(text: string, place: () => Place): void {
    const { ask } = this;
    if (ask) pressed(this.shown, text, () => ask(place()));
  }

  private showAll(page: CockpitPage, frame: BatchFrame): void {
    const hosts = page.hosts.values.at(-1)?.[0]?.length ?? 0;
    this.head("All hosts", `${count(hosts)} in use; select something in the picture to read it`);
    pairs(this.shown, didPairs(page, frame.batch));
    if (!frame.answers.length) return;
    add(this.shown, "h3", "", "Answers");
    pairs(this.shown, answerPairs(frame.answers));
  }

  private head(title: string, words = ""): void {
    add(this.shown, "h2", "", title);
    if (words) add(this.shown, "p", "", words);
  }

  private showCondition({ condition }: CockpitPage, { flow }: BatchFrame): void {
    add(this.rest, "h3", "", "Condition, all hosts, this batch");
    const part = add(this.rest, "div", "braid-part");
    const parts = records(flow.parts);
    if (condition && !parts.length) add(part, "code", "", condition);
    const box = add(part, "div", "braid-flow");
    const cells: Pair[] = [
      [count(flow.rows_in), "rows in"],
      [count(flow.candidates), "candidates"],
      [count(flow.results), "results"],
      [flow.seconds?.toFixed(2) ?? "–", "seconds"],
    ];
    for (const [value, name] of cells) {
      const cell = add(box, "div");
      add(cell, "b", "", value);
      add(cell, "span", "", name);
    }
    bar(part, [[flow.candidates ? flow.results / flow.candidates : 0, "accent"]]);
    const many = flow.results ? Math.round(flow.candidates / flow.results) : 0;
    const text = `${count(many)} pairs are looked at for one result`;
    if (many >= MANY) add(part, "div", "braid-worse", text);
    for (const each of parts) showPart(part, each);
  }

  private showSeconds({ timeline }: CockpitPage, batch: number): void {
    const phases = timeline.tracks.find(({ kind }) => kind === "bars")?.series ?? [];
    const spent = phases.map((each) => each.values[each.batch.indexOf(batch)] ?? 0);
    const total = sum(spent);
    if (!total) return;
    add(this.rest, "h3", "", `Where the ${total.toFixed(2)} seconds went`);
    const shares = phases.map(({ role }, k): Share => [(spent[k] ?? 0) / total, `phase-${role}`]);
    bar(this.rest, shares);
    const each = phases.map(({ name }, k): Pair => [name, `${spent[k]?.toFixed(3)} s`]);
    pairs(this.rest, each);
  }

  /** Adds the field in which one or two blocks are typed. */
  private addForm(): void {
    const ids = add(this.form, "input");
    ids.setAttribute("aria-label", "a block, or two");
    ids.placeholder = "block 7, or 7 12";
    add(this.form, "button", "", "Its history, or why two met");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask?.({ blocks: blocksOf(ids.value) });
    });
  }
}

/** A part of the condition: the rows or pairs that it tests, and the pairs that it keeps. */
function showPart(box: Element, { step, text, reached, ...part }: FlowPart): void {
  const branch = add(box, "div", step ? "braid-step" : "braid-check");
  if (step) add(branch, "b", "", step);
  add(branch, "code", "", text);
  const spent = part.seconds ? `, ${part.seconds.toFixed(3)} s` : "";
  const came = `${count(part.rows_in)} ${step ? "rows" : "pairs"}`;
  const left = `${count(part.rows_out)} ${step ? "candidates" : "pairs stay"}`;
  add(branch, "small", "", `${reached}: ${came} in, ${left}${spent}`);
  if (!step) bar(branch, [[part.rows_in ? part.rows_out / part.rows_in : 0, "accent"]]);
}

function pairs(box: Element, found: Pair[]): void {
  const list = add(box, "dl", "braid-pairs");
  for (const [name, value] of found) {
    const kind = value && value.length <= LONG ? "" : "braid-long";
    add(list, "dt", kind, name);
    add(list, "dd", kind, value);
  }
}

/** A share of a bar, and its color in the style sheet. */
type Share = [share: number, colour: string];

function bar(box: Element, parts: Share[]): void {
  const whole = add(box, "div", "braid-meter");
  for (const [share, colour] of parts) {
    const width = `${100 * Math.max(0, Math.min(1, share))}%`;
    Object.assign(add(whole, "i").style, { width, background: `var(--ck-${colour})` });
  }
}
