// The map of a join of two streams: the join matrix to scale, zoomed to fill its box; below it what
// one host holds, and the rows on each host.
import type { GridFrame, HostCopies } from "../../frames.ts";
import { CanvasMap, type Detail, makePen, numberIn, type Targets } from "../base/canvas_map.ts";
import { records } from "../base/columns.ts";
import { add, wordy } from "../base/dom.ts";
import { count } from "../base/format.ts";
import { type Box, between, eased, grown, mix, type Pen, type Point, within } from "../base/pen.ts";
import { hue, type Theme } from "../base/theme.ts";

/** Room round the matrix for rulers. */
const [LEFT, TOP, REST] = [34, 30, 8];

/** The boxes of hosts in a matrix of unit sides: across is stream 0 unless it is turned. */
export function cellsOf(frame: GridFrame, turned: boolean): Map<number, Box> {
  const found = new Map<number, Box>();
  const put = (host: number, a: Point, b: Point) => {
    const [[x, x1], [y, y1]] = turned ? [b, a] : [a, b];
    found.set(host, { x, y, wide: x1 - x, tall: y1 - y });
  };
  const { n, m } = frame;
  for (const { host, row, column } of records(frame.places)) {
    put(host, [row / n, (row + 1) / n], [column / m, (column + 1) / m]);
  }
  if (found.size) return found;
  const largest = new Map<number, number>();
  for (const { host, top, bottom, left, right } of records(frame.cells)) {
    const area = (bottom - top) * (right - left);
    if (area <= (largest.get(host) ?? 0)) continue;
    largest.set(host, area);
    put(host, [top, bottom], [left, right]);
  }
  return found;
}

/** The largest rectangle |R| by |S| in a box, both sides at one scale; a side is never a hair. */
export function fitted(across: number, down: number, { x, y, wide, tall }: Box): Box {
  const least = 1 / 12;
  const [a, d] = [Math.max(across, down * least, 1e-9), Math.max(down, across * least, 1e-9)];
  const scale = Math.min(wide / a, tall / d);
  return { x: x + (wide - a * scale) / 2, y, wide: a * scale, tall: d * scale };
}

const middle = ({ x, y, wide, tall }: Box): Point => [x + wide / 2, y + tall / 2];

/** The place of a copy on its arc at a share of the way; partners' arcs bend opposite ways. */
export function arcAt([x0, y0]: Point, [x1, y1]: Point, way: number): Point {
  const long = Math.hypot(x1 - x0, y1 - y0) || 1;
  const bend = Math.min(60, long * 0.42) / long;
  const at = (a: number, b: number, aside: number) =>
    (1 - way) ** 2 * a + 2 * (1 - way) * way * ((a + b) / 2 + aside * bend) + way ** 2 * b;
  return [at(x0, x1, y0 - y1), at(y0, y1, x1 - x0)];
}

/** Turns all frames of a run the same way round. */
export function sameWay(frames: GridFrame[]): void {
  const longest = Math.max(...frames.flatMap(({ rows }) => rows));
  const across = frames.find(({ rows }) => rows.includes(longest))?.across ?? 0;
  for (const frame of frames) frame.across = across;
}

/** The place of a host in its grid, and the rows that come to it and go from it. */
export function inspectGrid(grid: GridFrame, selected: string): Detail | undefined {
  const { places, copies, streams, n, m } = grid;
  const host = numberIn("host", selected);
  const k = places.host.indexOf(host);
  if (k < 0) return undefined;
  const [row = 0, column = 0] = [places.row[k], places.column[k]];
  const moved = (side: number[]) =>
    count(side.reduce((sum, each, i) => sum + (each === host ? (copies.rows[i] ?? 0) : 0), 0));
  return {
    title: `Host ${host}`,
    words: `part ${row + 1} of ${n} of ${streams[0]}, part ${column + 1} of ${m} of ${streams[1]}`,
    pairs: [
      ["comes from other hosts", `${moved(copies.target)} rows`],
      ["goes to other hosts", `${moved(copies.source)} rows`],
    ],
  };
}

/** By how many percent something is more than something else: "+16 %". */
export function percentMore(more: number, than: number): string {
  const share = than ? Math.round(100 * (more / than - 1)) : 0;
  return `${share > 0 ? "+" : ""}${share} %`;
}

export class GridView extends CanvasMap<GridFrame> {
  private readonly old: HTMLElement;
  private readonly holds: HTMLElement;
  private readonly saved: HTMLElement;
  private readonly parts: HTMLElement;
  private readonly host: Pen;
  private readonly bars: Pen;
  /** Whether stream 0 goes down: the longest stream of the run lies along the longer side. */
  private turned = false;

