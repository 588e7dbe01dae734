// The map of a join of two streams: the join matrix to scale, zoomed to fill its box; below it what
// one host holds, and the rows on each host.
import type { GridFrame, HostCopies } from "../../frames.ts";
import { CanvasMap, type Detail, makePen, numberIn, type Targets } from "../base/canvas_map.ts";
import { records, sum } from "../base/columns.ts";
import { add, wordy } from "../base/dom.ts";
import { count, shareOf } from "../base/format.ts";
import type { Box, Point } from "../base/geometry.ts";
import { along, between, eased, middle, risen, squareAt, within } from "../base/geometry.ts";
import type { Pen } from "../base/pen.ts";
import { hue, type Shade, type Theme } from "../base/theme.ts";

/** Room round the matrix for rulers. */
const [LEFT, TOP, REST] = [34, 30, 8];

/** The boxes of hosts in a matrix of unit sides: across is stream 0 unless it is turned. */
export function cellsOf({ n, m, places, cells }: GridFrame, turned: boolean): Map<number, Box> {
  const parts = records(places).map(({ host, row, column }) => {
    const [top, bottom] = [row / n, (row + 1) / n];
    return { host, top, bottom, left: column / m, right: (column + 1) / m };
  });
  const boxes = (parts.length ? parts : records(cells)).map(({ host, ...cell }) => {
    const [x, y] = [cell.top, cell.left];
    const [wide, tall] = [cell.bottom - x, cell.right - y];
    const box = turned ? { x: y, y: x, wide: tall, tall: wide } : { x, y, wide, tall };
    return { host, box, size: wide * tall };
  });
  // of those of a host the largest stays
  if (!parts.length) boxes.sort((a, b) => a.host - b.host || a.size - b.size);
  return new Map(boxes.map(({ host, box }) => [host, box]));
}

/** The largest rectangle |R| by |S| in a box, both sides at one scale; a side is never a hair. */
export function fitted(across: number, down: number, { x, y, wide, tall }: Box): Box {
  const least = 1 / 12;
  const [a, d] = [Math.max(across, down * least, 1e-9), Math.max(down, across * least, 1e-9)];
  const scale = Math.min(wide / a, tall / d);
  return { x: x + (wide - a * scale) / 2, y, wide: a * scale, tall: d * scale };
}

/** The place of a copy on its arc at a share of the way; partners' arcs bend opposite ways. */
export function arcAt(a: Point, b: Point, way: number): Point {
  const [across, down] = [b[0] - a[0], b[1] - a[1]];
  const bend = Math.min(0.42, 60 / (Math.hypot(across, down) || 1));
  const [x, y] = along(a, b, 0.5);
  const peak: Point = [x - down * bend, y + across * bend];
  return along(along(a, peak, way), along(peak, b, way), way);
}

/** Turns all frames of a run the same way round. */
export function sameWay(frames: GridFrame[]): void {
  const longest = Math.max(...frames.flatMap(({ rows }) => rows));
  const across = frames.find(({ rows }) => rows.includes(longest))?.across ?? 0;
  for (const frame of frames) frame.across = across;
}

/** The place of a host in its grid, and the rows that go from it. */
export function inspectGrid(grid: GridFrame, selected: string): Detail | undefined {
  const { streams, n, m } = grid;
  const host = numberIn("host", selected);
  const place = records(grid.places).find((each) => each.host === host);
  if (!place) return undefined;
  const going = records(grid.copies).filter(({ source }) => source === host);
  const rows = `${count(sum(going.map((copy) => copy.rows)))} rows`;
  const part = `part ${place.row + 1} of ${n} of ${streams[0]}`;
  const words = `${part}, part ${place.column + 1} of ${m} of ${streams[1]}`;
  return { title: `Host ${host}`, words, pairs: [["goes to other hosts", rows]] };
}

/** By how many percent something is more than something else: "+16 %". */
export function percentMore(more: number, than: number): string {
  const share = than ? Math.round(100 * (more / than - 1)) : 0;
  return `${share > 0 ? "+" : ""}${share} %`;
}

