// The map of a ring: a sector a node, a lane a stream; the longer an arc, the more rows a node holds.
import type { RingFrame, RingMove, RingSlice } from "../../frames.ts";
import { CanvasMap, type Detail, numberIn, type Pair } from "../base/canvas_map.ts";
import { records } from "../base/columns.ts";
import { count } from "../base/format.ts";
import { along, grown, mix, type Point, SMALL } from "../base/pen.ts";
import { type Colour, hue } from "../base/theme.ts";

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
    .map(({ stream, rows, retention }): Pair => {
      const long = retention ? `, ${retention} of its window` : "";
      return [`rows of ${frame.streams[stream]}${long}`, count(rows)];
    });
  const moved = records(frame.moves)
    .filter(({ source, target }) => source === node || target === node)
    .map(({ stream, source, target, rows }): Pair => {
      return [`${count(rows)} of ${frame.streams[stream]} move`, `${source} → ${target}`];
    });
  const words = `place ${place + 1} of ${frame.nodes.length} on the ring`;
  return { title: `Node ${node}`, words, pairs: [...held, ...moved] };
}

const keyOf = ({ stream, node }: RingSlice): string => `${stream} ${node}`;

export class RingView extends CanvasMap<RingFrame> {
  private centre: Point = [0, 0];
  private inner = 0;
  private outer = 0;
  /** The width of a stream's lane. */
  private depth = 0;

  protected tell({ nodes, streams, moves }: RingFrame): void {
    this.head(
      `${nodes.length} node${nodes.length === 1 ? "" : "s"} in ring order`,
      "Each window lies round the ring, the youngest rows at its head",
      ". New rows visit every node once.",
    );
    const windows = streams.map((name, stream) => ({ stream, text: `window of ${name}` }));
    this.signs([...windows, { text: "arc: rows held" }, { text: "● head" }, { text: "○ tail" }]);
    const moved = moves.rows.reduce((sum, rows) => sum + rows, 0);
    const resized = moves.reason.includes("resized");
    const why = resized ? "the ring was resized" : "rows age from slice to slice";
    if (moved) this.foot("", "In this batch ", `${count(moved)} rows move`, `: ${why}`);
    else this.foot("No rows move in this batch");
  }

  protected paint(frame: RingFrame): void {
    const { pen, share } = this;
    this.centre = [pen.wide / 2, pen.tall / 2];
    this.outer = Math.max(60, Math.min(pen.wide / 2 - LABEL, pen.tall / 2 - 20));
    this.inner = this.outer * 0.46;
    this.depth = (this.outer - this.inner) / frame.streams.length;
    const before = records((this.before ?? frame).slices);
    const then = new Map(before.map((slice) => [keyOf(slice), slice.rows]));
    frame.nodes.forEach((node, place) => {
      this.paintNode(node, place);
    });
    for (const slice of records(frame.slices)) {
      this.paintSlice(slice, mix(then.get(keyOf(slice)) ?? slice.rows, slice.rows, share));
    }
    this.paintEnds(frame);
    if (this.time < 1) this.paintProbes(frame);
    const pairs = Map.groupBy(records(frame.moves), ({ source, target }) => `${source} ${target}`);
    for (const moves of pairs.values()) this.paintArrow(moves);
    const total = count(frame.rows.reduce((sum, rows) => sum + rows, 0));
    const [x, y] = this.centre;
    pen.text(total, x, y - 8, { size: 20, bold: true, align: "center" });
    pen.text("rows held", x, y + 12, { ...SMALL, align: "center" });
  }

  /** The middle of a stream's lane. */
  private lane(stream: number): number {
    return this.outer - (stream + 0.5) * this.depth;
  }

  /** The angles of a node; undefined if it has no place. */
  private spanOf(node: number | undefined): [number, number] | undefined {
    const { nodes } = this.frame;
    const place = nodes.indexOf(node ?? -1);
    return place < 0 ? undefined : span(place, nodes.length);
  }

  private arc(radius: number, [from, to]: [number, number], colour: Colour, width: number): void {
    this.pen.arc(this.centre, radius, [TOP + from, TOP + to], colour, width);
  }

