// Draws a PSP ring: one annulus for each stream, one sector for each node.
import { Annulus, CENTRE, type Point, point } from "../base/annulus.ts";
import { cycled } from "../base/colors.ts";
import { records } from "../base/columns.ts";
import { count } from "../base/format.ts";
import { legend, lines, make, pair, titled } from "../base/svg.ts";
import type { Palette, RingEnds, RingFrame, RingMove } from "../frames.ts";

const INNER = 96;
const OUTER = 205;
const WIDE = 860;
const TALL = 470;
const RIGHT = { x: 490, bar: 260 };
const BELOW = 426;
const WORDS = [
  "H head: new tuples come in · T tail: the oldest leave",
  "dots: tuples (coloured), intermediate results (grey)",
  "squares: state on its way; dashed: the ring was resized",
];

type Colour = (stream: number) => string;

export function draw(box: HTMLElement, frame: RingFrame, palette: Palette, glide: number): void {
  const [svg, right] = pair(box, frame, RIGHT.x - 16, WIDE, TALL);
  const colour = (stream: number) => cycled(palette.streams, stream);
  const ring = new Annulus(frame.nodes, frame.streams.length, INNER, OUTER, 0.03);
  drawSectors(svg, ring);
  drawSlices(svg, ring, frame, colour);
  frame.ends.forEach((ends, stream) => {
    drawEnds(svg, ring, ends, stream, frame.streams[stream] ?? "", colour(stream));
  });
  drawFlights(svg, ring, frame, colour, glide);
  for (const move of frame.moves) drawMove(svg, ring, move, frame.streams, colour, glide);
  drawCentre(svg, frame);
  drawLoads(right, frame, palette, colour);
}

function drawSectors(svg: Element, ring: Annulus): void {
  for (let node = 0; node < ring.hosts; node++) {
    const [x, y] = point(ring.middle(node), OUTER + 14);
    make(svg, "text", { x, y: y + 4, "text-anchor": "middle", class: "strong" }, node);
    for (let stream = 0; stream < ring.streams; stream++) {
      make(svg, "path", { d: ring.sector(stream, node), class: "rule", "stroke-width": 1 });
    }
  }
}

function drawSlices(svg: Element, ring: Annulus, frame: RingFrame, colour: Colour): void {
  for (const { stream, node, rows, share, retention: lasts } of records(frame.slices)) {
    const piece = make(svg, "path", {
      d: ring.sector(stream, node, Math.max(0.06, share)),
      fill: colour(stream),
      "fill-opacity": 0.35 + 0.5 * share,
      "data-slice": `${stream}:${node}`,
    });
    const slice = lasts ? `, slice of ${lasts}` : "";
    titled(piece, `${frame.streams[stream]} on node ${node}: ${count(rows)} tuples stored${slice}`);
  }
}

/** H and T; where both are on one node they stand side by side. */
function drawEnds(
  svg: Element,
  ring: Annulus,
  { head, tail }: RingEnds,
  stream: number,
  name: string,
  colour: string,
): void {
  const [inner, outer] = ring.lane(stream);
  const radius = (inner + outer) / 2;
  const aside = head === tail ? ring.step / 5 : 0;
  if (tail !== null) {
    const at = point(ring.middle(tail) + aside, radius);
    drawMark(
      svg,
      at,
      "T",
      { fill: "var(--braid-bg)", stroke: colour },
      `tail of ${name}: node ${tail}`,
    );
  }
  if (head !== null) {
    const at = point(ring.middle(head) - aside, radius);
    drawMark(
      svg,
      at,
      "H",
      { fill: colour, stroke: "var(--braid-fg)" },
      `head of ${name}: node ${head}`,
    );
  }
}

function drawMark(
  svg: Element,
  [x, y]: Point,
  letter: "H" | "T",
  paint: { fill: string; stroke: string },
  title: string,
): void {
  const group = titled(make(svg, "g", {}), title);
  make(group, "circle", { cx: x, cy: y, r: 8.5, "stroke-width": 2, ...paint });
  const place = { x, y: y + 4, "text-anchor": "middle", style: "font-size:11px" };
  const text = make(group, "text", { ...place, class: "strong" }, letter);
  if (letter === "H") text.style.fill = "#ffffff";
}

/** How many dots stand for so many tuples: the square root of their number, 14 at most. */
export const dots = (tuples: number): number => Math.min(14, Math.ceil(Math.sqrt(tuples)));

/** New tuples and intermediate results go round, on circles of their own. */
function drawFlights(
  svg: Element,
  ring: Annulus,
  frame: RingFrame,
  colour: Colour,
  glide: number,
): void {
  const probes = frame.probes.map((tuples, stream) => {
    return { tuples, fill: colour(stream), from: frame.ends[stream]?.head ?? 0 };
  });
  const flights = [...probes, { tuples: frame.partial, fill: "var(--braid-muted)", from: 0 }];
  flights.forEach(({ tuples, fill, from }, k) => {
    const radius = INNER - 9 - 7 * k;
    if (radius < 40 || !dots(tuples)) return;
    const circle = { cx: CENTRE, cy: CENTRE, r: radius, "stroke-dasharray": "1 4" };
    make(svg, "circle", { ...circle, class: "rule" });
    const group = make(svg, "g", {});
    for (let i = 0; i < dots(tuples); i++) {
      const [cx, cy] = point(ring.middle(from) + (i * 2 * Math.PI) / dots(tuples), radius);
      make(group, "circle", { cx, cy, r: 2.6, fill });
    }
    if (glide) turn(group, glide);
  });
}

