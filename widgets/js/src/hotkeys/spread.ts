// The map of frequent values: a row a value, a column a host; the darker a cell, the more of all rows
// its host takes for that value. Below, the work of each host.
import type { HotKeysFrame, HotValue } from "../../frames.ts";
import { CanvasMap, chosen, type Detail, numberIn, type Pair } from "../base/canvas_map.ts";
import { earlier, records, sum } from "../base/columns.ts";
import { count, shareOf } from "../base/format.ts";
import { mix } from "../base/geometry.ts";
import { SMALL } from "../base/pen.ts";

const share = (value: number): string => `${(100 * value).toFixed(1)} %`;

/** The share of all rows that a host stores for a value: its part of the rows that are stored once,
 * and all of those that are copied. */
export const partOf = ({ share: all, hosts, copied_share: copied }: HotValue): number =>
  (all - copied) / Math.max(1, hosts.length) + copied;

/** The text about a host or a value in the inspector. */
export function inspectSpread(frame: HotKeysFrame, selected: string): Detail | undefined {
  const values = records(frame.values);
  const host = numberIn("host", selected);
  if (frame.stored[host] !== undefined) {
    const own = values.filter(({ hosts }) => hosts.includes(host));
    const pairs = own.map((value): Pair => [`value ${value.value}`, `${share(partOf(value))}`]);
    const words = `takes part in ${own.length} of ${values.length} frequent values`;
    return { title: `Host ${host}`, words, pairs };
  }
  const value = chosen(frame.values, "value", "value", selected);
  if (!value) return undefined;
  const pairs: Pair[] = [
    ["of all rows", share(value.share)],
    ["hosts that share it", value.hosts.join(", ")],
    ["of all rows, on each of them", share(partOf(value))],
    ["rows on all of them", value.copied.length ? `of ${value.copied.join(", ")}` : "none"],
    ["shared out so since", `batch ${frame.since}`],
  ];
  const words = `the hash of a join value; number ${frame.values.value.indexOf(value.value) + 1} by frequency`;
  return { title: `Value ${value.value}`, words, pairs };
}

export class SpreadView extends CanvasMap<HotKeysFrame> {
  /** Where hosts begin, and how wide a host and how high a value is. */
  private room = { left: 0, column: 0, row: 0 };

  protected tell({ values, since, before, after }: HotKeysFrame): void {
    const hot = values.value.length;
    const known = `${hot} frequent ${hot === 1 ? "value is" : "values are"} shared out over hosts`;
    const title = hot ? known : "No value is frequent";
    this.head(since ? `since batch ${since}` : "", title, ". Every other value is on one host.");
    const signs = ["darker: more rows of the value on a host", "bars: pairs compared"];
    const copied = values.copied.some((names) => names.length);
    if (copied) signs.push("line: rows of a rare stream, on each of the hosts");
    this.signs([], signs);
    const load = `busiest host ${before} → ${after} times the mean work`;
    this.foot(...(hot ? [load, ", modelled at the last change"] : []));
  }

  protected paint(frame: HotKeysFrame): void {
    const { pen } = this;
    const hosts = Math.max(1, frame.stored.length);
    const rows = pen.tall * 0.6;
    const row = Math.min(40, Math.max(13, rows / (frame.values.value.length + 1)));
    const values = records(frame.values).slice(0, Math.max(1, Math.floor(rows / row) - 1));
    const left = Math.min(200, Math.max(132, pen.wide * 0.2));
    const column = (pen.wide - left) / hosts;
    this.room = { left, row, column };
    const then = earlier(this.before?.values, ({ value }) => value);
    const top = Math.max(...values.map(partOf), 1e-9);
    for (const [k, value] of values.entries()) {
      this.paintValue(value, then(value), top, 20 + k * row);
    }
    const low = 20 + (values.length + 0.5) * row;
    this.paintName("all others", frame.rest, low);
    const whole = { x: left + 1, y: low - row / 2 + 1, wide: pen.wide - left - 2, tall: row - 2 };
    pen.box(whole, { stroke: "rule", round: 2 });
    const middle = { ...SMALL, size: Math.min(11, row), align: "center" } as const;
    pen.text("each on one host", left + (pen.wide - left) / 2, low, middle);
    pen.text("each column is a host", left, 8, { ...SMALL, room: 3 * column });
    this.paintBars(frame, pen.tall - 20 - (values.length + 1) * row - 44);
  }

  private paintValue(value: HotValue, then: HotValue, top: number, y: number): void {
    const [pen, { left, row, column }] = [this.pen, this.room];
    const { copied, hosts, value: name, share: part } = value;
    const on = (each: HotValue, host: number) => (each.hosts.includes(host) ? partOf(each) : 0);
    for (const host of this.frame.stored.keys()) {
      const load = mix(on(then, host), on(value, host), this.share) / top;
      const box = { x: left + host * column + 1, y: y + 1, wide: column - 2, tall: row - 2 };
      pen.box(box, { fill: load ? pen.theme.load(0.12 + 0.88 * load) : "panel", round: 2 });
      if (!copied.length || !hosts.includes(host)) continue;
      pen.straight(box.x + 2, y + row - 4, box.x + box.wide - 2, y + row - 4, "ink", 2);
    }
    this.paintName(`value ${name}`, part, y + row / 2, `value:${name}`);
    const rare = copied.length ? `, those of ${copied.join(", ")} on each host` : "";
    const text = `Value ${name}: ${share(part)} of all rows${rare}`;
    const box = { x: 0, y, wide: left, tall: row };
    pen.targets.push({ box, name: `value:${name}`, text });
  }

  private paintName(text: string, part: number, y: number, name = ""): void {
    const [pen, { left, row }] = [this.pen, this.room];
    const size = Math.min(12, row - 1);
    pen.text(text, 0, y, { ...(name ? this.named(name) : {}), size });
    pen.text(share(part), left - 8, y, { ...SMALL, size: Math.min(11, size), align: "right" });
  }

  /** The work of each host, and in its column all that it does. */
  private paintBars({ scale_max, compared }: HotKeysFrame, tall: number): void {
    const { pen, before } = this;
    const { left, column } = this.room;
    const base = pen.tall - 18;
    const top = scale_max * 1.05 || 1;
    const every = Math.ceil((pen.width("000", 11) + 6) / column);
    const gap = Math.min(6, column / 5);
    compared.forEach((pairs, host) => {
      const [x, name] = [left + host * column, `host:${host}`];
      const room = { x: x + gap, y: base - tall, wide: column - 2 * gap, tall };
      const share = mix(before?.compared[host] ?? pairs, pairs, this.share) / top;
      const around = { x, y: 16, wide: column, tall: base - 14 };
      this.paintHostBar(host, room, share, around, ` held, ${count(pairs)} pairs compared`);
      const style = { ...this.named(name, "muted"), size: 11, align: "center" } as const;
      if (host % every === 0) pen.text(`${host}`, x + column / 2, base + 9, style);
    });
    const mean = shareOf(sum(compared), compared.length);
    const y = base - (mean / top) * tall;
    pen.straight(left, y, pen.wide, y, "ink", 1, [4, 4]);
    pen.text("pairs compared", 0, base - tall + 8, SMALL);
    pen.text(`mean ${count(mean)}`, 0, Math.max(base - tall + 24, y), SMALL);
    pen.text("host", 0, base + 9, SMALL);
  }
}
