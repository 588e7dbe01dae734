// The map of shared slices by age, the youngest rows left, and how far back each query looks.
import type { AgeQuery, AgesFrame, SlicePiece } from "../../frames.ts";
import { CanvasMap, chosen, type Detail, type Pair } from "../base/canvas_map.ts";
import { earlier, records } from "../base/columns.ts";
import { age, count, several, shareOf } from "../base/format.ts";
import { middle, mix, type Point, risen } from "../base/geometry.ts";
import { SMALL } from "../base/pen.ts";
import { hue } from "../base/theme.ts";

/** The room above all lanes and below each, and the least heights of a lane and of a query's bar. */
const [TOP, GAP, LANE, ROW] = [24, 20, 14, 3];

/** The least height of the map, and the height of a query in a pane. */
export function heightsOf(frame: AgesFrame, pane: number): { least: number; row: number } {
  const above = TOP + 18 + (LANE + GAP) * frame.streams.length;
  const rows = frame.queries.name.length + 1;
  const row = Math.min(34, Math.min(0.42 * pane, pane - above) / rows);
  return { least: above + ROW * rows, row: Math.max(ROW, row) };
}

/** The place of an age, from 0 to 1: in proportion, or by its logarithm if windows differ much. */
export function agePlace(ends: number[]): { isLog: boolean; place: (age: number) => number } {
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const isLog = high / low > 8;
  const log = (at: number) => Math.log1p((3 * at) / low) / Math.log1p((3 * high) / low);
  return { isLog, place: isLog ? log : (at) => at / (high || 1) };
}

const nameOf = ({ stream, first, last }: SlicePiece): string => `slice:${stream}:${first}:${last}`;

const agesOf = ({ first, last, stream }: SlicePiece, { streams }: AgesFrame): string =>
  `${age(first)} to ${age(last)} of ${streams[stream]}`;

const isRead = ({ windows }: AgeQuery, { stream, first }: SlicePiece): boolean =>
  first < (windows[stream] ?? 0);

/** The inspector's text for a query or a slice. */
export function inspectAges(frame: AgesFrame, selected: string): Detail | undefined {
  const query = chosen(frame.queries, "query", "name", selected);
  if (query) {
    const pairs: Pair[] = [
      ["results so far", count(query.results)],
      ["in this batch", count(query.batch_results)],
      ["selection", query.selection.replaceAll("`", "") || "every row"],
      ...frame.streams.map((s, k): Pair => [`window of ${s}`, age(query.windows[k] ?? 0)]),
    ];
    return { title: `Query “${query.name}”`, words: "", pairs };
  }
  const piece = records(frame.pieces).find((each) => nameOf(each) === selected);
  if (!piece) return undefined;
  const names = records(frame.queries).flatMap((each) => (isRead(each, piece) ? each.name : []));
  const pairs: Pair[] = [
    ["rows", count(piece.rows)],
    ["queries that read it", names.join(", ") || "none"],
  ];
  return { title: agesOf(piece, frame), words: `on host ${piece.host}`, pairs };
}

/** The ages of a stream that a host holds, in one piece. */
export function stretchesOf(pieces: SlicePiece[]): SlicePiece[] {
  const groups = Map.groupBy(pieces, ({ stream, host }) => `${stream} ${host}`);
  return [...groups.values()].map((own) =>
    own.reduceRight(({ last }, each) => ({ ...each, last })),
  );
}

export class AgesView extends CanvasMap<AgesFrame> {
  /** The height of a stream's lane, and the place of an age. */
  private room = { left: 0, tall: 0, x: (age: number): number => age };

  protected tell(frame: AgesFrame): void {
    const scale = agePlace(frame.pieces.last).isLog ? "on a log scale" : "in proportion";
    const on = frame.hosts > 1 ? `, on a ring of ${frame.hosts} hosts` : "";
    const words = ": a row enters at the left and moves right as it grows older";
    this.head(`ages ${scale}`, `State by age${on}`, words);
    this.needs(heightsOf(frame, 0).least);
  }

  protected paint(frame: AgesFrame): void {
    const [pen, { pieces, queries, streams }] = [this.pen, frame];
    const names = [...queries.name, ...streams.map((s) => `stream ${s}`)];
    const left = Math.max(64, ...names.map((name) => pen.width(name, 12, true) + 12));
    const { row } = heightsOf(frame, pen.tall);
    const low = pen.tall - row * queries.name.length - 4;
    const tall = Math.min(130, (low - TOP - 18) / streams.length - GAP);
    const { place } = agePlace(pieces.last);
    this.room = { left, tall, x: (age: number) => left + (pen.wide - left - 24) * place(age) };
    this.paintLanes(frame);
    const words = "how far back each query looks, and its results so far";
    pen.text(words, Math.min(left, pen.wide - pen.width(words, 11) - 2), low - 11, SMALL);
    for (const [k, query] of records(queries).entries()) this.paintQuery(query, low + k * row, row);
  }

