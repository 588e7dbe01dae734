// The map of frequent values: a row a value, a column a host; the darker a cell, the more of all rows
// its host takes for that value. Below, the work of each host.
import type { HotKeysFrame, HotValue } from "../../frames.ts";
import { CanvasMap, type Detail, numberIn, type Pair } from "../base/canvas_map.ts";
import { records } from "../base/columns.ts";
import { count } from "../base/format.ts";
import { mix, SMALL } from "../base/pen.ts";

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
  const value = values.find((each) => each.value === numberIn("value", selected));
  if (!value) return undefined;
  const pairs: Pair[] = [
    ["of all rows", share(value.share)],
    ["hosts that share it", value.hosts.join(", ")],
    ["of all rows, on each of them", share(partOf(value))],
    ["rows on all of them", value.copied.length ? `of ${value.copied.join(", ")}` : "none"],
    ["shared out so since", `batch ${frame.since}`],
  ];
  const words = `the hash of a join value; number ${values.indexOf(value) + 1} by frequency`;
  return { title: `Value ${value.value}`, words, pairs };
}

export class SpreadView extends CanvasMap<HotKeysFrame> {
  /** Where hosts begin, and how wide a host and how high a value is. */
  private left = 0;
  private column = 0;
  private row = 0;

  protected tell({ values, since, before, after }: HotKeysFrame): void {
    const hot = values.value.length;
    const known = `${hot} frequent ${hot === 1 ? "value is" : "values are"} shared out over hosts`;
    const title = hot ? known : "No value is frequent";
    this.head(since ? `since batch ${since}` : "", title, ". Every other value is on one host.");
    const copied = values.copied.some((names) => names.length);
    this.signs([
      { text: "darker: more rows of the value on a host" },
      ...(copied ? [{ text: "line: rows of a rare stream, on each of the hosts" }] : []),
      { text: "bars: pairs compared" },
    ]);
    const load = `busiest host ${before} → ${after} times the mean work`;
    this.foot(...(hot ? [load, ", modelled at the last change"] : []));
  }

  protected paint(frame: HotKeysFrame): void {
    const { pen, before } = this;
    const hosts = Math.max(1, frame.stored.length);
    const rows = pen.tall * 0.6;
    const row = Math.min(40, Math.max(13, rows / (frame.values.value.length + 1)));
    const values = records(frame.values).slice(0, Math.max(1, Math.floor(rows / row) - 1));
    const left = Math.min(200, Math.max(132, pen.wide * 0.2));
    Object.assign(this, { left, row, column: (pen.wide - left) / hosts });
    for (let host = 0; host < hosts; host++) {
      const work = `${count(frame.compared[host] ?? 0)} pairs compared`;
      const held = `${count(frame.stored[host] ?? 0)} rows held`;
      const whole = { x: this.x(host), y: 0, wide: this.column, tall: pen.tall };
      pen.target(whole, `host:${host}`, `Host ${host}: ${held}, ${work}`);
    }
    const older = new Map(before ? records(before.values).map((v) => [v.value, v]) : []);
    const top = Math.max(...values.map(partOf), 1e-9);
    values.forEach((value, k) => {
      const then = older.get(value.value) ?? value;
      const loads = frame.stored.map((_, host) => {
        const part = (each: HotValue) => (each.hosts.includes(host) ? partOf(each) : 0);
        return mix(part(then), part(value), this.share) / top;
      });
      this.paintValue(value, loads, 20 + k * row);
    });
    const low = 20 + (values.length + 0.5) * row;
    this.paintName("all others", frame.rest, low, false);
    const whole = { x: left + 1, y: low - row / 2 + 1, wide: pen.wide - left - 2, tall: row - 2 };
    pen.box(whole, { stroke: "rule", round: 2 });
    const middle = { ...SMALL, size: Math.min(11, row), align: "center" } as const;
    pen.text("each on one host", left + (pen.wide - left) / 2, low, middle);
    this.paintBars(frame, pen.tall - 20 - (values.length + 1) * row - 44);
  }

  /** The left side of a host's column. */
  private x(host: number): number {
    return this.left + host * this.column;
  }

  private paintValue(value: HotValue, loads: number[], y: number): void {
    const { pen, row } = this;
    const { copied, hosts, value: name, share: part } = value;
    loads.forEach((load, host) => {
      const box = { x: this.x(host) + 1, y: y + 1, wide: this.column - 2, tall: row - 2 };
      pen.box(box, { fill: load ? pen.theme.load(0.12 + 0.88 * load) : "panel", round: 2 });
      if (!copied.length || !hosts.includes(host)) return;
      pen.straight(box.x + 2, y + row - 4, box.x + box.wide - 2, y + row - 4, "ink", 2);
    });
    this.paintName(`value ${name}`, part, y + row / 2, this.selected === `value:${name}`);
    const rare = copied.length ? `, those of ${copied.join(", ")} on each host` : "";
    const text = `Value ${name}: ${share(part)} of all rows${rare}`;
    pen.target({ x: 0, y, wide: this.left, tall: row }, `value:${name}`, text);
  }

  private paintName(text: string, part: number, y: number, on: boolean): void {
    const { pen, left, row } = this;
    const size = Math.min(12, row - 1);
    pen.text(text, 0, y, { size, bold: on, colour: on ? "accent" : "ink" });
    const style = { ...SMALL, size: Math.min(11, size), align: "right" } as const;
    pen.text(share(part), left - 8, y, style);
  }

  private paintBars({ scale_max, compared }: HotKeysFrame, tall: number): void {
    const { pen, column, before } = this;
    const base = pen.tall - 18;
    const scale = tall / (scale_max * 1.05 || 1);
    const every = Math.ceil((pen.width("000", 11) + 6) / column);
    const gap = Math.min(6, column / 5);
    compared.forEach((pairs, host) => {
      const bold = this.selected === `host:${host}`;
      const high = mix(before?.compared[host] ?? pairs, pairs, this.share) * scale;
      const [x, wide] = [this.x(host), column - 2 * gap];
      const bar = { x: x + gap, y: base - high, wide, tall: high };
      pen.box(bar, { fill: this.barColour(host), round: 2 });
      if (host % every) return;
      const colour = bold ? "accent" : "muted";
      pen.text(`${host}`, x + column / 2, base + 9, { size: 11, align: "center", colour, bold });
      const whole = { x, y: 18, wide: column, tall: base - 18 };
      if (bold) pen.box(whole, { stroke: "accent", width: 2, round: 3 });
    });
    const mean = compared.reduce((sum, pairs) => sum + pairs, 0) / (compared.length || 1);
    const y = base - mean * scale;
    pen.straight(this.left, y, pen.wide, y, "ink", 1, [4, 4]);
    pen.text("pairs compared", 0, base - tall + 8, SMALL);
    pen.text(`mean ${count(mean)}`, 0, Math.max(base - tall + 24, y), SMALL);
    pen.text("host", 0, base + 9, SMALL);
    const widest = pen.width("host 0", 11);
    if (column > widest) pen.text("each column is a host", this.left, 8, SMALL);
  }
}
