// The map of a ring: a sector a node, a lane a stream; the longer an arc, the more rows a node holds.
import type { RingFrame, RingSlice } from "../../frames.ts";
import { CanvasMap, type Detail, numberIn, type Pair } from "../base/canvas_map.ts";
import { earlier, records, sum } from "../base/columns.ts";
import { count, several, shareOf } from "../base/format.ts";
import { fitted, middle, mix, type Point, sectorOf, squareAt, toward } from "../base/geometry.ts";
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
    this.signs(
      streams.map((name) => `window of ${name}`),
      ["arc: rows held", "● head", "○ tail"],
    );
    const resized = moves.reason.includes("resized");
    const why = resized ? "the ring was resized" : "rows age from slice to slice";
    const moved = `${count(sum(moves.rows))} rows move`;
    if (moves.rows.length) this.foot("", "In this batch ", moved, `: ${why}`);
    else this.foot("No rows move in this batch");
  }

  protected paint(frame: RingFrame): void {
    const { pen, share } = this;
    const [wide, tall] = [pen.wide - 2 * LABEL, pen.tall - 40];
    const around = fitted(1, 1, { x: LABEL, y: 20, wide, tall });
    const [centre, outer] = [middle(around), Math.max(60, around.wide / 2)];
    const [inner, depth] = [outer * 0.46, (outer * 0.54) / frame.streams.length];
    this.ring = { centre, outer, inner, depth };
    for (const [place, node] of frame.nodes.entries()) this.paintNode(node, place);
    const then = earlier(this.before?.slices, ({ stream, node }) => `${stream} ${node}`);
    for (const slice of records(frame.slices)) {
      this.paintSlice(slice, mix(then(slice).rows, slice.rows, share));
    }
    for (const node of frame.nodes) {
      const [style, ends] = [pen.outline(`host:${node}`), this.spanOf(node)];
      if (!style?.stroke || !ends) continue;
      const sector = sectorOf(centre, [inner - 2, outer + 2], ends);
      pen.line(sector, style.stroke, style.width, [], style.alpha);
    }
    for (const stream of frame.streams.keys()) this.paintNew(frame, stream);
    const end = (node: number) => toward(centre, sum(this.spanOf(node) ?? []) / 2, inner - 12);
    for (const { source, target, stream } of records(frame.moves)) {
      this.paintMove(end(source), end(target), hue(stream), share - 0.1 * stream);
    }
    const [x, y] = centre;
    pen.text(count(sum(frame.rows)), x, y - 8, { ...NUMBER, size: 20, ground: "bg" });
    pen.text("rows held", x, y + 12, { ...SMALL, align: "center", ground: "bg" });
  }

  /** The middle of a stream's lane. */
  private lane = (stream: number): number => this.ring.outer - (stream + 0.5) * this.ring.depth;

  /** The angles of a node; undefined if it has no place. */
  private spanOf(node = -1): [number, number] | undefined {
    const place = this.frame.nodes.indexOf(node);
    return place < 0 ? undefined : span(place, this.frame.nodes.length);
  }

  /** A sector with its label. */
  private paintNode(node: number, place: number): void {
    const [pen, { centre, outer, depth }] = [this.pen, this.ring];
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
    const middle = (from + to) / 2;
    const side = Math.cos(middle);
    const align = Math.abs(side) < 0.3 ? "center" : side > 0 ? "left" : "right";
    const label = nodes.length <= 24 && pen.wide > 500 ? `node ${node}` : `${node}`;
    const style = { ...this.named(name), align, isMinor: true } as const;
    pen.text(label, ...toward(centre, middle, outer + 12), style);
  }

  /** The rows of a stream that a node holds, with the head and the tail of the stream. */
  private paintSlice({ stream, node, rows }: RingSlice, moving: number): void {
    const [pen, { centre, depth }, { heads, tails }] = [this.pen, this.ring, this.frame];
    const radius = this.lane(stream);
    const [from, to] = this.spanOf(node) ?? [0, 0];
    const end = mix(from, to, Math.min(1, shareOf(moving, this.frame.scale_max)));
    if (end > from) pen.arc(centre, radius, [from, end], { stroke: hue(stream), width: depth - 4 });
    const dot = Math.min(5, depth / 4);
    let start = from;
    for (const nodes of [heads, tails]) {
      if (nodes[stream] !== node) continue;
      const at = toward(centre, start + (dot + 4) / radius, radius);
      pen.dot(at, dot, "ink", "panel", 2);
      if (nodes === tails) pen.dot(at, dot - 2, "panel");
      start += (2 * dot + 8) / radius;
    }
    const wide = (Math.max(13, pen.width(count(rows), 11, true)) + 10) / radius;
    const last = endOfNumber([start, end, to], wide);
    if (depth < 17 || !rows || last === undefined) return;
    const style = { ...NUMBER, colour: last > end ? "ink" : "panel" } as const;
    pen.text(count(rows), ...toward(centre, last - wide / 2, radius), style);
  }

  /** The new rows of a stream on their way round from its head. */
  private paintNew({ heads, received }: RingFrame, stream: number): void {
    const ends = this.spanOf(heads[stream]);
    if (this.time >= 1 || !received[stream] || !ends) return;
    const angle = sum(ends) / 2 + 2 * Math.PI * this.time;
    const { centre, inner } = this.ring;
    const box = squareAt(toward(centre, angle, inner - 8 - 9 * (stream % 3)), 4);
    this.pen.box(box, { fill: hue(stream), stroke: "panel", round: 2 });
  }
}
