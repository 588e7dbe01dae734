// The map of segments: a row a host, batches across; a bar where a host has a segment of a stream. If
// segments have paths, the newest path of a stream stands at the right.
import type { PathHop, Segment, SegmentsFrame } from "../../frames.ts";
import { CanvasMap, type Detail, numberIn, type Pair } from "../base/canvas_map.ts";
import { records } from "../base/columns.ts";
import { count } from "../base/format.ts";
import { along, type Box, eased, mix, type Point, SMALL } from "../base/pen.ts";
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
  /** The sides of the batches, and the height of a host's row. */
  private left = 0;
  private right = 0;
  private row = 0;
  private x = (batch: number): number => batch;

  protected tell({ streams, stored, received, sent, latest, first, last }: SegmentsFrame): void {
    const master = ": its rows go to one host at a time, rows of the others are copied there";
    const paths = ": new rows hop over the hosts of their partners";
    const [of, words] = latest < 0 ? ["the master", master] : ["all streams", paths];
    this.head(`batches ${first} to ${last}`, `Segments of ${of}`, words);
    const marks = streams.map((name, stream) => ({ stream, text: `stream ${name}` }));
    this.signs([...marks, { text: "bar at the left: rows that a host holds" }]);
    const mean = stored.reduce((sum, rows) => sum + rows, 0) / Math.max(1, stored.length);
    const copies = received ? (sent / received).toFixed(2) : "0";
    const loads = `fullest host ${count(Math.max(0, ...stored))} rows, mean ${count(mean)}`;
    this.foot(`${copies} copies sent for one row · ${loads}`);
  }

  protected paint({ first, last, latest, stored, segments: held }: SegmentsFrame): void {
    const { pen, before, time, share } = this;
    const hosts = Math.max(1, stored.length);
    const left = pen.width(`host ${hosts - 1}`, 12, true) + 26;
    const path = latest < 0 ? 0 : Math.max(96, Math.min(320, pen.wide * 0.34));
    const right = pen.wide - 12 - path;
    const column = (right - left) / Math.max(8, last - first + 1);
    const shift = before && before.first < first ? 1 - share : 0;
    const x = (batch: number) => left + (batch - first + shift) * column;
    Object.assign(this, { left, right, row: (pen.tall - TOP - LOW) / hosts, x });
    stored.forEach((rows, host) => {
      this.paintHost(host, rows);
    });
    const segments = records(held);
    const now = Math.min(x(last + time), right);
    pen.inside({ x: left, y: 0, wide: right - left, tall: pen.tall }, () => {
      for (const segment of segments) this.paintSegment(segment, now);
    });
    if (latest < 0) this.paintSwitches(segments);
    pen.straight(now, TOP, now, pen.tall - LOW, "accent", 2);
    const middle = { ...SMALL, bold: true, colour: "accent", align: "center" } as const;
    pen.text("now", Math.min(now, pen.wide - 14), pen.tall - 9, middle);
    if (!path) return;
    const stream = streamOf(this.frame, this.selected);
    this.paintPath(stream);
    this.tellPath(stream);
  }

  /** Writes what the path costs, and the orders that were rejected. */
  private tellPath(stream: number): void {
    const { orders, streams } = this.frame;
    const [chosen, ...others] = records(orders).filter((order) => order.stream === stream);
    if (!chosen) return;
    const sent = `${chosen.overhead} rows sent for one row of ${streams[stream]} by ${chosen.order}`;
    const rejected = others.slice(0, 2).map(({ order, overhead }) => `${overhead} by ${order}`);
    this.foot(sent, rejected.length ? `; rejected: ${rejected.join(", ")}` : "");
  }

  private paintSwitches(segments: Segment[]): void {
    const { pen } = this;
    for (const { first, stream } of switches(segments)) {
      const at = this.x(first);
      if (at < this.left) continue;
      pen.straight(at, TOP - 2, at, pen.tall - LOW, "ink", 1, [3, 4]);
      const text = `${this.frame.streams[stream]} is master`;
      const fits = at + pen.width(text, 11, true) < pen.wide;
      if (fits) pen.text(text, at + 3, 7, { size: 11, bold: true });
    }
  }

  private paintHost(host: number, rows: number): void {
    const { pen, left, right, row, before } = this;
    const y = TOP + host * row;
    const line = { x: left, y: y + 1, wide: right - left, tall: row - 2 };
    pen.box(line, { fill: "panel", round: 4 });
    const bold = this.selected === `host:${host}`;
    const colour = bold ? "accent" : "muted";
    if (row >= 12) pen.text(`host ${host}`, 0, y + row / 2, { bold, colour });
    const held = mix(before?.stored[host] ?? rows, rows, this.share);
    const tall = (held / (this.frame.scale_max || 1)) * (row - 4);
    const bar = { x: left - 16, y: y + row - 2 - tall, wide: 10, tall };
    pen.box(bar, { fill: this.barColour(host), round: 2 });
    const whole = { x: 0, y, wide: pen.wide, tall: row };
    pen.target(whole, `host:${host}`, `Host ${host}: ${count(rows)} rows`);
  }

  /** A bar; if streams have paths, each has a lane of its own in the row of a host. */
  private paintSegment(segment: Segment, now: number): void {
    const { pen, row, x } = this;
    const { streams, latest } = this.frame;
    const { stream, host, first, last } = segment;
    const many = latest >= 0 && streams.length > 1;
    const lanes = many ? streams.length : 1;
    const tall = (row - (many ? 4 : 8)) / lanes;
    const box: Box = {
      x: x(first) + 1,
      y: TOP + host * row + (row - lanes * tall) / 2 + (many ? stream * tall : 0),
      wide: Math.min(x(last + 1), now) - x(first) - 2,
      tall: tall - (many ? 1 : 0),
    };
    pen.box(box, { fill: hue(stream), round: many ? 2 : 4, alpha: 0.9 });
    const text = `Stream ${streams[stream]} on host ${host}, ${batches(segment)}`;
    if (many) pen.target(box, `stream:${stream}`, text);
  }

  /** The hops of new rows of a stream: a column a hop, a line from host to host. */
  private paintPath(stream: number): void {
    const { pen, row, time, frame } = this;
    const hops = records(frame.hops).filter((hop) => hop.stream === stream);
    const columns = Math.max(0, ...hops.map(({ hop }) => hop)) + 1;
    const [from, to] = [this.right + 26, pen.wide - 16];
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
    for (const hop of hops) this.paintHop(hop, at(hop));
    const small = { ...SMALL, align: "center" } as const;
    pen.text(`hops of ${frame.streams[stream]}`, (from + to) / 2, 7, { ...small, bold: true });
    const partners = new Map(hops.map(({ hop, partner }) => [hop, frame.streams[partner]]));
    for (const [hop, name] of partners) pen.text(`${name}`, x(hop), pen.tall - 9, small);
  }

  private paintHop({ host, partner, blocks }: PathHop, at: Point): void {
    const { pen, row } = this;
    pen.dot(at, Math.max(3, Math.min(7, row / 2 - 2)), hue(partner), "bg");
    const box = { x: at[0] - 9, y: at[1] - row / 2, wide: 18, tall: row };
    const text = `Host ${host}: ${blocks} blocks of ${this.frame.streams[partner]} are met`;
    pen.target(box, `host:${host}`, text);
  }
}
