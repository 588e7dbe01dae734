// The map of a ring: a sector a node, a lane a stream; the longer an arc, the more rows a node holds.
import type { RingFrame, RingMove, RingSlice } from "../../frames.ts";
import { CanvasMap, type Detail, numberIn, type Pair } from "../base/canvas_map.ts";
import { earlier, records, sum } from "../base/columns.ts";
import { count, several, shareOf } from "../base/format.ts";
import { along, mix, type Point, squareAt, toward } from "../base/geometry.ts";
import { SMALL } from "../base/pen.ts";
import { hue } from "../base/theme.ts";

const [LABEL, GAP] = [46, 0.02];
const NUMBER = { size: 11, bold: true, align: "center" } as const;

/** The first and the last angle of a place of the ring, clockwise from the top. */
export function span(place: number, places: number): [number, number] {
  const step = (2 * Math.PI) / Math.max(1, places);
  const [from, gap] = [place * step - Math.PI / 2, Math.min(GAP, step / 8)];
  return [from + gap, from + step - gap];
}

/** The angle at which the number of a slice ends: in the free part of its lane, or in its arc behind
 * the dots, which end at ``start``; undefined if neither has room for it. */
export function endOfNumber([start, end, to]: [number, number, number], wide: number) {
  if (to - Math.max(start, end) > wide) return to;
  return end - start > wide ? end : undefined;
}

/** The text about a node in the inspector. */
export function inspectRing(frame: RingFrame, selected: string): Detail | undefined {
  const node = numberIn("host", selected);
  const place = frame.nodes.indexOf(node);
  if (place < 0) return undefined;
  const pairs: Pair[] = [];
  for (const { stream, rows, retention, ...slice } of records(frame.slices)) {
    const long = retention ? `, ${retention} of its window` : "";
    if (slice.node === node) pairs.push([`rows of ${frame.streams[stream]}${long}`, count(rows)]);
  }
  for (const { stream, source, target, rows } of records(frame.moves)) {
    if (source !== node && target !== node) continue;
    pairs.push([`${count(rows)} of ${frame.streams[stream]} move`, `${source} → ${target}`]);
  }
  const words = `place ${place + 1} of ${frame.nodes.length} on the ring`;
  return { title: `Node ${node}`, words, pairs };
}

export class RingView extends CanvasMap<RingFrame> {
  /** The radii of the ring, and the width of a stream's lane. */
  private ring = { centre: [0, 0] as Point, inner: 0, outer: 0, depth: 0 };

  protected tell({ nodes, streams, moves }: RingFrame): void {
    const title = "Each window lies round the ring, the youngest rows at its head";
    const nodesInOrder = `${several(nodes.length, "node")} in ring order`;
    this.head(nodesInOrder, title, ". New rows visit every node once.");
    const windows = streams.map((name, stream) => ({ stream, text: `window of ${name}` }));
    this.signs([...windows, { text: "arc: rows held" }, { text: "● head" }, { text: "○ tail" }]);
    const resized = moves.reason.includes("resized");
    const why = resized ? "the ring was resized" : "rows age from slice to slice";
    const moved = `${count(sum(moves.rows))} rows move`;
    if (moves.rows.length) this.foot("", "In this batch ", moved, `: ${why}`);
    else this.foot("No rows move in this batch");
  }

  protected paint(frame: RingFrame): void {
    const { pen, share } = this;
    const [x, y] = [pen.wide / 2, pen.tall / 2];
    const outer = Math.max(60, Math.min(x - LABEL, y - 20));
    const [inner, depth] = [outer * 0.46, (outer * 0.54) / frame.streams.length];
    this.ring = { centre: [x, y], outer, inner, depth };
    for (const [place, node] of frame.nodes.entries()) this.paintNode(node, place);
    const then = earlier(this.before?.slices, ({ stream, node }) => `${stream} ${node}`);
    for (const slice of records(frame.slices)) {
      this.paintSlice(slice, mix(then(slice).rows, slice.rows, share));
    }
    for (const stream of frame.streams.keys()) this.paintEnds(frame, stream);
    const pairs = Map.groupBy(records(frame.moves), ({ source, target }) => `${source} ${target}`);
    for (const moves of pairs.values()) this.paintArrow(moves);
    pen.text(count(sum(frame.rows)), x, y - 8, { ...NUMBER, size: 20 });
    pen.text("rows held", x, y + 12, { ...SMALL, align: "center" });
  }

  /** The middle of a stream's lane. */
  private lane = (stream: number): number => this.ring.outer - (stream + 0.5) * this.ring.depth;

  /** The angles of a node; undefined if it has no place. */
  private spanOf(node = -1): [number, number] | undefined {
    const place = this.frame.nodes.indexOf(node);
    return place < 0 ? undefined : span(place, this.frame.nodes.length);
  }