export class GridView extends CanvasMap<GridFrame> {
  private readonly holds: HTMLElement;
  private readonly saved: HTMLElement;
  private readonly parts: HTMLElement;
  private readonly host: Pen;
  private readonly bars: Pen;
  /** Whether stream 0 goes down: the longest stream of the run lies along the longer side. */
  private turned = false;

  constructor(box: HTMLElement, theme: Theme) {
    super(box, theme);
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
    const parts = title.split(/(\d+ × \d+ hosts)/);
    // the scale is known when it is painted; until then the old one keeps its room
    this.head(this.scale.textContent ?? "", ...(parts[1] ? ["", ...parts] : parts));
    const which = [...new Set(copies.stream)].map((k) => streams[k]).join(" and ");
    const old = frame.before.join(" × ");
    const dotted = old ? ` · dotted: the old ${old}` : "";
    const blocks = `${count(frame.moved_blocks)} block copies on their way: `;
    const moved = `${count(sum(copies.rows))} rows of ${which}`;
    const waits = `${count(frame.waiting)} rows wait`;
    const going = which ? ["", blocks, moved, frame.waiting ? ` · ${waits}` : ""] : [waits, ""];
    this.foot(...(frame.is_moving ? [...going, dotted] : []));
    this.parts.classList.toggle("braid-alone", load === null);
    if (load === null) return;
    const [r = 0, s = 0] = rows;
    const sides = `${count(r / n)} of ${streams[0]} + ${count(s / m)} of ${streams[1]} = `;
    const before = baseline === null ? "" : ` · dotted, before: ${count(baseline)}`;
    wordy(this.holds, "", sides, `${count(load)} rows`, before);
    this.saved.replaceChildren();
    if (baseline === null) return;
    const [held, more] = [`${count(baseline)} rows, `, percentMore(baseline, load)];
    wordy(this.saved, "", "had the grid ", `stayed ${old}: `, held, more);
  }

  protected paint(frame: GridFrame): void {
    this.turned = (frame.across === 0) !== this.pen.wide > this.pen.tall;
    this.paintMatrix(frame);
    if (frame.load !== null && this.host.begin()) this.paintHost(frame);
    if (this.bars.begin()) this.paintBars(frame);
  }

  /** Two things, one for each stream, in the order across and down. */
  private ways<T>(things: T[]): T[] {
    return this.turned ? things.toReversed() : things;
  }

  private area({ rows }: GridFrame): Box {
    const [across = 0, down = 0] = this.ways(rows);
    const [wide, tall] = [this.pen.wide - LEFT - REST, this.pen.tall - TOP - REST];
    return fitted(across, down, { x: LEFT, y: TOP, wide, tall });
  }

  private paintMatrix(frame: GridFrame): void {
    const { pen, before = frame, turned, time } = this;
    const area = between(this.area(before), this.area(frame), eased(time * 1.6));
    const placed = new Map(this.placed((each) => cellsOf(each, turned), area));
    const rows = shareOf(100 * (this.ways(frame.rows)[0] ?? 0), area.wide);
    this.scale.textContent = `100 px = ${count(rows)} rows, both sides alike`;
    const least = frame.is_moving ? 44 : 24; // else what flies hides a number
    for (const [host, box] of placed) {
      const colour = this.paintCell(host, box);
      const style = { size: 11, bold: true, colour, room: box.wide - 12 };
      if (placed.size > 256 || box.tall < least) continue;
      pen.text(`${host}`, box.x + 6, box.y + 11, style);
    }
    if (frame.is_moving && frame.before.length) this.paintOld(frame, area);
    const names = frame.streams.map((name, k) => `${name}  ${count(frame.rows[k] ?? 0)} rows`);
    this.nameSides(area, this.ways(names), this.paintSides(pen, area));
    for (const [k, copy] of records(frame.copies).entries()) {
      this.paintCopy(copy, placed, eased(time * 1.5 - (k % 9) * 0.055));
    }
  }

