// The map of frequent values: a row a value, a column a host; the darker a cell, the more of all rows
// its host takes for that value. Below, the work of each host.
import type { HotKeysFrame, HotValue } from "../../frames.ts";
import { CanvasMap, numberIn, type Shown } from "../base/canvas_map.ts";
import { records } from "../base/columns.ts";
import { count } from "../base/format.ts";
import { type Box, eased, mix } from "../base/pen.ts";
import type { Detail, Pair } from "../cockpit/details.ts";

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
  protected tell(frame: HotKeysFrame): void {
    const hot = frame.values.value.length;
    const known = `${hot} frequent ${hot === 1 ? "value is" : "values are"} shared out over hosts`;
    this.head(
      frame.since ? `since batch ${frame.since}` : "",
      hot ? known : "No value is frequent",
      ". Every other value is on one host.",
    );
    this.signs([
      { text: "darker: more rows of the value on a host" },
      ...(frame.values.copied.some((names) => names.length)
        ? [{ text: "line: rows of a rare stream, on each of the hosts" }]
        : []),
      { text: "bars: pairs compared" },
    ]);
    const load = `busiest host ${frame.before} → ${frame.after} times the mean work`;
    if (hot) this.foot(load, ", modelled at the last change");
    else this.foot("");
  }

  protected paint({ frame, before, time, selected }: Shown<HotKeysFrame>): void {
    const { pen } = this;
    const hosts = Math.max(1, frame.stored.length);
    const rows = pen.tall * 0.6;
    const row = Math.min(40, Math.max(13, rows / (frame.values.value.length + 1)));
    const values = records(frame.values).slice(0, Math.max(1, Math.floor(rows / row) - 1));
    const bars = pen.tall - 20 - (values.length + 1) * row - 44;
    const left = Math.min(200, Math.max(132, pen.wide * 0.2));
    const column = (pen.wide - left) / hosts;
    const older = new Map(before ? records(before.values).map((v) => [v.value, v]) : []);
    const top = Math.max(...values.map(partOf), 1e-9);
    const x = (host: number) => left + host * column;
    for (let host = 0; host < hosts; host++) {
      const whole = { x: x(host), y: 0, wide: column, tall: pen.tall };
      const work = `${count(frame.compared[host] ?? 0)} pairs compared`;
      const held = `${count(frame.stored[host] ?? 0)} rows held`;
      pen.target(whole, `host:${host}`, `Host ${host}: ${held}, ${work}`);
    }
    values.forEach((value, k) => {
      const then = older.get(value.value) ?? value;
      const place = { x: x(0), y: 20 + k * row, wide: column, tall: row };
      const loads = frame.stored.map((_, host) => {
        const part = (each: HotValue) => (each.hosts.includes(host) ? partOf(each) : 0);
        return mix(part(then), part(value), eased(time)) / top;
      });
      this.paintValue(value, loads, place, selected === `value:${value.value}`);
    });
    const low = 20 + (values.length + 0.5) * row;
    this.paintName("all others", frame.rest, left, low, row, false);
    const whole = { x: left + 1, y: low - row / 2 + 1, wide: pen.wide - left - 2, tall: row - 2 };
    pen.box(whole, { stroke: pen.theme.shade("rule"), round: 2 });
    const muted = {
      size: Math.min(11, row),
      colour: pen.theme.shade("muted"),
      align: "center",
    } as const;
    pen.text("each on one host", left + (pen.wide - left) / 2, low, muted);
    this.paintBars(frame, before, eased(time), selected, { x, column, tall: bars });
  }

  private paintValue(value: HotValue, loads: number[], place: Box, on: boolean): void {
    const { pen } = this;
    const { x, y, wide, tall } = place;
    loads.forEach((load, host) => {
      const box = { x: x + host * wide + 1, y: y + 1, wide: wide - 2, tall: tall - 2 };
      const fill = load ? pen.theme.load(0.12 + 0.88 * load) : pen.theme.shade("panel");
      pen.box(box, { fill, round: 2 });
      if (value.copied.length && value.hosts.includes(host)) {
        const line = y + tall - 4;
        pen.straight(box.x + 2, line, box.x + box.wide - 2, line, pen.theme.shade("ink"), 2);
      }
    });
    this.paintName(`value ${value.value}`, value.share, x, y + tall / 2, tall, on);
    const copied = value.copied.length ? `, those of ${value.copied.join(", ")} on each host` : "";
    const text = `Value ${value.value}: ${share(value.share)} of all rows${copied}`;
    pen.target({ x: 0, y, wide: x, tall }, `value:${value.value}`, text);
  }

  private paintName(
    text: string,
    part: number,
    left: number,
    y: number,
    row: number,
    on: boolean,
  ): void {
    const { pen } = this;
    const size = Math.min(12, row - 1);
    pen.text(text, 0, y, { size, bold: on, colour: pen.theme.shade(on ? "accent" : "ink") });
    const muted = pen.theme.shade("muted");
    pen.text(share(part), left - 8, y, { size: Math.min(11, size), align: "right", colour: muted });
  }

  private paintBars(
    frame: HotKeysFrame,
    before: HotKeysFrame | undefined,
    time: number,
    selected: string,
    { x, column, tall }: { x: (host: number) => number; column: number; tall: number },
  ): void {
    const { pen } = this;
    const base = pen.tall - 18;
    const top = frame.scale_max * 1.05 || 1;
    const muted = pen.theme.shade("muted");
    const every = Math.ceil((pen.width("000", 11) + 6) / column);
    frame.compared.forEach((pairs, host) => {
      const on = selected === `host:${host}`;
      const high = (mix(before?.compared[host] ?? pairs, pairs, time) / top) * tall;
      const fill = on ? pen.theme.shade("accent") : pen.theme.load(0.62);
      const gap = Math.min(6, column / 5);
      pen.box(
        { x: x(host) + gap, y: base - high, wide: column - 2 * gap, tall: high },
        { fill, round: 2 },
      );
      const colour = on ? pen.theme.shade("accent") : muted;
      if (host % every) return;
      pen.text(`${host}`, x(host) + column / 2, base + 9, {
        size: 11,
        align: "center",
        colour,
        bold: on,
      });
      if (on)
        pen.box(
          { x: x(host), y: 18, wide: column, tall: base - 18 },
          { stroke: colour, width: 2, round: 3 },
        );
    });
    const mean =
      frame.compared.reduce((sum, pairs) => sum + pairs, 0) / (frame.compared.length || 1);
    const y = base - (mean / top) * tall;
    pen.straight(x(0), y, pen.wide, y, pen.theme.shade("ink"), 1, [4, 4]);
    const name = { size: 11, colour: muted };
    pen.text("pairs compared", 0, base - tall + 8, name);
    pen.text(`mean ${count(mean)}`, 0, Math.max(base - tall + 24, y), name);
    pen.text("host", 0, base + 9, name);
    const widest = pen.width("host 0", 11);
    if (column > widest) pen.text("each column is a host", x(0), 8, name);
  }
}
