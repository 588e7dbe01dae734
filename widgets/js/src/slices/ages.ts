// The map of shared slices: a row enters at the left and moves to the right as it grows older; below
// it the queries, each as far as it looks back.
import type { AgeQuery, AgesFrame, SlicePiece } from "../../frames.ts";
import { CanvasMap, type Detail, type Pair } from "../base/canvas_map.ts";
import { records } from "../base/columns.ts";
import { age, count } from "../base/format.ts";
import { type Box, mix, SMALL } from "../base/pen.ts";
import { hue } from "../base/theme.ts";

const TOP = 24;
const PALE = { fill: "faint", alpha: 0.4 } as const;
const WORDS =
  ": a row enters at the left and moves right as it grows older. A boundary is the end of a window.";

/** The place of an age, from 0 to 1: in proportion, or by its logarithm if windows differ much. */
export function agePlace(ends: number[]): { isLog: boolean; place: (age: number) => number } {
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const isLog = high / low > 8;
  const log = (at: number) => Math.log(1 + (3 * at) / low) / Math.log(1 + (3 * high) / low);
  return { isLog, place: isLog ? log : (at) => at / (high || 1) };
}

const nameOf = ({ stream, first, last }: SlicePiece): string => `slice:${stream}:${first}:${last}`;

/** The inspector's text for a query or a slice. */
export function inspectAges(frame: AgesFrame, selected: string): Detail | undefined {
  const pieces = records(frame.pieces);
  const query = records(frame.queries).find(({ name }) => selected === `query:${name}`);
  if (query) {
    const windows = frame.streams.map((stream, k): Pair => {
      const [own, window] = [pieces.filter((piece) => piece.stream === k), query.windows[k] ?? 0];
      const read = own.filter(({ first }) => first < window).length;
      return [`window of ${stream}`, `${age(window)}, ${read} of ${own.length} slices`];
    });
    const results: Pair[] = [
      ["results so far", count(query.results)],
      ["in this batch", count(query.batch_results)],
      ["selection", query.selection.replaceAll("`", "") || "every row"],
    ];
    return { title: `Query “${query.name}”`, words: "", pairs: [...results, ...windows] };
  }
  const piece = pieces.find((each) => nameOf(each) === selected);
  if (!piece) return undefined;
  const serves = records(frame.queries).filter((each) => isRead(each, piece));
  const pairs: Pair[] = [
    ["rows", count(piece.rows)],
    ["on host", String(piece.host)],
    ["queries that read it", serves.map(({ name }) => name).join(", ") || "none"],
  ];
  return { title: agesOf(piece, frame), words: "", pairs };
}

const agesOf = ({ first, last, stream }: SlicePiece, { streams }: AgesFrame): string =>
  `${age(first)} to ${age(last)} of ${streams[stream]}`;

const isRead = (query: AgeQuery | undefined, { stream, first }: SlicePiece): boolean =>
  first < (query?.windows[stream] ?? 0);

export class AgesView extends CanvasMap<AgesFrame> {
  private left = 0;
  /** The height of a stream's lane. */
  private tall = 0;
  private x = (age: number): number => age;

  protected tell(frame: AgesFrame): void {
    this.needs(TOP + 44 * frame.streams.length + 15 * (frame.queries.name.length + 1) + 8);
  }

  protected paint({ pieces, queries: asked, streams }: AgesFrame): void {
    const { pen } = this;
    const queries = records(asked);
    if (!pieces.last.length) return;
    const names = [...asked.name, ...streams.map((s) => `stream ${s}`)];
    const left = Math.max(64, ...names.map((name) => pen.width(name, 12, true) + 12));
    const { isLog, place } = agePlace(pieces.last);
    const wide = pen.wide - left - 24;
    const linear = `100 px = ${age((100 * Math.max(...pieces.last)) / wide)}`;
    this.head(isLog ? "age on a log scale" : linear, "State by age", WORDS);
    const row = Math.min(34, Math.max(15, (pen.tall * 0.42) / (queries.length + 1)));
    const low = pen.tall - row * queries.length - 4;
    const tall = Math.min(130, (low - TOP - 22) / streams.length - 14);
    Object.assign(this, { left, tall, x: (age: number) => left + wide * place(age) });
    this.paintMarks(pieces.last);
    this.paintStreams();
    if (this.time < 1) this.paintArrivals();
    const long = "queries: how far back each looks, and its results so far";
    const fits = pen.width(long, 11) < pen.wide - left;
    pen.text(fits ? long : "queries, results so far", left, low - 11, SMALL);
    queries.forEach((query, k) => {
      this.paintQuery(query, low + k * row, row);
    });
  }

  private top(stream: number): number {
    return TOP + stream * (this.tall + 14);
  }

