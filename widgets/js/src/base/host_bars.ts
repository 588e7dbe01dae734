// The bars of hosts: where they stand, and their names; of very many hosts, a few stand for all.
import { count, percent, shareOf } from "./format.ts";
import type { Box } from "./geometry.ts";
import type { Pen } from "./pen.ts";

/** The most hosts that are shown one by one. */
const MOST = 1024;
const SHARES = { fullest: 0, "90 %": 0.1, median: 0.5, least: 1 };

/** A host and its row of the picture. */
export interface Placed {
  host: number;
  row: number;
}

export type Bar = Box & { host: number };

interface Shown extends Placed {
  /** The quantile that it stands for; empty for itself. */
  quantile?: string;
}

/** The hosts that are shown: all, or those at quantiles of what they hold. */
export function shownHosts(hosts: Shown[], held: number[]): Shown[] {
  if (hosts.length <= MOST) return hosts;
  const sorted = hosts.toSorted((a, b) => (held[b.host] ?? 0) - (held[a.host] ?? 0));
  return Object.entries(SHARES).flatMap(([quantile, share]) => {
    const found = sorted[Math.round(share * (sorted.length - 1))];
    return found ? { ...found, row: 0, quantile } : [];
  });
}

/** The bars of hosts in a room, apart from row to row. */
export function placeBars(hosts: Placed[], room: number, tall: number): Bar[] {
  const last = Math.max(0, ...hosts.map(({ row }) => row));
  const gap = last < 32 ? 3 : 0;
  const wide = (room - gap * last) / Math.max(1, hosts.length);
  return hosts.map(({ host, row }, k) => ({ host, x: k * wide + row * gap, y: 4, wide, tall }));
}

/** Names the bars that stand for several hosts. */
export function nameQuantiles(pen: Pen, shown: Shown[], held: number[]): void {
  for (const [k, { host, quantile }] of shown.entries()) {
    const text = `${quantile}: ${count(held[host] ?? 0)} rows`;
    const [x, room] = [((k + 0.5) * pen.wide) / shown.length, pen.wide / shown.length];
    if (quantile) pen.text(text, x, 12, { bold: true, align: "center", ground: "bg", room });
  }
}

/** Names below the bars the part of a stream of each row: "part 1", "2", up to "16 of l". */
export function nameParts(pen: Pen, shown: Placed[], bars: Bar[], stream: string): void {
  const rows = shown.map(({ row }) => row);
  const last = Math.max(0, ...rows);
  const inner = Array.from({ length: Math.max(0, last - 1) }, (_, k) => k + 1);
  for (const row of last ? [0, last, ...inner] : []) {
    const [first, end] = [bars[rows.indexOf(row)], bars[rows.lastIndexOf(row)]];
    if (!first || !end) continue;
    const text = row === 0 ? "part 1" : row === last ? `${last + 1} of ${stream}` : `${row + 1}`;
    const half = pen.width(text, 10) / 2;
    const x = Math.min(pen.wide - half, Math.max(half, (first.x + end.x + end.wide) / 2));
    const style = { size: 10, colour: "muted", align: "center", isMinor: true } as const;
    pen.text(text, x, first.y + first.tall + 9, style);
  }
}

/** The load of a host had the old grid stayed: in a sentence, and in a shorter one. */
export function stayedTexts(old: string, load: number | null, held: number | null): string[] {
  if (load === null || held === null) return [];
  const more = shareOf(held - load, load);
  const text = `stayed ${old}: ${count(held)} rows, ${more < 0.01 ? "" : "+"}${percent(more)}`;
  return [`had the grid ${text}`, text];
}
