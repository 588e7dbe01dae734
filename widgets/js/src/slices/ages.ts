// The map of shared slices: a row enters at the left and moves to the right as it grows older; below
// it the queries, each as far as it looks back.
import type { AgeQuery, AgesFrame, SlicePiece } from "../../frames.ts";
import { CanvasMap, type Detail, type Pair } from "../base/canvas_map.ts";
import { earlier, records } from "../base/columns.ts";
import { age, count, shareOf } from "../base/format.ts";
import { middle, mix, type Point, risen } from "../base/geometry.ts";
import { SMALL } from "../base/pen.ts";
import { hue } from "../base/theme.ts";

/** The room above the lanes, and the least height of a query's bar. */
const [TOP, ROW] = [24, 10.5];
const HOST = { size: 10, ground: "bg", align: "center" } as const;

/** The room below a stream's lane; several hosts are named there. */
const gapOf = ({ hosts }: AgesFrame): number => (hosts > 1 ? 22 : 14);

/** The least height in which every stream and every query can be seen, in pixels. */
export const leastHeight = (frame: AgesFrame): number =>
  TOP + (22 + gapOf(frame)) * frame.streams.length + ROW * (frame.queries.name.length + 1) + 18;

/** A title that says whether the ages are shared out over hosts, in parts. */
export function titleOf({ hosts }: AgesFrame): string[] {
  const words = "a row enters at the left and moves right as it grows older";
  return hosts > 1
    ? [`State by age, on a ring of ${hosts} hosts`, `: ${words}, from host to host.`]
    : ["State by age", `: ${words}. A boundary is the end of a window.`];
}

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
      const own = pieces.filter((piece) => piece.stream === k);
      const read = `${own.filter((piece) => isRead(query, piece)).length} of ${own.length} slices`;
      return [`window of ${stream}`, `${age(query.windows[k] ?? 0)}, ${read}`];
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

/** The ages of a stream that a host holds, in one piece. */
export const stretchesOf = (pieces: SlicePiece[]): SlicePiece[] =>
  [...Map.groupBy(pieces, ({ stream, host }) => `${stream} ${host}`).values()].flatMap((own) => {
    const { last } = own.at(-1) ?? { last: 0 };
    return own[0] ? { ...own[0], last } : [];
  });

const isRead = ({ windows }: AgeQuery, { stream, first }: SlicePiece): boolean =>
  first < (windows[stream] ?? 0);

export class AgesView extends CanvasMap<AgesFrame> {
  /** The height of a stream's lane, and the place of an age. */
  private room = { left: 0, tall: 0, x: (age: number): number => age };

  protected tell(frame: AgesFrame): void {
    this.needs(leastHeight(frame));
  }

  protected paint(frame: AgesFrame): void {
    const [pen, { pieces, queries: asked, streams }] = [this.pen, frame];
    if (!pieces.last.length) return;
    const names = [...asked.name, ...streams.map((s) => `stream ${s}`)];
    const left = Math.max(64, ...names.map((name) => pen.width(name, 12, true) + 12));
    const { isLog, place } = agePlace(pieces.last);
    const wide = pen.wide - left - 24;
    const linear = `100 px = ${age((100 * Math.max(...pieces.last)) / wide)}`;
    this.head(isLog ? "age on a log scale" : linear, ...titleOf(frame));
    const queries = records(asked);
    const row = Math.min(34, Math.max(ROW, (pen.tall * 0.42) / (queries.length + 1)));
    const low = pen.tall - row * queries.length - 4;
    const tall = Math.min(130, (low - TOP - 18) / streams.length - gapOf(frame));
    this.room = { left, tall, x: (age: number) => left + wide * place(age) };
    this.paintMarks(pieces.last);
    this.paintStreams(frame);
    pen.text("queries: how far back each looks", left, low - 11, SMALL);
    pen.text("results so far", pen.wide - 2, low - 11, { ...SMALL, align: "right", isMinor: true });
    for (const [k, query] of queries.entries()) this.paintQuery(query, low + k * row, row);
  }

  private top = (stream: number): number => TOP + stream * (this.room.tall + gapOf(this.frame));

