// The map of frequent values: a row a value, a column a host; the darker a cell, the more of all rows
// its host takes for that value. Below, the work of each host.
import { CanvasMap, numberIn } from "../base/canvas_map.ts";
import { records } from "../base/columns.ts";
import { count } from "../base/format.ts";
import { eased, mix } from "../base/pen.ts";
import type { Detail, Pair } from "../cockpit/details.ts";
import type { HotKeysFrame, HotValue } from "../frames.ts";

const share = (value: number): string => `${(100 * value).toFixed(1)} %`;

/** The share of all rows that a host takes for a value. */
export const partOf = ({ share: all, hosts }: HotValue): number => all / Math.max(1, hosts.length);

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
      { text: "bars: pairs compared" },
    ]);
    const change = `${frame.before} times the mean work, now ${frame.after} (modelled)`;
    if (hot) this.foot("At the last change ", `the busiest host had ${change}`);
    else this.foot("");
  }

  protected paint(
    frame: HotKeysFrame,
    before: HotKeysFrame | undefined,
    time: number,
    selected: string,
  ): void {
    const { pen } = this;
    const hosts = Math.max(1, frame.stored.length);
    const bars = Math.min(130, pen.tall * 0.34);
    const rows = pen.tall - bars - 44;
    const row = Math.min(34, Math.max(13, rows / (frame.values.value.length + 1)));
    const values = records(frame.values).slice(0, Math.max(1, Math.floor(rows / row) - 1));
    const left = Math.min(200, Math.max(132, pen.wide * 0.2));
    const column = (pen.wide - left) / hosts;
    const older = new Map(before ? records(before.values).map((v) => [v.value, v]) : []);
    const top = Math.max(...values.map(partOf), frame.rest / hosts, 1e-9);
    const x = (host: number) => left + host * column;
    for (let host = 0; host < hosts; host++) {
      const whole = { x: x(host), y: 0, wide: column, tall: pen.tall };
      const work = `${count(frame.compared[host] ?? 0)} pairs compared`;
      const held = `${count(frame.stored[host] ?? 0)} rows held`;
      pen.target(whole, `host:${host}`, `Host ${host}: ${held}, ${work}`);
    }
    const paintRow = (value: HotValue, k: number, text: string) => {
      const then = older.get(value.value);
      for (let host = 0; host < hosts; host++) {
        const [a, b] = [then ?? value, value].map((v) => (v.hosts.includes(host) ? partOf(v) : 0));
        const load = mix(a ?? 0, b ?? 0, eased(time)) / top;
        const box = { x: x(host) + 1, y: 20 + k * row + 1, wide: column - 2, tall: row - 2 };
        pen.box(box, {
          fill: load ? pen.theme.load(0.12 + 0.88 * load) : pen.theme.shade("panel"),
          round: 2,
        });
      }
      const on = selected === `value:${value.value}` && value.value >= 0;
      const y = 20 + (k + 0.5) * row;
      const colour = pen.theme.shade(on ? "accent" : "ink");
      pen.text(text, 0, y, { size: Math.min(12, row), bold: on, colour });
      const small = {
        size: Math.min(11, row),
        align: "right",
        colour: pen.theme.shade("muted"),
      } as const;
      pen.text(share(value.share), left - 8, y, small);
      if (value.value < 0) return;
      const box = { x: 0, y: y - row / 2, wide: left, tall: row };
      pen.target(
        box,
        `value:${value.value}`,
        `Value ${value.value}: ${share(value.share)} of all rows`,
      );
    };
    values.forEach((value, k) => {
      paintRow(value, k, `value ${value.value}`);
    });
    const all = frame.stored.map((_, host) => host);
    paintRow({ value: -1, share: frame.rest, hosts: all }, values.length, "all others");
    this.paintBars(frame, before, eased(time), selected, { x, column, tall: bars });
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
