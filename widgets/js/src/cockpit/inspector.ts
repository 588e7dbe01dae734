// The selection, a host or all of them: its state, its work, that of the condition, and the seconds
// by phase. Where a kernel can be asked, also the blocks on a host, their history, and what
// serves a query.
import type { BatchFrame, CockpitPage } from "../../frames.ts";
import type { Detail, Pair } from "../base/canvas_map.ts";
import { sum } from "../base/columns.ts";
import { add, listed, make, meter, named, pressed, sent, spoken } from "../base/dom.ts";
import { count, shareOf } from "../base/format.ts";
import { conditionPart } from "./condition_flow.ts";
import { detailOf } from "./maps.ts";
import type { OfferIn } from "./touches.ts";

export type Place =
  | { host: number; batch: number }
  | { query: string; batch: number }
  | { blocks: number[] };

export type Inspect = (place: Place) => void;

/** The blocks that are typed, as "7", "7 12" or "blocks 7, 12". */
export const blocksOf = (text: string): number[] => (text.match(/\d+/g) ?? []).map(Number);

/** The work of a host, or of all of them, in a batch. */
export function didPairs({ hosts }: CockpitPage, batch: number, host?: number): Pair[] {
  const rows = hosts.values[hosts.batch.indexOf(batch)];
  return hosts.names.map((name, k) => {
    const value = host === undefined ? sum(rows?.[k] ?? []) : (rows?.[k]?.[host] ?? 0);
    return [name, name.startsWith("seconds") ? `${value.toFixed(3)} s` : count(value)];
  });
}

/** Fills the inspector, and returns what shows a selection, and the answer to the last question. */
export function makeInspector(box: HTMLElement, offerIn: OfferIn, inspect?: Inspect) {
  box.ariaLabel = "inspector";
  const shown = add(box, "div");
  const offerTouches = offerIn(box);
  const rest = add(box, "div");
  const reply = spoken(make("pre", "braid-inspect"));
  /** Asks about a place; the answer comes below what asked. */
  const ask = (place: Place, below: Element) => {
    below.after(reply);
    inspect?.(place);
  };
  if (inspect) {
    const form = add(box, "form", "braid-whatif");
    const ids = named(add(form, "input"), "a block, or two");
    ids.placeholder = "block 7, or 7 12";
    add(form, "button", "", "Its history, or why two met");
    sent(form, () => ask({ blocks: blocksOf(ids.value) }, form));
  }
  return {
    answer(text: string): void {
      reply.textContent = text;
      if (text) reply.scrollIntoView({ block: "nearest" });
      else reply.remove();
    },
    show(page: CockpitPage, frame: BatchFrame, selected: string): void {
      const [, kind, name = ""] = /^(host|query):(.*)$/.exec(selected) ?? [];
      const { batch } = frame;
      const held = page.hosts.values.map((values) => values[0] ?? []);
      const latest = held.at(-1) ?? [];
      const isHost = kind === "host" && held.some((rows) => rows[Number(name)] !== undefined);
      const host = isHost ? Number(name) : undefined;
      const detail = detailOf(frame.state_map, selected);
      const { title, words, pairs } = detail ?? wholeOf(page, latest.length, host);
      const did = detail && host === undefined ? [] : didPairs(page, batch, host);
      shown.replaceChildren(make("h2", "", title), words ? make("p", "", words) : "");
      if (host !== undefined) {
        const now = held[page.hosts.batch.indexOf(batch)] ?? [];
        did.splice(1, 0, [`mean of all ${page.host_word}s`, count(shareOf(sum(now), now.length))]);
        const most = held.reduce((top, rows) => Math.max(top, ...rows), 1);
        shown.append(meter(most, { accent: now[host] ?? 0 }));
      }
      shown.append(listed("braid-pairs", [...did, ...pairs]));
      const offer = (text: string, place: Place) =>
        inspect && pressed(shown, text, () => ask(place, shown));
      if (host !== undefined) offer(`Blocks on this ${page.host_word}`, { host, batch });
      else if (kind === "query" && detail) offer("What serves it", { query: name, batch });
      const isThere = detail !== undefined || host !== undefined;
      offerTouches(isThere ? page.touches : [], selected, latest[Number(name)] ?? 0);
      rest.replaceChildren(...conditionPart(page, frame), ...secondsPart(page, batch));
    },
  };
}

/** The text without a selection, or for a host that the map does not describe. */
function wholeOf({ touches, host_word: word }: CockpitPage, hosts: number, host?: number): Detail {
  const act = touches.some(({ target }) => target) ? "read or change it" : "read it";
  const words = `${count(hosts)} in use; select something in the picture to ${act}`;
  if (host === undefined) return { title: `All ${word}s`, words, pairs: [] };
  const title = `${word.slice(0, 1).toUpperCase()}${word.slice(1)} ${host}`;
  return { title, words: "", pairs: [] };
}

function secondsPart({ timeline }: CockpitPage, batch: number): Node[] {
  const phases = timeline.tracks.find(({ kind }) => kind === "bars")?.series ?? [];
  const spent = phases.map((each) => each.values[each.batch.indexOf(batch)] ?? 0);
  const total = sum(spent);
  if (!total) return [];
  const parts = phases.map(({ role }, k) => [`phase-${role}`, spent[k]]);
  const pairs = phases.map(({ name }, k): Pair => [name, `${spent[k]?.toFixed(3)} s`]);
  const head = make("h3", "", `Where the ${total.toFixed(2)} seconds went`);
  return [head, meter(total, Object.fromEntries(parts)), listed("braid-pairs", pairs)];
}
