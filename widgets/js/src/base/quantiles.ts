// A few hosts that stand for many.
import { count } from "./format.ts";
import type { Pen } from "./pen.ts";

/** The most hosts that are shown one by one. */
const MOST = 1024;
const SHARES = { fullest: 0, "90 %": 0.1, median: 0.5, least: 1 };

interface Shown {
  host: number;
  row: number;
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

/** Names the bars that stand for several hosts. */
export function nameQuantiles(pen: Pen, shown: Shown[], held: number[]): void {
  for (const [k, { host, quantile }] of shown.entries()) {
    const text = `${quantile}: ${count(held[host] ?? 0)} rows`;
    const [x, room] = [((k + 0.5) * pen.wide) / shown.length, pen.wide / shown.length];
    if (quantile) pen.text(text, x, 12, { bold: true, align: "center", ground: "bg", room });
  }
}
