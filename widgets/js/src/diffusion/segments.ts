// The map of segments: a row a host, batches across; a bar where a host has a segment of a stream. If
// segments have paths, the newest path of a stream stands at the right.
import type { PathHop, Segment, SegmentsFrame } from "../../frames.ts";
import { CanvasMap, type Detail, numberIn, type Pair } from "../base/canvas_map.ts";
import { records, sum } from "../base/columns.ts";
import { count, shareOf } from "../base/format.ts";
import { along, eased, mix, type Point, squareAt } from "../base/geometry.ts";
import { SMALL } from "../base/pen.ts";
import { hue } from "../base/theme.ts";

const [TOP, LOW] = [16, 20];

/** The segments at which another stream becomes the master. */
export const switches = (segments: Segment[]): Segment[] =>
  segments.filter(({ stream }, k) => k > 0 && segments[k - 1]?.stream !== stream);

/** The stream whose path is shown: the selected one, else the one whose path was chosen last. */
export function streamOf({ latest, orders }: SegmentsFrame, selected: string): number {
  const stream = numberIn("stream", selected);
  return orders.stream.includes(stream) ? stream : latest;
}

const batches = ({ first, last }: Segment): string =>
  first === last ? `batch ${first}` : `batches ${first} to ${last}`;

/** The text about a host or a stream's path in the inspector. */
export function inspectSegments(frame: SegmentsFrame, selected: string): Detail | undefined {
  const host = numberIn("host", selected);
  const name = (segment: Segment) => `${frame.streams[segment.stream]}, ${batches(segment)}`;
  if (frame.stored[host] !== undefined) {
    const own = records(frame.segments).filter((segment) => segment.host === host);
    const newest = own.at(-1);
    const words = newest ? `its newest segment: ${name(newest)}` : "no segment in these batches";
    const pairs = own.slice(-6).map((segment): Pair => {
      return [name(segment), segment.copied ? `${count(segment.copied)} copied` : ""];
    });
    return { title: `Host ${host}`, words, pairs: pairs.reverse() };
  }
  const stream = streamOf(frame, selected);
  if (selected !== `stream:${stream}`) return undefined;
  const orders = records(frame.orders).filter((order) => order.stream === stream);
  const pairs = orders.map(({ order, overhead }, k): Pair => {
    return [k ? `rejected: ${order}` : `chosen: ${order}`, `${overhead} rows`];
  });
  const words = "rows sent for one row of it, estimated, by the order of its hops";
  return { title: `Path of ${frame.streams[stream]}`, words, pairs };
}

export class SegmentsView extends CanvasMap<SegmentsFrame> {
  /** The sides of the batches, the height of a host's row, and the place of a batch. */
  private room = { left: 0, right: 0, row: 0, x: (batch: number): number => batch };

  protected tell(frame: SegmentsFrame): void {
    const { streams, stored, received, sent, latest, first, last } = frame;
    const master = ": its rows go to one host at a time, rows of the others are copied there";
    const paths = ": new rows hop over the hosts of their partners";
    const [of, words] = latest < 0 ? ["the master", master] : ["all streams", paths];
    this.head(`batches ${first} to ${last}`, `Segments of ${of}`, words);
    const marks = streams.map((name) => `stream ${name}`);
    this.signs(marks, [
      "pale: rows stay until the window has passed",
      "bar at the left: rows that a host holds",
    ]);
    const stream = streamOf(frame, this.selected);
    const [chosen, ...others] = records(frame.orders).filter((order) => order.stream === stream);
    if (chosen) {
      const sent = `${chosen.overhead} rows sent for one row of ${streams[stream]} by ${chosen.order}`;
      const rejected = others.slice(0, 2).map(({ order, overhead }) => `${overhead} by ${order}`);
      this.foot(sent, rejected.length ? `; rejected: ${rejected.join(", ")}` : "");
      return;
    }
    const mean = shareOf(sum(stored), stored.length);
    const copies = received ? (sent / received).toFixed(2) : "0";
    const loads = `fullest host ${count(Math.max(0, ...stored))} rows, mean ${count(mean)}`;
    this.foot(`${copies} copies sent for one row · ${loads}`);
  }

