// The map of segments: a row a host, batches across; a bar where a host has a segment of a stream. If
// segments have paths, the newest path of a stream stands at the right.
import type { PathHop, Segment, SegmentsFrame } from "../../frames.ts";
import { CanvasMap, numberIn, type Shown } from "../base/canvas_map.ts";
import { records } from "../base/columns.ts";
import { count } from "../base/format.ts";
import { type Box, eased, mix, type Point } from "../base/pen.ts";
import type { Detail, Pair } from "../cockpit/details.ts";

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
  const segments = records(frame.segments);
  const host = numberIn("host", selected);
  if (frame.stored[host] !== undefined) {
    const own = segments.filter((segment) => segment.host === host).toReversed();
    const newest = own[0];
    const words = newest
      ? `its newest segment: ${frame.streams[newest.stream]}, ${batches(newest)}`
      : "no segment in these batches";
    const pairs = own.slice(0, 6).map((segment): Pair => {
      const name = `${frame.streams[segment.stream]}, ${batches(segment)}`;
      return [name, segment.copied ? `${count(segment.copied)} copied` : ""];
    });
    return { title: `Host ${host}`, words, pairs };
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

/** The places of batches and hosts in the picture. */
interface Rows {
  left: number;
  right: number;
  row: number;
  x: (batch: number) => number;
}

export class SegmentsView extends CanvasMap<SegmentsFrame> {
  protected tell(frame: SegmentsFrame): void {
    const { streams, stored, received, sent, latest } = frame;
    const scale = `batches ${frame.first} to ${frame.last}`;
    if (latest < 0) {
      const words = ": its rows go to one host at a time, rows of the others are copied there";
      this.head(scale, "Segments of the master", words);
    } else {
      this.head(
        scale,
        "Segments of all streams",
        ": new rows hop over the hosts of their partners",
      );
    }
    const marks = streams.map((name, stream) => ({ stream, text: `stream ${name}` }));
    this.signs([...marks, { text: "bar at the left: rows that a host holds" }]);
    const mean = stored.reduce((sum, rows) => sum + rows, 0) / Math.max(1, stored.length);
    const copies = received ? (sent / received).toFixed(2) : "0";
    const loads = `fullest host ${count(Math.max(0, ...stored))} rows, mean ${count(mean)}`;
    this.foot(`${copies} copies sent for one row · ${loads}`);
  }

  protected paint({ frame, before, time, selected }: Shown<SegmentsFrame>): void {
    const { pen } = this;
    const hosts = Math.max(1, frame.stored.length);
    const row = (pen.tall - TOP - LOW) / hosts;
    const left = pen.width(`host ${hosts - 1}`, 12, true) + 26;
    const path = frame.latest < 0 ? 0 : Math.max(96, Math.min(320, pen.wide * 0.34));
    const right = pen.wide - 12 - path;
    const column = (right - left) / Math.max(8, frame.last - frame.first + 1);
    const shift = before && before.first < frame.first ? 1 - eased(time) : 0;
    const rows: Rows = {
      left,
      right,
      row,
      x: (batch: number) => left + (batch - frame.first + shift) * column,
    };
    frame.stored.forEach((_, host) => {
      this.paintHost(frame, before, host, rows, eased(time), selected);
    });
    const segments = records(frame.segments);
    const now = Math.min(rows.x(frame.last + time), right);
    pen.inside({ x: left, y: 0, wide: right - left, tall: pen.tall }, () => {
      for (const segment of segments) this.paintSegment(frame, segment, rows, now);
    });
    if (frame.latest < 0) this.paintSwitches(frame, segments, rows);
    const accent = pen.theme.shade("accent");
    this.rule(now, TOP, accent, 2);
    const middle = { size: 11, bold: true, colour: accent, align: "center" } as const;
    pen.text("now", Math.min(now, pen.wide - 14), pen.tall - 9, middle);
    if (!path) return;
    this.paintPath(frame, rows, streamOf(frame, selected), time);
    this.tellPath(frame, streamOf(frame, selected));
  }

  /** Writes what the path costs, and the orders that were rejected. */
  private tellPath({ orders, streams }: SegmentsFrame, stream: number): void {
    const [chosen, ...others] = records(orders).filter((order) => order.stream === stream);
    if (!chosen) return;
    const sent = `${chosen.overhead} rows sent for one row of ${streams[stream]} by ${chosen.order}`;
    const rejected = others.slice(0, 2).map(({ order, overhead }) => `${overhead} by ${order}`);
    this.foot(sent, rejected.length ? `; rejected: ${rejected.join(", ")}` : "");
  }

  private rule(x: number, top: number, colour: string, width: number, dash: number[] = []): void {
    this.pen.straight(x, top, x, this.pen.tall - LOW, colour, width, dash);
  }

  private paintSwitches(frame: SegmentsFrame, segments: Segment[], { x, left }: Rows): void {
    const { pen } = this;
    for (const { first, stream } of switches(segments)) {
      const at = x(first);
      if (at < left) continue;
      this.rule(at, TOP - 2, pen.theme.shade("ink"), 1, [3, 4]);
      const text = `${frame.streams[stream]} is master`;
      const fits = at + pen.width(text, 11, true) < pen.wide;
      if (fits) pen.text(text, at + 3, 7, { size: 11, bold: true });
    }
  }

  private paintHost(
    frame: SegmentsFrame,
    before: SegmentsFrame | undefined,
    host: number,
    { left, right, row }: Rows,
    share: number,
    selected: string,
  ): void {
    const { pen } = this;
    const y = TOP + host * row;
    const line = { x: left, y: y + 1, wide: right - left, tall: row - 2 };
    pen.box(line, { fill: pen.theme.shade("panel"), round: 4 });
    const on = selected === `host:${host}`;
    const colour = pen.theme.shade(on ? "accent" : "muted");
    if (row >= 12) pen.text(`host ${host}`, 0, y + row / 2, { bold: on, colour });
    const rows = frame.stored[host] ?? 0;
    const held = mix(before?.stored[host] ?? rows, rows, share) / (frame.scale_max || 1);
    const tall = held * (row - 4);
    const bar = { x: left - 16, y: y + row - 2 - tall, wide: 10, tall };
    pen.box(bar, { fill: on ? pen.theme.shade("accent") : pen.theme.load(0.62), round: 2 });
    const whole = { x: 0, y, wide: pen.wide, tall: row };
    pen.target(whole, `host:${host}`, `Host ${host}: ${count(rows)} rows`);
  }

  /** A bar; if streams have paths, each has a lane of its own in the row of a host. */
  private paintSegment(frame: SegmentsFrame, segment: Segment, rows: Rows, now: number): void {
    const { stream, host, first, last } = segment;
    const lanes = frame.latest < 0 ? 1 : frame.streams.length;
    const tall = (rows.row - (lanes > 1 ? 4 : 8)) / lanes;
    const end = Math.min(rows.x(last + 1), now);
    const box: Box = {
      x: rows.x(first) + 1,
      y: TOP + host * rows.row + (rows.row - lanes * tall) / 2 + (lanes > 1 ? stream * tall : 0),
      wide: end - rows.x(first) - 2,
      tall: tall - (lanes > 1 ? 1 : 0),
    };
    const { pen } = this;
    pen.box(box, { fill: pen.theme.stream(stream), round: lanes > 1 ? 2 : 4, alpha: 0.9 });
    if (lanes === 1) return;
    const text = `Stream ${frame.streams[stream]} on host ${host}, ${batches(segment)}`;
    pen.target(box, `stream:${stream}`, text);
  }

  /** The hops of new rows of a stream: a column a hop, a line from host to host. */
  private paintPath(frame: SegmentsFrame, rows: Rows, stream: number, time: number): void {
    const { pen } = this;
    const hops = records(frame.hops).filter((hop) => hop.stream === stream);
    const columns = Math.max(0, ...hops.map(({ hop }) => hop)) + 1;
    const [from, to] = [rows.right + 26, pen.wide - 16];
    const x = (hop: number) => mix(from, to, columns > 1 ? hop / (columns - 1) : 0.5);
    const y = (host: number) => TOP + (host + 0.5) * rows.row;
    const hue = pen.theme.stream(stream);
    const paths = Map.groupBy(hops, ({ path }) => path);
    for (const path of paths.values()) {
      for (const a of path) {
        for (const b of path.filter(({ hop }) => hop === a.hop + 1)) {
          const ends: [Point, Point] = [
            [x(a.hop), y(a.host)],
            [x(b.hop), y(b.host)],
          ];
          pen.line(ends, hue, 1.5, a.host === b.host ? [2, 4] : [], 0.55);
          if (time < 1) this.paintTravel(ends, time * columns - a.hop, hue);
        }
      }
    }
    for (const hop of hops) this.paintHop(frame, hop, [x(hop.hop), y(hop.host)], rows.row);
    const small = { size: 11, colour: pen.theme.shade("muted"), align: "center" } as const;
    const title = `hops of ${frame.streams[stream]}`;
    pen.text(title, (from + to) / 2, 7, { ...small, bold: true });
    const partners = new Map(hops.map(({ hop, partner }) => [hop, frame.streams[partner]]));
    for (const [hop, name] of partners) pen.text(`${name}`, x(hop), pen.tall - 9, small);
  }

  private paintTravel([a, b]: [Point, Point], share: number, hue: string): void {
    if (share <= 0 || share >= 1) return;
    const at: Point = [mix(a[0], b[0], eased(share)), mix(a[1], b[1], eased(share))];
    this.pen.dot(at, 4, hue, this.pen.theme.shade("panel"));
  }

  private paintHop(frame: SegmentsFrame, hop: PathHop, at: Point, row: number): void {
    const { pen } = this;
    const size = Math.max(3, Math.min(7, row / 2 - 2));
    pen.dot(at, size, pen.theme.stream(hop.partner), pen.theme.shade("bg"));
    const box = { x: at[0] - 9, y: at[1] - row / 2, wide: 18, tall: row };
    const text = `Host ${hop.host}: ${hop.blocks} blocks of ${frame.streams[hop.partner]} are met`;
    pen.target(box, `host:${hop.host}`, text);
  }
}
