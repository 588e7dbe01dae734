// The map of a ring: a sector a node, a lane a stream; the longer an arc, the more rows a node holds.
import type { RingFrame, RingMove, RingSlice } from "../../frames.ts";
import { CanvasMap, numberIn, type Shown } from "../base/canvas_map.ts";
import { records } from "../base/columns.ts";
import { count } from "../base/format.ts";
import { eased, mix, type Point } from "../base/pen.ts";
import type { Detail } from "../cockpit/details.ts";

const [LABEL, GAP] = [46, 0.02];
const TOP = -Math.PI / 2;

export const at = ([x, y]: Point, angle: number, radius: number): Point => [
  x + radius * Math.cos(TOP + angle),
  y + radius * Math.sin(TOP + angle),
];

/** The first and the last angle of a place of the ring, clockwise from the top. */
export function span(place: number, places: number): [number, number] {
  const step = (2 * Math.PI) / Math.max(1, places);
  const gap = Math.min(GAP, step / 8);
  return [place * step + gap, (place + 1) * step - gap];
}

/** The text about a node in the inspector. */
export function inspectRing(frame: RingFrame, selected: string): Detail | undefined {
  const node = numberIn("host", selected);
  const place = frame.nodes.indexOf(node);
  if (place < 0) return undefined;
  const held = records(frame.slices)
    .filter((slice) => slice.node === node)
    .map(({ stream, rows, retention }): [string, string] => {
      const long = retention ? `, ${retention} of its window` : "";
      return [`rows of ${frame.streams[stream]}${long}`, count(rows)];
    });
  const moved = records(frame.moves)
    .filter(({ source, target }) => source === node || target === node)
    .map(({ stream, source, target, rows }): [string, string] => [
      `${count(rows)} of ${frame.streams[stream]} move`,
      `${source} → ${target}`,
    ]);
  return {
    title: `Node ${node}`,
    words: `place ${place + 1} of ${frame.nodes.length} on the ring`,
    pairs: [...held, ...moved],
  };
}

interface Ring {
  centre: Point;
  inner: number;
  outer: number;
  lane: (stream: number) => number;
  depth: number;
}

export class RingView extends CanvasMap<RingFrame> {
  protected tell(frame: RingFrame): void {
    const { nodes, streams } = frame;
    this.head(
      `${nodes.length} node${nodes.length === 1 ? "" : "s"} in ring order`,
      "Each window lies round the ring, the youngest rows at its head",
      ". New rows visit every node once.",
    );
    const windows = streams.map((name, stream) => ({ stream, text: `window of ${name}` }));
    this.signs([...windows, { text: "arc: rows held" }, { text: "● head" }, { text: "○ tail" }]);
    const moved = frame.moves.rows.reduce((sum, rows) => sum + rows, 0);
    const resized = frame.moves.reason.includes("resized");
    const why = resized ? "the ring was resized" : "rows age from slice to slice";
    if (moved) this.foot("", "In this batch ", `${count(moved)} rows move`, `: ${why}`);
    else this.foot("No rows move in this batch");
  }

  protected paint({ frame, before, time, selected }: Shown<RingFrame>): void {
    const { pen } = this;
    const outer = Math.max(60, Math.min(pen.wide / 2 - LABEL, pen.tall / 2 - 20));
    const inner = outer * 0.46;
    const depth = (outer - inner) / frame.streams.length;
    const lane = (stream: number) => outer - (stream + 0.5) * depth;
    const ring: Ring = { centre: [pen.wide / 2, pen.tall / 2], inner, outer, lane, depth };
    const slices = records(frame.slices);
    const then = new Map(records(before?.slices ?? frame.slices).map((s) => [key(s), s.rows]));
    frame.nodes.forEach((node, place) => {
      this.paintNode(frame, ring, node, place, selected === `host:${node}`);
    });
    for (const slice of slices) {
      const rows = mix(then.get(key(slice)) ?? slice.rows, slice.rows, eased(time));
      this.paintSlice(frame, ring, slice, rows);
    }
    this.paintEnds(frame, ring);
    if (time < 1) this.paintProbes(frame, ring, time);
    this.paintMoves(frame, ring, eased(time));
    const total = count(frame.rows.reduce((sum, rows) => sum + rows, 0));
    const [x, y] = ring.centre;
    pen.text(total, x, y - 8, { size: 20, bold: true, align: "center" });
    const small = { size: 11, align: "center", colour: pen.theme.shade("muted") } as const;
    pen.text("rows held", x, y + 12, small);
  }

  /** A sector with its label, and its frame if it is selected. */
  private paintNode(frame: RingFrame, ring: Ring, node: number, place: number, on: boolean): void {
    const { pen } = this;
    const { centre, inner, outer, depth, lane } = ring;
    const [from, to] = span(place, frame.nodes.length);
    const middle = (from + to) / 2;
    frame.streams.forEach((_, stream) => {
      const radius = lane(stream);
      const ground = pen.theme.shade("panel");
      pen.arc(centre, radius, TOP + from, TOP + to, ground, depth - 4);
      const steps = Math.max(1, Math.floor(((to - from) * radius) / depth));
      for (let k = 0; k < steps; k++) {
        const [x, y] = at(centre, mix(from, to, (k + 0.5) / steps), radius);
        const box = { x: x - depth / 2, y: y - depth / 2, wide: depth, tall: depth };
        pen.target(box, `host:${node}`, this.textOf(frame, node));
      }
    });
    if (on) {
      const colour = pen.theme.shade("accent");
      pen.arc(centre, outer + 2, TOP + from, TOP + to, colour, 2.5);
      pen.arc(centre, inner - 2, TOP + from, TOP + to, colour, 2.5);
      for (const side of [from, to]) {
        pen.line([at(centre, side, inner - 2), at(centre, side, outer + 2)], colour, 2.5);
      }
    }
    const every = Math.ceil(18 / ((to - from) * outer));
    if (!on && (place % every || (frame.nodes.length - place < every && place))) return;
    const [x, y] = at(centre, middle, outer + 12);
    const side = Math.sin(middle);
    const align = Math.abs(side) < 0.3 ? "center" : side > 0 ? "left" : "right";
    const text = frame.nodes.length <= 24 && pen.wide > 500 ? `node ${node}` : `${node}`;
    pen.text(text, x, y, { align, bold: on, colour: pen.theme.shade(on ? "accent" : "ink") });
  }