  /** The lines of the mapping before. */
  private paintOld(frame: GridFrame, { x, y, wide, tall }: Box): void {
    const [n = 1, m = 1] = this.ways(frame.before);
    const rule = (...ends: [number, number, number, number]) =>
      this.pen.straight(...ends, "ink", 1, [2, 4], 0.7);
    for (let k = 0; k <= n; k++) rule(x + (k * wide) / n, y - 4, x + (k * wide) / n, y + tall + 4);
    for (let k = 0; k <= m; k++) rule(x - 4, y + (k * tall) / m, x + wide + 4, y + (k * tall) / m);
  }

  /** A line along the upper and the left side, in the colors of their streams. */
  private paintSides(pen: Pen, { x, y, wide, tall }: Box): Shade[] {
    const [above = "ink", beside = "ink"] = this.ways([hue(0), hue(1)]);
    pen.straight(x, y - 6, x + wide, y - 6, above, 3);
    pen.straight(x - 6, y, x - 6, y + tall, beside, 3);
    return [above, beside];
  }

  private paintCopy(copy: HostCopies, placed: Map<number, Box>, way: number): void {
    const [from, to] = [placed.get(copy.source), placed.get(copy.target)];
    if (!from || !to || way <= 0) return;
    const [a, b, fill] = [middle(from), middle(to), hue(copy.stream)];
    const trail = Array.from({ length: 9 }, (_, k) => Math.max(0, way - 0.4 + 0.05 * k));
    const points = trail.map((step) => arcAt(a, b, step));
    this.pen.line(points, fill, 2.5, [], 0.8 - 0.45 * way);
    const half = Math.max(2.5, Math.min(6, Math.sqrt(copy.rows) / 5.2));
    const box = squareAt(arcAt(a, b, way), half);
    this.pen.box(box, { fill, stroke: "panel", width: 1.2, round: 2 });
  }

  /** A cell with its two sides, and the one before, at one scale. */
  private paintHost({ n, m, rows, before, load_before }: GridFrame): void {
    const pen = this.host;
    const sides = (parts: number[]) => this.ways(rows.map((each, k) => each / (parts[k] ?? 1)));
    const now = sides([n, m]);
    const old = load_before === null ? now : sides(before);
    const [wide = 1, tall = 1] = now.map((side, k) => Math.max(side, old[k] ?? 0, 1e-9));
    const room = { x: 10, y: 9, wide: pen.wide - 14, tall: pen.tall - 14 };
    const area = { ...fitted(wide, tall, room), x: room.x };
    const boxOf = ([a = 0, d = 0]: number[]) =>
      within({ x: 0, y: 0, wide: a / wide, tall: d / tall }, area);
    pen.box(boxOf(now), { fill: pen.theme.load(0.35), round: 2 });
    if (load_before !== null) pen.box(boxOf(old), { stroke: "ink", dash: [2, 4] });
    this.paintSides(pen, boxOf(now));
  }

  /** A bar a host in grid order, grouped by the part of the first stream. */
  private paintBars({ stored, n, places, scale_max, load_before }: GridFrame): void {
    const pen = this.bars;
    const base = pen.tall - 1;
    const placed = records(places).sort((a, b) => a.row - b.row || a.column - b.column);
    const hosts = placed.length ? placed : stored.map((_, host) => ({ host, row: 0 }));
    const gap = n && n <= 32 ? 3 : 0;
    const wide = (pen.wide - gap * Math.max(0, n - 1)) / Math.max(1, hosts.length);
    hosts.forEach(({ host, row }, k) => {
      const box = { x: k * wide + row * gap, y: 4, wide, tall: base - 4 };
      const bar = risen(box, this.heldBy(host) / 1.04);
      const inner = { ...bar, x: box.x + 0.5, wide: Math.max(1, wide - 1) };
      pen.box(inner, { fill: this.barColour(host), round: 1.5 });
      pen.target(box, `host:${host}`, this.textOf(host));
    });
    pen.straight(0, base + 0.5, pen.wide, base + 0.5, "rule");
    if (load_before === null) return;
    const y = base - shareOf(load_before, 1.04 * scale_max) * (base - 4);
    pen.straight(0, y, pen.wide, y, "bad", 1.5, [6, 4]);
  }
}