  protected paint({ first, last, latest, stored, ...frame }: SegmentsFrame): void {
    const { pen, before, time, share } = this;
    const path = latest < 0 ? 0 : Math.max(96, Math.min(320, pen.wide * 0.34));
    const high = (pen.tall - TOP - LOW) / Math.max(1, stored.length);
    const { x: left, wide, tall: row } = this.paintRows(stored.length, TOP, high, 12 + path);
    const [right, column] = [left + wide, wide / Math.max(8, last - first + 1)];
    const shift = before && before.first < first ? 1 - share : 0;
    const x = (batch: number) => Math.max(left, left + (batch - first + shift) * column);
    this.room = { left, right, row, x };
    const segments = records(frame.segments);
    const now = Math.min(x(last + time), right);
    for (const segment of segments) this.paintSegment(segment, now);
    if (latest < 0) this.paintSwitches(segments);
    pen.straight(now, TOP, now, pen.tall - LOW, "accent", 2);
    const middle = { ...SMALL, bold: true, colour: "accent", align: "center" } as const;
    pen.text("now", Math.min(now, pen.wide - 14), pen.tall - 9, middle);
    if (path) this.paintPath(streamOf(this.frame, this.selected));
  }

  private paintSwitches(segments: Segment[]): void {
    const [pen, { x, left }] = [this.pen, this.room];
    for (const { first, stream } of switches(segments)) {
      const at = x(first);
      if (at <= left) continue;
      pen.straight(at, TOP - 2, at, pen.tall - LOW, "ink", 1, [3, 4]);
      const text = `${this.frame.streams[stream]} is master`;
      pen.text(text, at + 3, 7, { size: 11, bold: true, room: pen.wide - at });
    }
  }

  /** A bar; if streams have paths, each has a lane of its own in the row of a host. */
  private paintSegment(segment: Segment, now: number): void {
    const { streams, latest } = this.frame;
    const [pen, { row, x }, { stream, host, first, last, held }] = [this.pen, this.room, segment];
    const [lanes, lane] = latest < 0 ? [1, 0] : [streams.length, stream];
    const [from, to, tall] = [x(first) + 1, Math.min(x(last + 1), now) - 1, (row - 6) / lanes];
    const y = TOP + host * row + 3 + lane * tall;
    const box = { x: from, y, wide: to - from, tall: tall - 1 };
    const stay = { ...box, wide: Math.min(x(held + 1), now) - 1 - from };
    pen.box(stay, { fill: hue(stream), round: 3, alpha: latest < 0 ? 0.16 : 0.08 });
    if (to > from) pen.box(box, { fill: hue(stream), round: 3, alpha: 0.9 });
    const text = `Stream ${streams[stream]} on host ${host}, ${batches(segment)}`;
    if (latest >= 0) pen.targets.push({ box, name: `stream:${stream}`, text });
  }

  /** The hops of new rows of a stream: a column a hop, a line from host to host. */
  private paintPath(stream: number): void {
    const { pen, time, frame } = this;
    const { right, row } = this.room;
    const hops = records(frame.hops).filter((hop) => hop.stream === stream);
    const columns = Math.max(0, ...hops.map(({ hop }) => hop)) + 1;
    const [from, to] = [right + 26, pen.wide - 16];
    const x = (hop: number) => mix(from, to, columns > 1 ? hop / (columns - 1) : 0.5);
    const at = ({ hop, host }: PathHop): Point => [x(hop), TOP + (host + 0.5) * row];
    for (const a of hops) {
      for (const b of hops.filter(({ path, hop }) => path === a.path && hop === a.hop + 1)) {
        const dash = a.host === b.host ? [2, 4] : [];
        pen.line([at(a), at(b)], hue(stream), 1.5, dash, 0.55);
        const way = time * columns - a.hop;
        if (time >= 1 || way <= 0 || way >= 1) continue;
        pen.dot(along(at(a), at(b), eased(way)), 4, hue(stream), "panel");
      }
    }
    const small = { ...SMALL, align: "center" } as const;
    for (const hop of hops) {
      const { host, partner, blocks } = hop;
      pen.dot(at(hop), Math.max(3, Math.min(7, row / 2 - 2)), hue(partner), "bg");
      const text = `Host ${host}: ${blocks} blocks of ${frame.streams[partner]} are met`;
      pen.targets.push({ box: squareAt(at(hop), 9), name: `host:${host}`, text });
    }
    const partners = new Map(hops.map(({ hop, partner }) => [hop, frame.streams[partner]]));
    for (const [hop, name = ""] of partners) pen.text(name, x(hop), pen.tall - 9, small);
    pen.text(`hops of ${frame.streams[stream]}`, (from + to) / 2, 7, { ...small, bold: true });
  }
}