function turn(group: SVGElement, glide: number): void {
  const transformOrigin = `${CENTRE}px ${CENTRE}px`;
  const frames = ["rotate(0deg)", "rotate(360deg)"];
  group.animate(
    frames.map((transform) => ({ transform, transformOrigin })),
    { duration: glide },
  );
}

/** The short way round from node to node, in radians: positive is clockwise. */
export const shortWay = (source: number, target: number, step: number): number =>
  (((target - source) * step + 3 * Math.PI) % (2 * Math.PI)) - Math.PI;

/** Start, control point and end of a move's path: along the ring if near, else past the centre. */
export function bent(ring: Annulus, stream: number, source: number, target: number): Curve {
  const [inner, outer] = ring.lane(stream);
  const radius = (inner + outer) / 2;
  const half = shortWay(source, target, ring.step) / 2;
  const near = Math.abs(half) < 0.8;
  const reach = near ? radius / Math.cos(half) : INNER / 3;
  return [
    point(ring.middle(source), radius),
    point(ring.middle(source) + half, reach),
    point(ring.middle(target), radius),
  ];
}

export type Curve = [Point, Point, Point];

/** A point of a quadratic Bézier curve, from 0 (start) to 1 (end). */
export function along([start, control, end]: Curve, share: number): Point {
  const rest = 1 - share;
  const mixed = (k: 0 | 1) =>
    rest ** 2 * start[k] + 2 * share * rest * control[k] + share ** 2 * end[k];
  return [mixed(0), mixed(1)];
}

/** State that moves from node to node. */
function drawMove(
  svg: Element,
  ring: Annulus,
  { stream, source, target, rows, reason: why }: RingMove,
  streams: string[],
  colour: Colour,
  glide: number,
): void {
  const curve = bent(ring, stream, source, target);
  const [start, control, end] = curve.map((at) => at.join(" "));
  const stroke = colour(stream);
  const line = { fill: "none", stroke, "stroke-width": 1.4, opacity: 0.8 };
  const dash = why === "aged" ? "none" : "4 3";
  make(svg, "path", { d: `M${start}Q${control} ${end}`, ...line, "stroke-dasharray": dash });
  const square = { x: -5, y: -5, width: 10, height: 10, fill: "var(--braid-bg)" };
  const chip = make(svg, "rect", { ...square, stroke, "stroke-width": 2 });
  titled(
    chip,
    `${count(rows)} tuples of ${streams[stream]}: node ${source} → node ${target}, ${why}`,
  );
  const at = (share: number) => {
    const [x, y] = along(curve, share);
    return `translate(${x}px, ${y}px)`;
  };
  chip.style.transform = at(0.6);
  const shares = [0, 0.2, 0.4, 0.6, 0.8, 1];
  if (glide) {
    chip.animate(
      shares.map((share) => ({ transform: at(share) })),
      { duration: glide },
    );
  }
}

function drawCentre(svg: Element, frame: RingFrame): void {
  const texts: [string, string][] = [
    [frame.batch, "strong"],
    [`${count(frame.stored)} stored`, "muted"],
    [`${count(frame.sent)} sent on`, "muted"],
  ];
  lines(svg, texts, CENTRE, CENTRE - 10, 16, "middle");
}

/** At the right: streams with their colours, then what each node does. */
function drawLoads(svg: Element, frame: RingFrame, palette: Palette, colour: Colour): void {
  const { x, bar } = RIGHT;
  const entries = frame.streams.map((name, stream) => {
    const live = count(frame.live[stream] ?? 0);
    const text = `${name}: ${live} tuples, window ${frame.lengths[stream]}`;
    return { text, colour: colour(stream) };
  });
  legend(svg, entries, x, 20, 18);
  const top = 36 + 18 * entries.length;
  make(svg, "text", { x, y: top, class: "strong" }, frame.measure);
  const most = Math.max(1, ...frame.loads);
  const tall = height(frame.loads.length, top);
  frame.loaded.forEach((node, k) => {
    const load = frame.loads[k] ?? 0;
    const y = top + 10 + k * tall;
    const fill = cycled(palette.hosts, node);
    drawLoad(svg, { node, load, long: (bar * load) / most, fill }, y, tall);
  });
  lines(
    svg,
    WORDS.map((text) => [text, "muted"]),
    x,
    BELOW,
    16,
  );
}

/** How tall a bar is, so that all of them end above the words. */
export const height = (bars: number, top: number): number =>
  Math.min(22, (BELOW - 24 - top) / Math.max(1, bars));

function drawLoad(
  svg: Element,
  { node, load, long, fill }: { node: number; load: number; long: number; fill: string },
  y: number,
  tall: number,
): void {
  const { x } = RIGHT;
  const group = titled(make(svg, "g", {}), `node ${node}: ${count(load)}`);
  const low = y + tall / 2 + 4;
  const size = (most: number) => `font-size:${Math.min(most, tall)}px`;
  make(group, "text", { x: x + 16, y: low, "text-anchor": "end", style: size(12) }, node);
  const box = { x: x + 22, y: y + 2, width: Math.max(0.5, long), height: Math.max(2, tall - 4) };
  make(group, "rect", { ...box, fill });
  make(group, "text", { x: x + 28 + long, y: low, style: size(11), class: "muted" }, count(load));
}