  constructor(box: HTMLElement, theme: Theme) {
    super(box, theme);
    this.old = add(this.low, "span");
    this.parts = add(box, "div", "braid-foot");
    const one = add(this.parts, "section");
    wordy(add(one, "b"), "What one host holds", ": its two sides");
    this.host = makePen(one, theme);
    this.holds = add(one, "span");
    const all = add(this.parts, "section");
    wordy(add(all, "b"), "Rows on each host", ", one scale for the whole run");
    this.saved = add(all, "span", "braid-worse");
    this.bars = makePen(all, theme);
  }

  override get targets(): Targets[] {
    return [this.pen, this.bars].map(({ canvas: element, targets }) => ({ element, targets }));
  }

  protected tell(frame: GridFrame): void {
    const { n, m, load, load_before: baseline, streams, rows, title, copies } = frame;
    const [, ...parts] = /^(.*\. )(\d+ × \d+ hosts)(.*)$/.exec(title) ?? [];
    this.head("", ...(parts.length ? ["", ...parts] : [title]));
    const moved = copies.rows.reduce((sum, each) => sum + each, 0);
    const which = [...new Set(copies.stream)].map((k) => streams[k]).join(" and ");
    const wait = frame.waiting ? ` · ${count(frame.waiting)} rows wait` : "";
    const blocks = `${count(frame.moved_blocks)} block copies on their way: `;
    this.foot(...(moved ? ["", blocks, `${count(moved)} rows of ${which}${wait}`] : []));
    const old = frame.before.join(" × ");
    this.old.textContent = frame.is_moving && old ? `dotted: the old ${old}` : "";
    this.parts.classList.toggle("braid-alone", load === null);
    if (load === null) return;
    const [r = 0, s = 0] = rows;
    const sides = `${count(r / n)} of ${streams[0]} + ${count(s / m)} of ${streams[1]} = `;
    const before = baseline === null ? "" : ` · dotted, before: ${count(baseline)}`;
    wordy(this.holds, "", sides, `${count(load)} rows`, before);
    this.saved.replaceChildren();
    if (baseline === null) return;
    const [stayed, held] = [`stayed ${old}: `, `${count(baseline)} rows (`];
    wordy(this.saved, "", "had the grid ", stayed, held, percentMore(baseline, load), ")");
  }

  protected paint(frame: GridFrame): void {
    this.turned = (frame.across === 0) !== this.pen.wide > this.pen.tall;
    this.paintMatrix(frame);
    if (frame.load !== null && this.host.begin()) this.paintHost(frame);
    if (this.bars.begin()) this.paintBars(frame);
  }

  private area([r = 0, s = 0]: number[]): Box {
    const [wide, tall] = [this.pen.wide - LEFT - REST, this.pen.tall - TOP - REST];
    const room = { x: LEFT, y: TOP, wide, tall };
    return this.turned ? fitted(s, r, room) : fitted(r, s, room);
  }

  private paintMatrix(frame: GridFrame): void {
    const { pen, before = frame, turned, time } = this;
    const share = eased(time * 1.6);
    const area = between(this.area(before.rows), this.area(frame.rows), share);
    const then = cellsOf(before, turned);
    const placed = new Map<number, Box>();
    for (const [host, unit] of cellsOf(frame, turned)) {
      placed.set(host, within(between(then.get(host) ?? unit, unit, share), area));
    }
    const rows = (100 * (frame.rows[Number(turned)] ?? 0)) / area.wide;
    this.scale.textContent = area.wide ? `100 px = ${count(rows)} rows, both sides alike` : "";
    for (const [host, box] of placed) this.paintNumbered(frame, host, box);
    if (frame.is_moving && frame.before.length) this.paintOld(frame, area);
    this.paintRulers(frame, area);
    records(frame.copies).forEach((copy, k) => {
      this.paintCopy(copy, placed, eased(time * 1.5 - (k % 9) * 0.055));
    });
    const chosen = placed.get(numberIn("host", this.selected));
    if (chosen) pen.box(chosen, { stroke: "accent", width: 2.5, round: 3 });
  }

  private paintNumbered({ stored, scale_max, is_moving }: GridFrame, host: number, box: Box): void {
    const { pen } = this;
    const colour = this.paintCell(host, box, stored[host] ?? 0, scale_max);
    const least = is_moving ? 44 : 24; // else what flies hides it
    const fits = box.tall >= least && box.wide >= pen.width(`${host}`) + 12;
    if (stored.length > 256 || !fits) return;
    pen.text(`${host}`, box.x + 6, box.y + 11, { size: 11, bold: true, colour });
  }

