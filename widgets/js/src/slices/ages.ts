// The map of shared slices: a row enters at the left and moves to the right as it grows older; below
// it the queries, each as far as it looks back.
import type { AgeQuery, AgesFrame, SlicePiece } from "../../frames.ts";
import { CanvasMap, type Shown } from "../base/canvas_map.ts";
import { records } from "../base/columns.ts";
import { age, count } from "../base/format.ts";
import { eased, mix } from "../base/pen.ts";
import type { Detail } from "../cockpit/details.ts";

const TOP = 24;
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
    const windows = frame.streams.map((stream, k): [string, string] => {
      const own = pieces.filter((piece) => piece.stream === k);
      const read = own.filter(({ first }) => first < (query.windows[k] ?? 0)).length;
      return [
        `window of ${stream}`,
        `${age(query.windows[k] ?? 0)}, ${read} of ${own.length} slices`,
      ];
    });
    const results: [string, string][] = [
      ["results so far", count(query.results)],
      ["in this batch", count(query.batch_results)],
      ["selection", query.selection.replaceAll("`", "") || "every row"],
    ];
    return { title: `Query “${query.name}”`, words: "", pairs: [...results, ...windows] };
  }
  const piece = pieces.find((each) => nameOf(each) === selected);
  if (!piece) return undefined;
  const serves = records(frame.queries).filter((each) => isRead(each, piece));
  const pairs: [string, string][] = [
    ["rows", count(piece.rows)],
    ["on host", String(piece.host)],
    ["queries that read it", serves.map(({ name }) => name).join(", ") || "none"],
  ];
  const title = `${age(piece.first)} to ${age(piece.last)} of ${frame.streams[piece.stream]}`;
  return { title, words: "", pairs };
}

const isRead = (query: AgeQuery | undefined, { stream, first }: SlicePiece): boolean =>
  first < (query?.windows[stream] ?? 0);

export class AgesView extends CanvasMap<AgesFrame> {
  protected tell(frame: AgesFrame): void {
    this.needs(TOP + 44 * frame.streams.length + 15 * (frame.queries.name.length + 1) + 8);
  }

  protected paint({ frame, before, time, selected }: Shown<AgesFrame>): void {
    const { pen } = this;
    const queries = records(frame.queries);
    if (!frame.pieces.last.length) return;
    const names = [...queries.map(({ name }) => name), ...frame.streams.map((s) => `stream ${s}`)];
    const left = Math.max(64, ...names.map((name) => pen.width(name, 12, true) + 12));
    const { isLog, place } = agePlace(frame.pieces.last);
    const wide = pen.wide - left - 24;
    const x = (at: number) => left + wide * place(at);
    const linear = `100 px = ${age((100 * Math.max(...frame.pieces.last)) / wide)}`;
    this.head(isLog ? "age on a log scale" : linear, "State by age", WORDS);
    const row = Math.min(34, Math.max(15, (pen.tall * 0.42) / (queries.length + 1)));
    const low = pen.tall - row * queries.length - 4;
    const tall = Math.min(130, (low - TOP - 22) / frame.streams.length - 14);
    const boxes = { x, tall, top: (stream: number) => TOP + stream * (tall + 14) };
    this.paintMarks(frame, x, TOP + frame.streams.length * (tall + 14) - 8);
    this.paintStreams(frame, before, eased(time), selected, boxes);
    if (time < 1) this.paintArrivals(frame, time, left, boxes);
    const long = "queries: how far back each looks, and its results so far";
    const fits = pen.width(long, 11) < pen.wide - left;
    const small = { size: 11, colour: pen.theme.shade("muted") };
    pen.text(fits ? long : "queries, results so far", left, low - 11, small);
    queries.forEach((query, k) => {
      this.paintQuery(query, low + k * row, row, left, x, selected);
    });
  }

  /** The ages at which windows end. */
  private paintMarks(frame: AgesFrame, x: (at: number) => number, low: number): void {
    const { pen } = this;
    const faint = pen.theme.shade("faint");
    let last = -99;
    for (const end of [0, ...new Set(frame.pieces.last.toSorted((a, b) => a - b))]) {
      pen.straight(x(end), TOP - 4, x(end), low, faint, 1, [2, 4], 0.6);
      const text = end ? age(end) : "now";
      const wide = pen.width(text, 11);
      const at = Math.min(x(end), pen.wide - wide / 2 - 1);
      if (at - wide / 2 < last + 8) continue;
      pen.text(text, at, 8, { size: 11, align: "center", colour: pen.theme.shade("muted") });
      last = at + wide / 2;
    }
  }

