// The selection, a host or all of them: its state, its work, that of the condition, and the seconds
// by phase. Where a kernel can be asked, also the blocks on a host, their history, and what
// serves a query.
import type { BatchFrame, CockpitPage } from "../../frames.ts";
import type { Detail, Pair } from "../base/canvas_map.ts";
import { listed, make, named, pressed, sent, spoken } from "../base/dom.ts";
import { count } from "../base/format.ts";
import { conditionPart, meter, type Share } from "./condition.ts";
import { detailOf } from "./maps.ts";
import { type Touched, Touches } from "./touches.ts";

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

/** The blocks that are typed, as "7", "7 12" or "blocks 7, 12". */
export const blocksOf = (text: string): number[] => (text.match(/\d+/g) ?? []).map(Number);

const sum = (values: number[] = []): number => values.reduce((total, each) => total + each, 0);

/** The work of a host, or of all of them, in a batch. */
export function didPairs({ hosts }: CockpitPage, batch: number, host?: number): Pair[] {
  const rows = hosts.values[hosts.batch.indexOf(batch)];
  return hosts.names.map((name, k) => {
    const value = host === undefined ? sum(rows?.[k]) : (rows?.[k]?.[host] ?? 0);
    const words = NAMES[name] ?? name;
    return [words, words.startsWith("seconds") ? `${value.toFixed(3)} s` : count(value)];
  });
}

export class Inspector {
  private readonly shown = make("div");
  private readonly touches: Touches;
  private readonly rest = make("div");
  private readonly told = spoken(make("pre", "braid-inspect"));
  private readonly ask: ((place: Place) => void) | undefined;

  constructor(box: HTMLElement, ask?: (place: Place) => void, act?: (touched: Touched) => void) {
    box.setAttribute("aria-label", "inspector");
    this.ask = ask;
    box.append(this.shown);
    this.touches = new Touches(box, act);
    box.append(this.rest, ask ? blocksForm(ask) : "", this.told);
    this.answer("");
  }

  /** The answer to a question, as text. */
  answer(text: string): void {
    this.told.textContent = text;
    this.told.hidden = !text;
  }

  /** What came of a change of the run. */
  touched(text: string): void {
    this.touches.answer(text);
  }

  show(page: CockpitPage, frame: BatchFrame, selected: string): void {
    const [, kind, name = ""] = /^(host|query):(.*)$/.exec(selected) ?? [];
    const host = kind === "host" ? Number(name) : undefined;
    const { batch } = frame;
    const held = page.hosts.values.map((values) => values[0] ?? []);
    const detail = detailOf(frame.state_map, selected);
    const { title, words, pairs } = detail ?? wholeOf(held.at(-1)?.length ?? 0, host);
    const did = detail && host === undefined ? [] : didPairs(page, batch, host);
    this.shown.replaceChildren(make("h2", "", title), words ? make("p", "", words) : "");
    if (host !== undefined) {
      const now = held[page.hosts.batch.indexOf(batch)] ?? [];
      did.splice(1, 0, ["mean of all hosts", count(sum(now) / Math.max(1, now.length))]);
      const most = held.reduce((top, rows) => Math.max(top, ...rows), 1);
      this.shown.append(meter([(now[host] ?? 0) / most, "accent"]));
    }
    this.shown.append(listed("braid-pairs", [...did, ...pairs]));
    if (host !== undefined) this.offer("Blocks on this host", { host, batch });
    else if (kind && detail) this.offer("What serves it", { query: name, batch });
    this.touches.show(selected ? page.touches : [], selected, held.at(-1)?.[Number(name)] ?? 0);
    this.rest.replaceChildren(...conditionPart(page, frame), ...secondsPart(page, batch));
  }

  /** Offers to ask about a place. */
  private offer(text: string, place: Place): void {
    const { ask } = this;
    if (ask) pressed(this.shown, text, () => ask(place));
  }
}

/** What is said without a selection, or of a host about which the map says nothing. */
function wholeOf(hosts: number, host?: number): Detail {
  if (host !== undefined) return { title: `Host ${host}`, words: "", pairs: [] };
  const words = `${count(hosts)} in use; select something in the picture to read it`;
  return { title: "All hosts", words, pairs: [] };
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

/** The field in which one or two blocks are typed. */
function blocksForm(ask: (place: Place) => void): HTMLElement {
  const ids = named(make("input"), "a block, or two");
  ids.placeholder = "block 7, or 7 12";
  const form = make("form", "braid-whatif", ids, make("button", "", "Its history, or why two met"));
  return sent(form, () => ask({ blocks: blocksOf(ids.value) }));
}