  /** The lines of the mapping before. */
  private paintOld(frame: GridFrame, { x, y, wide, tall }: Box): void {
    const [n = 1, m = 1] = this.turned ? frame.before.toReversed() : frame.before;
    const rule = (...ends: [number, number, number, number]) =>
      this.pen.straight(...ends, "ink", 1, [2, 4], 0.7);
    for (let k = 0; k <= n; k++) rule(x + (k * wide) / n, y - 4, x + (k * wide) / n, y + tall + 4);
    for (let k = 0; k <= m; k++) rule(x - 4, y + (k * tall) / m, x + wide + 4, y + (k * tall) / m);
  }

  /** The sides with name and rows of each stream, in its color. */
  private paintRulers({ streams, rows }: GridFrame, { x, y, wide, tall }: Box): void {
    const { pen } = this;
    const [a, d] = this.turned ? [1, 0] : [0, 1];
    const label = (stream: number) => `${streams[stream]}  ${count(rows[stream] ?? 0)} rows`;
    pen.straight(x, y - 7, x + wide, y - 7, hue(a), 3);
    pen.text(label(a), x, y - 19, { colour: hue(a), bold: true });
    pen.straight(x - 8, y, x - 8, y + tall, hue(d), 3);
    const long = Math.min(pen.width(label(d), 12, true), pen.tall - 12);
    const low = Math.min(pen.tall - 4, Math.max(y + tall, y + long - 20));
    pen.text(label(d), x - 20, low, { colour: hue(d), bold: true, turn: -Math.PI / 2 });
  }

  private paintCopy(copy: HostCopies, placed: Map<number, Box>, way: number): void {
    const [from, to] = [placed.get(copy.source), placed.get(copy.target)];
    if (!from || !to || way <= 0) return;
    const { pen } = this;
    const [a, b, fill] = [middle(from), middle(to), hue(copy.stream)];
    const steps = Array.from({ length: 9 }, (_, k) => Math.max(0, way - 0.4 + 0.05 * k));
    const trail = [...steps, way].map((step) => arcAt(a, b, step));
    pen.line(trail, fill, 2.5, [], 0.8 - 0.45 * way);
    const [x, y] = arcAt(a, b, way);
    const half = Math.max(2.5, Math.min(6, Math.sqrt(copy.rows) / 5.2));
    const box = grown({ x, y, wide: 0, tall: 0 }, half);
    pen.box(box, { fill, stroke: "panel", width: 1.2, round: 2 });
  }

  /** A cell with its two sides, and the one before, at one scale. */
  private paintHost({ n, m, rows: [r = 0, s = 0], before, load_before }: GridFrame): void {
    const pen = this.host;
    const side = ([a = 1, d = 1]: number[]): Point =>
      this.turned ? [s / d, r / a] : [r / a, s / d];
    const [now, old] = [side([n, m]), side(load_before === null ? [n, m] : before)];
    const scale = Math.min(
      (pen.wide - 14) / Math.max(now[0], old[0], 1e-9),
      (pen.tall - 14) / Math.max(now[1], old[1], 1e-9),
    );
    const boxOf = ([a, d]: Point): Box => ({ x: 10, y: 9, wide: a * scale, tall: d * scale });
    const box = boxOf(now);
    pen.box(box, { fill: pen.theme.load(0.35), round: 2 });
    if (load_before !== null) pen.box(boxOf(old), { stroke: "ink", dash: [2, 4] });
    pen.straight(10, 4, 10 + box.wide, 4, hue(this.turned ? 1 : 0), 3);
    pen.straight(5, 9, 5, 9 + box.tall, hue(this.turned ? 0 : 1), 3);
  }

  /** A bar a host in grid order, grouped by the part of the first stream. */
  private paintBars({ stored, n, places, scale_max, load_before }: GridFrame): void {
    const pen = this.bars;
    const [top, base] = [scale_max * 1.04 || 1, pen.tall - 1];
    const placed = records(places).sort((a, b) => a.row - b.row || a.column - b.column);
    const hosts = placed.length ? placed : stored.map((_, host) => ({ host, row: 0 }));
    const gap = n && n <= 32 ? 3 : 0;
    const wide = (pen.wide - gap * Math.max(0, n - 1)) / Math.max(1, hosts.length);
    hosts.forEach(({ host, row }, k) => {
      const rows = stored[host] ?? 0;
      const tall = (mix(this.before?.stored[host] ?? rows, rows, this.share) / top) * (base - 4);
      const x = k * wide + row * gap;
      const box = { x: x + 0.5, y: base - tall, wide: Math.max(1, wide - 1), tall };
      pen.box(box, { fill: this.barColour(host), round: 1.5 });
      const whole = { x, y: 0, wide, tall: base };
      pen.target(whole, `host:${host}`, `Host ${host}: ${count(rows)} rows`);
    });
    pen.straight(0, base + 0.5, pen.wide, base + 0.5, "rule");
    if (load_before === null) return;
    const y = base - (load_before / top) * (base - 4);
    pen.straight(0, y, pen.wide, y, "bad", 1.5, [6, 4]);
  }
}