  private paintStreams(
    frame: AgesFrame,
    before: AgesFrame | undefined,
    share: number,
    selected: string,
    { x, tall, top }: { x: (at: number) => number; tall: number; top: (stream: number) => number },
  ): void {
    const { pen } = this;
    const query = records(frame.queries).find(({ name }) => selected === `query:${name}`);
    const older = new Map(before ? records(before.pieces).map((p) => [nameOf(p), p.rows]) : []);
    frame.streams.forEach((stream, k) => {
      const colour = pen.theme.stream(k);
      pen.text(`stream ${stream}`, 0, top(k) + tall / 2 - 8, { bold: true, colour });
      const rows = `${count(frame.rows[k] ?? 0)} rows`;
      pen.text(rows, 0, top(k) + tall / 2 + 8, { size: 11, colour: pen.theme.shade("muted") });
    });
    for (const piece of records(frame.pieces)) {
      const [from, to] = [x(piece.first), x(piece.last)];
      const y = top(piece.stream);
      const box = { x: from + 1.5, y, wide: to - from - 3, tall };
      pen.box(box, { fill: pen.theme.shade("panel"), stroke: pen.theme.shade("rule"), round: 4 });
      const rows = mix(older.get(nameOf(piece)) ?? piece.rows, piece.rows, share);
      const fill = frame.scale_max ? (rows / frame.scale_max) * tall : 0;
      const alpha = query && !isRead(query, piece) ? 0.25 : 0.85;
      const filled = { ...box, y: y + tall - fill, tall: fill };
      pen.box(filled, { fill: pen.theme.stream(piece.stream), round: 3, alpha });
      if (nameOf(piece) === selected) {
        pen.box(box, { stroke: pen.theme.shade("accent"), width: 2.5, round: 4 });
      }
      this.paintNumbers(piece, frame.hosts, box);
      const words = `${age(piece.first)} to ${age(piece.last)} of ${frame.streams[piece.stream]}`;
      pen.target(box, nameOf(piece), `${words}: ${count(piece.rows)} rows on host ${piece.host}`);
    }
  }

  private paintNumbers(
    piece: SlicePiece,
    hosts: number,
    { x, y, wide, tall }: { x: number; y: number; wide: number; tall: number },
  ): void {
    const { pen } = this;
    const ground = pen.theme.shade("panel");
    const style = { align: "center", ground } as const;
    const rows = count(piece.rows);
    if (pen.width(rows, 12, true) + 8 < wide) {
      pen.text(rows, x + wide / 2, y + tall / 2 - 2, { ...style, bold: true });
    }
    const host = `host ${piece.host}`;
    if (hosts > 1 && tall > 44 && pen.width(host, 10) + 8 < wide) {
      pen.text(host, x + wide / 2, y + tall - 9, { ...style, size: 10 });
    }
  }

  /** Rows that come in. */
  private paintArrivals(
    frame: AgesFrame,
    time: number,
    left: number,
    { x, tall, top }: { x: (at: number) => number; tall: number; top: (stream: number) => number },
  ): void {
    frame.streams.forEach((_, k) => {
      const end = x(Math.min(...frame.pieces.last.filter((__, p) => frame.pieces.stream[p] === k)));
      for (let d = 0; frame.received[k] && d < 6; d++) {
        const way = (time + d / 6) % 1;
        const y = top(k) + 6 + ((d * 29) % Math.max(8, tall - 18));
        const box = { x: left - 10 + (end - left + 6) * way, y, wide: 6, tall: 6 };
        const stroke = this.pen.theme.shade("panel");
        this.pen.box(box, {
          fill: this.pen.theme.stream(k),
          round: 2,
          alpha: 1 - 0.6 * way,
          stroke,
        });
      }
    });
  }

  private paintQuery(
    query: AgeQuery,
    y: number,
    row: number,
    left: number,
    x: (at: number) => number,
    selected: string,
  ): void {
    const { pen } = this;
    const on = selected === `query:${query.name}`;
    const size = row < 18 ? 11 : 12;
    const colour = pen.theme.shade(on ? "accent" : "ink");
    pen.text(query.name, 0, y + row / 2, { size, bold: on, colour });
    const wide = x(Math.max(...query.windows)) - left;
    const bar = { x: left, y: y + row * 0.2, wide, tall: row * 0.6 };
    pen.box(bar, {
      fill: pen.theme.shade(on ? "accent" : "faint"),
      round: 3,
      alpha: on ? 0.9 : 0.4,
    });
    pen.target(
      { x: 0, y, wide: pen.wide, tall: row },
      `query:${query.name}`,
      `Query ${query.name}`,
    );
    const text = count(query.results);
    const needed = pen.width(text, size, true);
    const beside = left + wide + 6;
    const inside = beside + needed > pen.wide - 2;
    const at = inside ? left + wide - 6 - needed : beside;
    const ground = inside ? { ground: pen.theme.shade("panel") } : {};
    pen.text(text, at, y + row / 2, { size, bold: true, ...ground });
  }
}