  /** The ages at which windows end. */
  private paintMarks(ends: number[]): void {
    const { pen, x } = this;
    let last = -99;
    for (const end of [0, ...new Set(ends.toSorted((a, b) => a - b))]) {
      const low = this.top(this.frame.streams.length) - 8;
      pen.straight(x(end), TOP - 4, x(end), low, "faint", 1, [2, 4], 0.6);
      const text = end ? age(end) : "now";
      const half = pen.width(text, 11) / 2;
      const at = Math.min(x(end), pen.wide - half - 1);
      if (at - half < last + 8) continue;
      pen.text(text, at, 8, { ...SMALL, align: "center" });
      last = at + half;
    }
  }

  private paintStreams(): void {
    const { pen, frame, before, x, tall } = this;
    const query = records(frame.queries).find(({ name }) => this.selected === `query:${name}`);
    const older = new Map(before ? records(before.pieces).map((p) => [nameOf(p), p.rows]) : []);
    frame.streams.forEach((stream, k) => {
      const middle = this.top(k) + tall / 2;
      pen.text(`stream ${stream}`, 0, middle - 8, { bold: true, colour: hue(k) });
      pen.text(`${count(frame.rows[k] ?? 0)} rows`, 0, middle + 8, SMALL);
    });
    for (const piece of records(frame.pieces)) {
      const { first, last, stream, rows } = piece;
      const [name, y] = [nameOf(piece), this.top(stream)];
      const box = { x: x(first) + 1.5, y, wide: x(last) - x(first) - 3, tall };
      pen.box(box, { fill: "panel", stroke: "rule", round: 4 });
      const held = mix(older.get(name) ?? rows, rows, this.share);
      const fill = frame.scale_max ? (held / frame.scale_max) * tall : 0;
      const alpha = query && !isRead(query, piece) ? 0.25 : 0.85;
      pen.box({ ...box, y: y + tall - fill, tall: fill }, { fill: hue(stream), round: 3, alpha });
      if (name === this.selected) pen.box(box, { stroke: "accent", width: 2.5, round: 4 });
      this.paintNumbers(piece, box);
      pen.target(box, name, `${agesOf(piece, frame)}: ${count(rows)} rows on host ${piece.host}`);
    }
  }

  private paintNumbers(piece: SlicePiece, { x, y, wide, tall }: Box): void {
    const { pen } = this;
    const style = { align: "center", ground: "panel" } as const;
    const [rows, host] = [count(piece.rows), `host ${piece.host}`];
    if (pen.width(rows, 12, true) + 8 < wide) {
      pen.text(rows, x + wide / 2, y + tall / 2 - 2, { ...style, bold: true });
    }
    if (this.frame.hosts > 1 && tall > 44 && pen.width(host, 10) + 8 < wide) {
      pen.text(host, x + wide / 2, y + tall - 9, { ...style, size: 10 });
    }
  }

  /** Rows that come in. */
  private paintArrivals(): void {
    const { left, x, tall, frame } = this;
    const { pieces, received, streams } = frame;
    streams.forEach((_, k) => {
      const end = x(Math.min(...pieces.last.filter((__, p) => pieces.stream[p] === k)));
      for (let d = 0; received[k] && d < 6; d++) {
        const way = (this.time + d / 6) % 1;
        const y = this.top(k) + 6 + ((d * 29) % Math.max(8, tall - 18));
        const box = { x: left - 10 + (end - left + 6) * way, y, wide: 6, tall: 6 };
        const alpha = 1 - 0.6 * way;
        this.pen.box(box, { fill: hue(k), round: 2, alpha, stroke: "panel" });
      }
    });
  }

  private paintQuery({ name, windows, results }: AgeQuery, y: number, row: number): void {
    const { pen, left, x } = this;
    const on = this.selected === `query:${name}`;
    const [size, middle] = [row < 18 ? 11 : 12, y + row / 2];
    pen.text(name, 0, middle, { size, bold: on, colour: on ? "accent" : "ink" });
    const wide = x(Math.max(...windows)) - left;
    const look = on ? ({ fill: "accent", alpha: 0.9 } as const) : PALE;
    pen.box({ x: left, y: y + row * 0.2, wide, tall: row * 0.6 }, { ...look, round: 3 });
    pen.target({ x: 0, y, wide: pen.wide, tall: row }, `query:${name}`, `Query ${name}`);
    const needed = pen.width(count(results), size, true);
    const beside = left + wide + 6;
    const inside = beside + needed > pen.wide - 2;
    const at = inside ? left + wide - 6 - needed : beside;
    const ground = inside ? ({ ground: "panel" } as const) : {};
    pen.text(count(results), at, middle, { size, bold: true, ...ground });
  }
}