  /** A sector with its label, and its frame if it is selected or has failed. */
  private paintNode(node: number, place: number): void {
    const [pen, { centre, inner, outer, depth }] = [this.pen, this.ring];
    const { nodes, slices, streams } = this.frame;
    const name = `host:${node}`;
    const ends = span(place, nodes.length);
    const [from, to] = ends;
    const held = records(slices).filter((slice) => slice.node === node);
    const each = held.map(({ stream, rows }) => `${count(rows)} of ${streams[stream]}`);
    const text = `Node ${node}: rows held: ${each.join(", ") || "none"}`;
    streams.forEach((_, stream) => {
      const radius = this.lane(stream);
      pen.arc(centre, radius, ends, { stroke: "panel", width: depth - 4 });
      const steps = Math.max(1, Math.floor(((to - from) * radius) / depth));
      for (let k = 0; k < steps; k++) {
        const middle = toward(centre, mix(from, to, (k + 0.5) / steps), radius);
        pen.targets.push({ box: squareAt(middle, depth / 2), name, text });
      }
    });
    for (const radius of [outer + 2, inner - 2]) {
      pen.arc(centre, radius, ends, pen.outline(name) ?? {});
    }
    const middle = (from + to) / 2;
    const side = Math.cos(middle);
    const align = Math.abs(side) < 0.3 ? "center" : side > 0 ? "left" : "right";
    const label = nodes.length <= 24 && pen.wide > 500 ? `node ${node}` : `${node}`;
    const style = { ...this.named(name), align, isMinor: true } as const;
    pen.text(label, ...toward(centre, middle, outer + 12), style);
  }

  private paintSlice({ stream, node, rows }: RingSlice, moving: number): void {
    const [pen, { centre, depth }] = [this.pen, this.ring];
    const radius = this.lane(stream);
    const [from, to] = this.spanOf(node) ?? [0, 0];
    const end = mix(from, to, Math.min(1, shareOf(moving, this.frame.scale_max)));
    const width = depth - 4;
    if (end > from) pen.arc(centre, radius, [from, end], { stroke: hue(stream), width });
    const wide = (Math.max(13, pen.width(count(rows), 11, true)) + 10) / radius;
    const start = from + (this.dotsAt(stream, node).length * (2 * this.dot + 8)) / radius;
    const last = endOfNumber([start, end, to], wide);
    if (depth < 17 || !rows || last === undefined) return;
    const style = { ...NUMBER, colour: last > end ? "ink" : "panel" } as const;
    pen.text(count(rows), ...toward(centre, last - wide / 2, radius), style);
  }

  /** The radius of a dot. */
  private get dot(): number {
    return Math.min(5, this.ring.depth / 4);
  }

  /** The dots of a stream at a node, full for the head and empty for the tail. */
  private dotsAt(stream: number, node: number): boolean[] {
    const ends = [this.frame.heads, this.frame.tails];
    return ends.flatMap((nodes, k) => (nodes[stream] === node ? k === 0 : []));
  }

  /** The head and the tail of a stream, and its new rows on their way round from the head. */
  private paintEnds({ heads, nodes, received }: RingFrame, stream: number): void {
    const { pen, time, dot } = this;
    const { centre, inner } = this.ring;
    const radius = this.lane(stream);
    for (const [place, node] of nodes.entries()) {
      const [from] = span(place, nodes.length);
      for (const [k, isFull] of this.dotsAt(stream, node).entries()) {
        const shift = dot + 4 + k * (2 * dot + 8);
        const at = toward(centre, from + shift / radius, radius);
        pen.dot(at, dot, "ink", "panel", 2);
        if (!isFull) pen.dot(at, dot - 2, "panel");
      }
    }
    const ends = this.spanOf(heads[stream]);
    if (time >= 1 || !received[stream] || !ends) return;
    const angle = sum(ends) / 2 + 2 * Math.PI * time;
    const box = squareAt(toward(centre, angle, inner - 8 - 9 * (stream % 3)), 4);
    pen.box(box, { fill: hue(stream), stroke: "panel", round: 2 });
  }

  /** An arrow inside the ring, with rows on it. */
  private paintArrow(moves: RingMove[]): void {
    const [pen, { centre, inner }, [first]] = [this.pen, this.ring, moves];
    if (!first) return;
    const end = (node: number) => toward(centre, sum(this.spanOf(node) ?? []) / 2, inner - 12);
    const [a, b] = [end(first.source), end(first.target)];
    pen.line([a, b], "muted", 1.5, first.reason === "resized" ? [4, 3] : []);
    const back = Math.atan2(a[1] - b[1], a[0] - b[0]);
    pen.line([toward(b, back + 0.45, 8), b, toward(b, back - 0.45, 8)], "muted", 1.5);
    moves.forEach(({ stream }, k) => {
      const on = Math.max(0, Math.min(1, this.share * 0.8 - 0.1 * k + 0.1));
      pen.dot(along(a, b, on), 5, hue(stream), "panel");
    });
  }
}