  private textOf({ slices, streams }: RingFrame, node: number): string {
    const held = records(slices).filter((slice) => slice.node === node);
    const each = held.map(({ stream, rows }) => `${count(rows)} of ${streams[stream]}`);
    return `Node ${node}: rows held: ${each.join(", ") || "none"}`;
  }

  private paintSlice(frame: RingFrame, ring: Ring, slice: RingSlice, rows: number): void {
    const { pen } = this;
    const { centre, depth } = ring;
    const radius = ring.lane(slice.stream);
    const [from, to] = span(frame.nodes.indexOf(slice.node), frame.nodes.length);
    const end = mix(from, to, frame.scale_max ? Math.min(1, rows / frame.scale_max) : 0);
    const hue = pen.theme.stream(slice.stream);
    if (end > from) pen.arc(centre, radius, TOP + from, TOP + end, hue, depth - 4);
    const text = count(slice.rows);
    const half = (Math.max(13, pen.width(text, 11, true)) / 2 + 5) / radius;
    if (depth < 17 || !slice.rows) return;
    const free = to - end > 2 * half;
    if (!free && end - from < 2 * half + 18 / radius) return;
    const [x, y] = at(centre, (free ? to : end) - half, radius);
    const colour = pen.theme.shade(free ? "ink" : "panel");
    pen.text(text, x, y, { size: 11, bold: true, align: "center", colour });
  }

  /** The head of each stream and its tail. */
  private paintEnds(frame: RingFrame, { centre, lane, depth }: Ring): void {
    const { pen } = this;
    const [ink, panel] = [pen.theme.shade("ink"), pen.theme.shade("panel")];
    const size = Math.min(5, depth / 4);
    frame.streams.forEach((_, stream) => {
      const radius = lane(stream);
      const put = (node: number | undefined, shift: number, fill: string, stroke: string) => {
        const place = frame.nodes.indexOf(node ?? -1);
        if (place < 0) return;
        const [from] = span(place, frame.nodes.length);
        pen.dot(at(centre, from + shift / radius, radius), size, fill, stroke, 2);
      };
      const same = frame.heads[stream] === frame.tails[stream];
      put(frame.tails[stream], same ? 3 * size + 10 : size + 4, panel, ink);
      put(frame.heads[stream], size + 4, ink, panel);
    });
  }

  /** New rows on their way round, each from the head of its stream. */
  private paintProbes(frame: RingFrame, { centre, inner }: Ring, time: number): void {
    const { pen } = this;
    frame.streams.forEach((_, stream) => {
      const place = frame.nodes.indexOf(frame.heads[stream] ?? -1);
      if (!frame.received[stream] || place < 0) return;
      const [from, to] = span(place, frame.nodes.length);
      const angle = (from + to) / 2 + 2 * Math.PI * time;
      const [x, y] = at(centre, angle, inner - 8 - 9 * (stream % 3));
      const box = { x: x - 4, y: y - 4, wide: 8, tall: 8 };
      const stroke = pen.theme.shade("panel");
      pen.box(box, { fill: pen.theme.stream(stream), stroke, round: 2 });
    });
  }

  /** Arrows inside the ring, with rows on them. */
  private paintMoves(frame: RingFrame, { centre, inner }: Ring, share: number): void {
    const pairs = Map.groupBy(records(frame.moves), ({ source, target }) => `${source} ${target}`);
    for (const moves of pairs.values()) this.paintArrow(frame, centre, inner, moves, share);
  }

  private paintArrow(
    frame: RingFrame,
    centre: Point,
    inner: number,
    moves: RingMove[],
    share: number,
  ): void {
    const { pen } = this;
    const [first] = moves;
    if (!first) return;
    const [a, b] = [first.source, first.target].map((node): Point => {
      const [from, to] = span(frame.nodes.indexOf(node), frame.nodes.length);
      return at(centre, (from + to) / 2, inner - 12);
    }) as [Point, Point];
    const ink = pen.theme.shade("muted");
    pen.line([a, b], ink, 1.5, first.reason === "resized" ? [4, 3] : []);
    const way = Math.atan2(b[1] - a[1], b[0] - a[0]);
    const barb = (turn: number): Point => [
      b[0] - 8 * Math.cos(way + turn),
      b[1] - 8 * Math.sin(way + turn),
    ];
    pen.line([barb(0.45), b, barb(-0.45)], ink, 1.5);
    moves.forEach(({ stream }, k) => {
      const on = Math.max(0, Math.min(1, share * 0.8 - 0.1 * k + 0.1));
      const dot: Point = [mix(a[0], b[0], on), mix(a[1], b[1], on)];
      pen.dot(dot, 5, pen.theme.stream(stream), pen.theme.shade("panel"));
    });
  }
}

const key = ({ stream, node }: RingSlice): string => `${stream} ${node}`;