  private top = (stream: number): number => TOP + stream * (this.room.tall + GAP);

  /** The lanes of the streams, and across them the ages at which windows end. */
  private paintLanes(frame: AgesFrame): void {
    const [pen, { x, tall }] = [this.pen, this.room];
    const low = this.top(frame.streams.length) - GAP + 6;
    for (const end of [0, ...new Set(frame.pieces.last.toSorted((a, b) => a - b))]) {
      pen.straight(x(end), TOP - 4, x(end), low, "faint", 1, [2, 4], 0.6);
      pen.text(end ? age(end) : "now", x(end), 8, { ...SMALL, align: "center", isMinor: true });
    }
    const query = chosen(frame.queries, "query", "name", this.selected);
    const then = earlier(this.before?.pieces, nameOf);
    for (const [k, stream] of frame.streams.entries()) {
      const level = this.top(k) + tall / 2;
      pen.text(`stream ${stream}`, 0, level - 8, { bold: true, colour: hue(k) });
      pen.text(`${count(frame.rows[k] ?? 0)} rows`, 0, level + 8, SMALL);
    }
    for (const piece of records(frame.pieces)) {
      const { first, last, stream, rows, host } = piece;
      const box = { x: x(first) + 1.5, y: this.top(stream), wide: x(last) - x(first) - 3, tall };
      const isLit = query && isRead(query, piece);
      const { colour: stroke } = this.named(`host:${host}`, isLit ? "accent" : "rule");
      pen.box(box, { fill: "panel", stroke, width: stroke === "rule" ? 1 : 2, round: 4 });
      const held = shareOf(mix(then(piece).rows, rows, this.share), frame.scale_max);
      const look = { fill: hue(stream), round: 3, alpha: query && !isLit ? 0.25 : 0.85 };
      pen.box(risen(box, held), look);
      const text = `${agesOf(piece, frame)}: ${count(rows)} rows on host ${host}`;
      pen.target(box, nameOf(piece), text);
      const isThin = pen.width(count(rows), 12, true) > box.wide - 2 && box.wide > 12;
      const [turn, room] = isThin ? [-Math.PI / 2, tall - 4] : [0, box.wide - 2];
      const style = { align: "center", ground: "panel", bold: true, turn, room } as const;
      pen.text(count(rows), ...middle(box), style);
      const young = [box.x - 9, box.x + box.wide].map((at): Point => [at, box.y + 8]);
      if (!first && this.time < 1 && frame.received[stream]) this.paintBeads(young, hue(stream));
    }
    for (const held of stretchesOf(records(frame.pieces))) this.paintHost(held);
  }

  /** A line below what a host holds of a stream, with its name, or its number where that has room. */
  private paintHost({ host, stream, first, last }: SlicePiece): void {
    const [pen, { x, tall }, name] = [this.pen, this.room, `host:${host}`];
    const [from, wide, y] = [x(first) + 3, x(last) - x(first) - 6, this.top(stream) + tall + 10];
    const { bold, colour } = this.named(name, "muted");
    pen.straight(from, y, from + wide, y, colour, bold ? 2.5 : 1.2);
    const label = pen.width(`host ${host}`, 10, bold) > wide ? `${host}` : `host ${host}`;
    const style = { size: 10, ground: "bg", align: "center", room: wide, bold, colour } as const;
    pen.text(label, from + wide / 2, y, style);
    const text = `Host ${host} holds ${age(first)} to ${age(last)}`;
    pen.targets.push({ box: { x: from, y: y - 7, wide, tall: 15 }, name, text });
  }

  /** A bar as far as a query looks back; its name and its results where they have room. */
  private paintQuery({ name, windows, results }: AgeQuery, y: number, row: number): void {
    const [pen, { left, x }, level] = [this.pen, this.room, y + row / 2];
    const { bold, colour } = this.named(`query:${name}`);
    const style = { size: row < 14 ? 10 : 12, bold: true, isMinor: true } as const;
    pen.text(name, 0, level, { ...style, bold, colour });
    const [end, text] = [x(Math.max(...windows)), several(results, "result")];
    const look = { fill: bold ? "accent" : "faint", alpha: bold ? 0.9 : 0.4, round: 3 } as const;
    pen.box({ x: left, y: y + row * 0.2, wide: end - left, tall: row * 0.6 }, look);
    const isOnBar = end + 8 + pen.width(text, style.size, true) > pen.wide;
    const place = { ...style, ground: "bg", align: isOnBar ? "right" : "left" } as const;
    pen.text(text, end + (isOnBar ? -8 : 8), level, place);
    const box = { x: 0, y, wide: pen.wide, tall: row };
    pen.targets.push({ box, name: `query:${name}`, text: `Query ${name}` });
  }
}