  /** The ages at which windows end. */
  private paintMarks(ends: number[]): void {
    const [pen, { x }] = [this.pen, this.room];
    const low = this.top(this.frame.streams.length) - gapOf(this.frame) + 6;
    for (const end of [0, ...new Set(ends.toSorted((a, b) => a - b))]) {
      pen.straight(x(end), TOP - 4, x(end), low, "faint", 1, [2, 4], 0.6);
      const text = end ? age(end) : "now";
      const at = Math.min(x(end), pen.wide - pen.width(text, 11) / 2 - 1);
      pen.text(text, at, 8, { ...SMALL, align: "center", isMinor: true });
    }
  }

  private paintStreams(frame: AgesFrame): void {
    const [pen, { x, tall }] = [this.pen, this.room];
    const query = records(frame.queries).find(({ name }) => this.selected === `query:${name}`);
    const then = earlier(this.before?.pieces, nameOf);
    frame.streams.forEach((stream, k) => {
      const middle = this.top(k) + tall / 2;
      pen.text(`stream ${stream}`, 0, middle - 8, { bold: true, colour: hue(k) });
      pen.text(`${count(frame.rows[k] ?? 0)} rows`, 0, middle + 8, SMALL);
    });
    for (const piece of records(frame.pieces)) {
      const { first, last, stream, rows } = piece;
      const box = { x: x(first) + 1.5, y: this.top(stream), wide: x(last) - x(first) - 3, tall };
      const isLit = query !== undefined && isRead(query, piece);
      const width = isLit ? 2 : 1;
      pen.box(box, { fill: "panel", stroke: isLit ? "accent" : "rule", width, round: 4 });
      const held = shareOf(mix(then(piece).rows, rows, this.share), frame.scale_max);
      const alpha = query && !isLit ? 0.25 : 0.85;
      pen.box(risen(box, held), { fill: hue(stream), round: 3, alpha });
      const text = `${agesOf(piece, frame)}: ${count(rows)} rows on host ${piece.host}`;
      pen.target(box, nameOf(piece), text);
      const style = { align: "center", ground: "panel", bold: true, room: box.wide - 8 } as const;
      pen.text(count(rows), ...middle(box), style);
      const young = [box.x - 9, box.x + box.wide].map((at): Point => [at, box.y + 8]);
      const comes = !first && this.time < 1 && frame.received[stream];
      if (comes) this.paintBeads(young, hue(stream));
    }
    if (frame.hosts > 1) this.paintHosts(frame);
  }

  /** A line below the slices that a host holds of a stream, with its name. */
  private paintHosts({ pieces }: AgesFrame): void {
    const [pen, { x, tall }] = [this.pen, this.room];
    for (const { host, stream, first, last } of stretchesOf(records(pieces))) {
      const [from, to, y] = [x(first) + 3, x(last) - 3, this.top(stream) + tall];
      const [name, text] = [`host:${host}`, `host ${host}`];
      const style = { ...HOST, ...this.named(name, "muted") };
      pen.straight(from, y + 10, to, y + 10, style.colour, style.bold ? 2.5 : 1.2);
      pen.text(text, (from + to) / 2, y + 10, { ...style, room: to - from });
      const box = { x: from, y: y + 3, wide: to - from, tall: 15 };
      pen.targets.push({ box, name, text: `Host ${host} holds ${age(first)} to ${age(last)}` });
    }
  }

  private paintQuery({ name, windows, results }: AgeQuery, y: number, row: number): void {
    const [pen, { left, x }] = [this.pen, this.room];
    const { bold, colour } = this.named(`query:${name}`);
    const [size, level] = [Math.min(12, Math.max(10, Math.round(row) - 4)), y + row / 2];
    pen.text(name, 0, level, { size, bold, colour, isMinor: true });
    const box = { x: 0, y, wide: pen.wide, tall: row };
    const wide = x(Math.max(...windows)) - left;
    const look = { fill: bold ? "accent" : "faint", alpha: bold ? 0.9 : 0.4, round: 3 } as const;
    pen.box({ x: left, y: y + row * 0.2, wide, tall: row * 0.6 }, look);
    const found = { size, bold: true, align: "right", ground: "bg", isMinor: true } as const;
    pen.text(count(results), pen.wide - 4, level, found);
    pen.targets.push({ box, name: `query:${name}`, text: `Query ${name}` });
  }
}
