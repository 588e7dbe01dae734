// The map of a join of two streams: the join matrix to scale, zoomed to fill its box; below it what
// one host holds, and the rows on each host.
import type { GridFrame, HostCopies } from "../../frames.ts";
import { numberIn } from "../base/canvas_map.ts";
import { records } from "../base/columns.ts";
import { add, wordy } from "../base/dom.ts";
import { count } from "../base/format.ts";
import {
  type Box,
  between,
  eased,
  mix,
  Pen,
  type Point,
  type Target,
  within,
} from "../base/pen.ts";
import type { Theme } from "../base/theme.ts";
import type { Detail } from "../cockpit/details.ts";

/** Letters of a host's number are this large at most. */
const NUMBER = 11;
/** Room round the matrix for rulers. */
const EDGE = { left: 34, top: 30, right: 8, bottom: 8 };

/** The boxes of hosts in a matrix of unit sides: across is stream 0 unless it is turned. */
export function cellsOf(frame: GridFrame, turned: boolean): Map<number, Box> {
  const found = new Map<number, Box>();
  const put = (host: number, a: [number, number], b: [number, number]) => {
    const [[x, x1], [y, y1]] = turned ? [b, a] : [a, b];
    found.set(host, { x, y, wide: x1 - x, tall: y1 - y });
  };
  for (const { host, row, column } of records(frame.places)) {
    const [n, m] = [frame.n, frame.m];
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
  const bend = Math.min(60, long * 0.42);
  const [cx, cy] = [
    (x0 + x1) / 2 - ((y1 - y0) / long) * bend,
    (y0 + y1) / 2 + ((x1 - x0) / long) * bend,
  ];
  const back = 1 - way;
  return [
    back * back * x0 + 2 * back * way * cx + way * way * x1,
    back * back * y0 + 2 * back * way * cy + way * way * y1,
  ];
}

/** Turns all frames of a run the same way round. */
export function sameWay(frames: GridFrame[]): void {
  const longest = frames.reduce((a, b) => (Math.max(...b.rows) > Math.max(...a.rows) ? b : a), {
    rows: [0],
    across: 0,
  } as GridFrame);
  for (const frame of frames) frame.across = longest.across;
}

/** The place of a host in its grid, and the rows that come to it and go from it. */
export function inspectGrid(grid: GridFrame, selected: string): Detail | undefined {
  const host = numberIn("host", selected);
  const k = grid.places.host.indexOf(host);
  if (k < 0) return undefined;
  const [row = 0, column = 0] = [grid.places.row[k], grid.places.column[k]];
  const [r, s] = grid.streams;
  const moved = (side: number[]) =>
    side.reduce((sum, each, i) => sum + (each === host ? (grid.copies.rows[i] ?? 0) : 0), 0);
  return {
    title: `Host ${host}`,
    words: `part ${row + 1} of ${grid.n} of ${r}, part ${column + 1} of ${grid.m} of ${s}`,
    pairs: [
      ["comes from other hosts", `${count(moved(grid.copies.target))} rows`],
      ["goes to other hosts", `${count(moved(grid.copies.source))} rows`],
    ],
  };
}

/** By how many percent something is more than something else: "+16 %". */
export function percentMore(more: number, than: number): string {
  const share = than ? Math.round(100 * (more / than - 1)) : 0;
  return `${share > 0 ? "+" : ""}${share} %`;
}

export class GridView {
  private readonly scale: HTMLElement;
  private readonly title: HTMLElement;
  private readonly note: HTMLElement;
  private readonly old: HTMLElement;
  private readonly holds: HTMLElement;
  private readonly saved: HTMLElement;
  private readonly foot: HTMLElement;
  private readonly matrix: Pen;
  private readonly host: Pen;
  private readonly bars: Pen;
  private frame: GridFrame | undefined;

  constructor(box: HTMLElement, theme: Theme) {
    const head = add(box, "div", "braid-caption");
    this.title = add(head, "b");
    this.scale = add(head, "span");
    this.matrix = canvas(box, theme);
    const legend = add(box, "div", "braid-caption");
    this.note = add(legend, "b");
    this.old = add(legend, "span");
    this.foot = add(box, "div", "braid-foot");
    const one = add(this.foot, "section");
    wordy(add(one, "b"), "What one host holds", ": its two sides");
    this.host = canvas(one, theme);
    this.holds = add(one, "span");
    const all = add(this.foot, "section");
    wordy(add(all, "b"), "Rows on each host", ", one scale for the whole run");
    this.saved = add(all, "span", "braid-worse");
    this.bars = canvas(all, theme);
  }

  get targets(): { element: Element; targets: Target[] }[] {
    return [this.matrix, this.bars].map(({ canvas: element, targets }) => ({ element, targets }));
  }

  draw(frame: GridFrame, before: GridFrame | undefined, time: number, selected: string): void {
    if (frame !== this.frame) this.tell(frame);
    this.frame = frame;
    if (this.matrix.begin()) this.paintMatrix(frame, before, time, selected);
    if (frame.load !== null && this.host.begin()) this.paintHost(frame);
    if (this.bars.begin()) this.paintBars(frame, before, eased(time), selected);
  }

  close(): void {}

  /** Writes the texts around the canvases. */
  private tell(frame: GridFrame): void {
    const { n, m, load, load_before: baseline, streams, rows } = frame;
    const [, long = frame.title, brief = "", rest = ""] =
      /^(.*\. )(\d+ × \d+ hosts)(.*)$/.exec(frame.title) ?? [];
    wordy(this.title, "", long, brief, rest);
    if (!brief) this.title.textContent = long;
    const moved = frame.copies.rows.reduce((sum, each) => sum + each, 0);
    const which = [...new Set(frame.copies.stream)].map((k) => streams[k]).join(" and ");
    const wait = frame.waiting ? ` · ${count(frame.waiting)} rows wait` : "";
    const blocks = `${count(frame.moved_blocks)} block copies on their way: `;
    if (moved) wordy(this.note, "", blocks, `${count(moved)} rows of ${which}${wait}`);
    else this.note.replaceChildren();
    const old = frame.before.join(" × ");
    this.old.textContent = frame.is_moving && old ? `dotted: the old ${old}` : "";
    this.foot.classList.toggle("braid-alone", load === null);
    if (load === null) return;
    const [r = 0, s = 0] = rows;
    const sides = `${count(r / n)} of ${streams[0]} + ${count(s / m)} of ${streams[1]} = `;
    const before = baseline === null ? "" : ` · dotted, before: ${count(baseline)}`;
    wordy(this.holds, "", sides, `${count(load)} rows`, before);
    if (baseline === null) this.saved.replaceChildren();
    else {
      const share = percentMore(baseline, load);
      wordy(
        this.saved,
        "",
        "had the grid ",
        `stayed ${old}: `,
        `${count(baseline)} rows (`,
        share,
        ")",
      );
    }
  }

  private area(turned: boolean, [r = 0, s = 0]: number[]): Box {
    const { wide, tall } = this.matrix;
    const room = {
      x: EDGE.left,
      y: EDGE.top,
      wide: wide - EDGE.left - EDGE.right,
      tall: tall - EDGE.top - EDGE.bottom,
    };
    return turned ? fitted(s, r, room) : fitted(r, s, room);
  }

  /** Whether stream 0 goes down: the stream that is longest in the run lies along the longer side. */
  private isTurned({ across }: GridFrame): boolean {
    return (across === 0) !== this.matrix.wide > this.matrix.tall;
  }

  private paintMatrix(
    frame: GridFrame,
    before: GridFrame | undefined,
    time: number,
    selected: string,
  ): void {
    const pen = this.matrix;
    const turned = this.isTurned(frame);
    const share = eased(time * 1.6);
    const last = this.area(turned, before?.rows ?? frame.rows);
    const area = between(last, this.area(turned, frame.rows), share);
    const [now, then] = [cellsOf(frame, turned), cellsOf(before ?? frame, turned)];
    const placed = new Map(
      [...now].map(([host, unit]) => {
        return [host, within(between(then.get(host) ?? unit, unit, share), area)] as const;
      }),
    );
    const perPixel = (turned ? frame.rows[1] : frame.rows[0]) ?? 0;
    this.scale.textContent = area.wide
      ? `100 px = ${count((100 * perPixel) / area.wide)} rows, both sides alike`
      : "";
    for (const [host, box] of placed) this.paintCell(frame, host, box);
    if (frame.is_moving && frame.before.length) this.paintOld(frame, area, turned);
    this.paintRulers(frame, area, turned);
    records(frame.copies).forEach((copy, k) => {
      this.paintCopy(copy, placed, eased(time * 1.5 - (k % 9) * 0.055));
    });
    const chosen = placed.get(Number(selected.replace("host:", "")));
    if (selected && chosen) {
      pen.box(chosen, { stroke: pen.theme.shade("accent"), width: 2.5, round: 3 });
    }
  }

  private paintCell(frame: GridFrame, host: number, box: Box): void {
    const pen = this.matrix;
    const rows = frame.stored[host] ?? 0;
    const share = frame.scale_max ? rows / frame.scale_max : 0;
    pen.box(box, { fill: pen.theme.load(share), stroke: pen.theme.shade("bg"), width: 1.5 });
    pen.target(box, `host:${host}`, `Host ${host}: ${count(rows)} rows`);
    const least = frame.is_moving ? 44 : 24; // else what flies hides it
    if (frame.stored.length > 256 || box.tall < least || box.wide < pen.width(`${host}`) + 12)
      return;
    const colour = pen.theme.shade(share > 0.5 ? "bg" : "ink");
    pen.text(`${host}`, box.x + 6, box.y + 11, { size: NUMBER, bold: true, colour });
  }

  /** The lines of the mapping before. */
  private paintOld(frame: GridFrame, { x, y, wide, tall }: Box, turned: boolean): void {
    const [n = 1, m = 1] = turned ? frame.before.toReversed() : frame.before;
    const ink = this.matrix.theme.shade("ink");
    for (let k = 0; k <= n; k++) {
      const at = x + (k * wide) / n;
      this.matrix.straight(at, y - 4, at, y + tall + 4, ink, 1, [2, 4], 0.7);
    }
    for (let k = 0; k <= m; k++) {
      const at = y + (k * tall) / m;
      this.matrix.straight(x - 4, at, x + wide + 4, at, ink, 1, [2, 4], 0.7);
    }
  }

  /** The sides with name and rows of each stream, in its color. */
  private paintRulers(frame: GridFrame, { x, y, wide, tall }: Box, turned: boolean): void {
    const pen = this.matrix;
    const [a, d] = turned ? [1, 0] : [0, 1];
    const label = (stream: number) => {
      return `${frame.streams[stream]}  ${count(frame.rows[stream] ?? 0)} rows`;
    };
    const across = { colour: pen.theme.stream(a), bold: true };
    pen.straight(x, y - 7, x + wide, y - 7, across.colour, 3);
    pen.text(label(a), x, y - 19, across);
    const down = { colour: pen.theme.stream(d), bold: true, turn: -Math.PI / 2 };
    pen.straight(x - 8, y, x - 8, y + tall, down.colour, 3);
    const long = Math.min(pen.width(label(d), 12, true), pen.tall - 12);
    const low = Math.min(pen.tall - 4, Math.max(y + tall, y + long - 20));
    pen.text(label(d), x - 20, low, { ...down, align: "left" });
  }

  private paintCopy(copy: HostCopies, placed: Map<number, Box>, way: number): void {
    const [from, to] = [placed.get(copy.source), placed.get(copy.target)];
    if (!from || !to || way <= 0) return;
    const pen = this.matrix;
    const colour = pen.theme.stream(copy.stream);
    const [a, b] = [middle(from), middle(to)];
    const steps = Array.from({ length: 9 }, (_, k) => Math.max(0, way - 0.4 + 0.05 * k));
    const trail = [...steps, way].map((step) => arcAt(a, b, step));
    pen.line(trail, colour, 2.5, [], 0.8 - 0.45 * way);
    const [x, y] = arcAt(a, b, way);
    const half = Math.max(2.5, Math.min(6, Math.sqrt(copy.rows) / 5.2));
    const box = { x: x - half, y: y - half, wide: 2 * half, tall: 2 * half };
    pen.box(box, { fill: colour, stroke: pen.theme.shade("panel"), width: 1.2, round: 2 });
  }

  /** A cell with its two sides, and the one before, at one scale. */
  private paintHost(frame: GridFrame): void {
    const { n, m, rows, before, load_before: baseline } = frame;
    const pen = this.host;
    const turned = this.isTurned(frame);
    const side = (parts: number[]): Point => {
      const [a, d] = [(rows[0] ?? 0) / (parts[0] ?? 1), (rows[1] ?? 0) / (parts[1] ?? 1)];
      return turned ? [d, a] : [a, d];
    };
    const [now, old] = [side([n, m]), baseline === null ? side([n, m]) : side(before)];
    const scale = Math.min(
      (pen.wide - 14) / Math.max(now[0], old[0], 1e-9),
      (pen.tall - 14) / Math.max(now[1], old[1], 1e-9),
    );
    const [x, y] = [10, 9];
    const boxOf = ([a, d]: Point): Box => ({ x, y, wide: a * scale, tall: d * scale });
    const box = boxOf(now);
    pen.box(box, { fill: pen.theme.load(0.35), round: 2 });
    if (baseline !== null) pen.box(boxOf(old), { stroke: pen.theme.shade("ink"), dash: [2, 4] });
    const [a, d] = turned ? [1, 0] : [0, 1];
    pen.straight(x, y - 5, x + box.wide, y - 5, pen.theme.stream(a), 3);
    pen.straight(x - 5, y, x - 5, y + box.tall, pen.theme.stream(d), 3);
  }

  /** A bar a host in grid order, grouped by the part of the first stream. */
  private paintBars(
    frame: GridFrame,
    before: GridFrame | undefined,
    share: number,
    selected: string,
  ): void {
    const pen = this.bars;
    const top = frame.scale_max * 1.04 || 1;
    const places = records(frame.places).sort((a, b) => a.row - b.row || a.column - b.column);
    const hosts = places.length
      ? places
      : frame.stored.map((_, host) => ({ host, row: 0, column: host }));
    const gap = frame.n && frame.n <= 32 ? 3 : 0;
    const wide = (pen.wide - gap * Math.max(0, frame.n - 1)) / Math.max(1, hosts.length);
    const base = pen.tall - 1;
    hosts.forEach(({ host, row }, k) => {
      const rows = frame.stored[host] ?? 0;
      const tall = (mix(before?.stored[host] ?? rows, rows, share) / top) * (base - 4);
      const x = k * wide + row * gap;
      const fill = selected === `host:${host}` ? pen.theme.shade("accent") : pen.theme.load(0.62);
      const box = { x: x + 0.5, y: base - tall, wide: Math.max(1, wide - 1), tall };
      pen.box(box, { fill, round: 1.5 });
      const whole = { x, y: 0, wide, tall: base };
      pen.target(whole, `host:${host}`, `Host ${host}: ${count(rows)} rows`);
    });
    pen.straight(0, base + 0.5, pen.wide, base + 0.5, pen.theme.shade("rule"));
    if (frame.load_before === null) return;
    const y = base - (frame.load_before / top) * (base - 4);
    pen.straight(0, y, pen.wide, y, pen.theme.shade("bad"), 1.5, [6, 4]);
  }
}

/** A canvas as large as its box. */
function canvas(box: HTMLElement, theme: Theme): Pen {
  return new Pen(add(add(box, "div", "braid-canvas"), "canvas"), theme);
}