  /** A sector with its label, and its frame if it is selected. */
  private paintNode(node: number, place: number): void {
    const { pen, centre, inner, outer, depth } = this;
    const { nodes, streams } = this.frame;
    const bold = this.selected === `host:${node}`;
    const ends = span(place, nodes.length);
    const [from, to] = ends;
    streams.forEach((_, stream) => {
      const radius = this.lane(stream);
      this.arc(radius, ends, "panel", depth - 4);
      const steps = Math.max(1, Math.floor(((to - from) * radius) / depth));
      for (let k = 0; k < steps; k++) {
        const [x, y] = at(centre, mix(from, to, (k + 0.5) / steps), radius);
        const box = grown({ x, y, wide: 0, tall: 0 }, depth / 2);
        pen.target(box, `host:${node}`, this.textOf(node));
      }
    });
    for (const radius of bold ? [outer + 2, inner - 2] : []) this.arc(radius, ends, "accent", 2.5);
    for (const side of bold ? ends : []) {
      pen.line([at(centre, side, inner - 2), at(centre, side, outer + 2)], "accent", 2.5);
    }
    const every = Math.ceil(18 / ((to - from) * outer));
    if (!bold && (place % every || (nodes.length - place < every && place))) return;
    const middle = (from + to) / 2;
    const [x, y] = at(centre, middle, outer + 12);
    const side = Math.sin(middle);
    const align = Math.abs(side) < 0.3 ? "center" : side > 0 ? "left" : "right";
    const text = nodes.length <= 24 && pen.wide > 500 ? `node ${node}` : `${node}`;
    pen.text(text, x, y, { align, bold, colour: bold ? "accent" : "ink" });
  }

  private textOf(node: number): string {
    const { slices, streams } = this.frame;
    const held = records(slices).filter((slice) => slice.node === node);
    const each = held.map(({ stream, rows }) => `${count(rows)} of ${streams[stream]}`);
    return `Node ${node}: rows held: ${each.join(", ") || "none"}`;
  }

  private paintSlice(slice: RingSlice, rows: number): void {
    const { pen, depth, frame } = this;
    const radius = this.lane(slice.stream);
    const [from, to] = this.spanOf(slice.node) ?? [0, 0];
    const end = mix(from, to, frame.scale_max ? Math.min(1, rows / frame.scale_max) : 0);
    if (end > from) this.arc(radius, [from, end], hue(slice.stream), depth - 4);
    const text = count(slice.rows);
    const half = (Math.max(13, pen.width(text, 11, true)) / 2 + 5) / radius;
    if (depth < 17 || !slice.rows) return;
    const free = to - end > 2 * half;
    if (!free && end - from < 2 * half + 18 / radius) return;
    const [x, y] = at(this.centre, (free ? to : end) - half, radius);
    const colour = free ? "ink" : "panel";
    pen.text(text, x, y, { size: 11, bold: true, align: "center", colour });
  }

  /** The head of each stream and its tail. */
  private paintEnds({ streams, heads, tails }: RingFrame): void {
    const size = Math.min(5, this.depth / 4);
    streams.forEach((_, stream) => {
      const radius = this.lane(stream);
      const put = (node: number | undefined, shift: number, fill: Colour, stroke: Colour) => {
        const ends = this.spanOf(node);
        const place = at(this.centre, (ends?.[0] ?? 0) + shift / radius, radius);
        if (ends) this.pen.dot(place, size, fill, stroke, 2);
      };
      const same = heads[stream] === tails[stream];
      put(tails[stream], same ? 3 * size + 10 : size + 4, "panel", "ink");
      put(heads[stream], size + 4, "ink", "panel");
    });
  }

  /** New rows on their way round, each from the head of its stream. */
  private paintProbes({ streams, heads, received }: RingFrame): void {
    streams.forEach((_, stream) => {
      const ends = this.spanOf(heads[stream]);
      if (!received[stream] || !ends) return;
      const angle = (ends[0] + ends[1]) / 2 + 2 * Math.PI * this.time;
      const [x, y] = at(this.centre, angle, this.inner - 8 - 9 * (stream % 3));
      const box = { x: x - 4, y: y - 4, wide: 8, tall: 8 };
      this.pen.box(box, { fill: hue(stream), stroke: "panel", round: 2 });
    });
  }

  /** An arrow inside the ring, with rows on it. */
  private paintArrow(moves: RingMove[]): void {
    const { pen } = this;
    const [first] = moves;
    if (!first) return;
    const end = (node: number) => {
      const [from, to] = this.spanOf(node) ?? [0, 0];
      return at(this.centre, (from + to) / 2, this.inner - 12);
    };
    const [a, b] = [end(first.source), end(first.target)];
    pen.line([a, b], "muted", 1.5, first.reason === "resized" ? [4, 3] : []);
    const way = Math.atan2(b[1] - a[1], b[0] - a[0]);
    const barb = (turn: number): Point => [
      b[0] - 8 * Math.cos(way + turn),
      b[1] - 8 * Math.sin(way + turn),
    ];
    pen.line([barb(0.45), b, barb(-0.45)], "muted", 1.5);
    moves.forEach(({ stream }, k) => {
      const on = Math.max(0, Math.min(1, this.share * 0.8 - 0.1 * k + 0.1));
      pen.dot(along(a, b, on), 5, hue(stream), "panel");
    });
  }
}
