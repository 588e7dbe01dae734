// Draws the ring of a shared join: one annulus for each stream, one sector for each host, in it the
// pieces of logical slices that the host holds, young to old clockwise; beside it what hosts hold,
// and which queries are served.
import { Annulus, CENTRE, point, sector } from "../base/annulus.ts";
import { cycled } from "../base/colors.ts";
import { records } from "../base/columns.ts";
import { count, cut } from "../base/format.ts";
import { legend, lines, make, pair, titled } from "../base/svg.ts";
import type { Palette, SharedFrame, SharedPiece, SharedQuery, SharedStretch } from "../frames.ts";

const INNER = 86;
const OUTER = 208;
const WIDE = 900;
const RIGHT = 490;
const HALO = "paint-order: stroke; stroke: var(--braid-bg); stroke-width: 3px";
const WORDS: [string, string][] = [
  ["H head: new tuples come in, and age clockwise from slice to slice", "muted"],
  ["the fullest slice of each stream is drawn full", "muted"],
];

type Colour = (stream: number) => string;

export function draw(box: HTMLElement, frame: SharedFrame, palette: Palette): void {
  const size = sizes(frame.hosts, frame.streams.length, frame.queries.length);
  const [svg, right] = pair(box, frame, RIGHT - 16, WIDE, size.tall);
  const colour = (stream: number) => cycled(palette.streams, stream);
  drawRing(svg, frame, colour);
  const below = drawLoads(right, frame, colour, size.bar);
  drawServed(right, frame, colour, below + 34, size.row);
}

/** Heights of the picture, of a host's bar and of a query's row: fewer are drawn taller. */
export function sizes(hosts: number, streams: number, queries: number) {
  const bar = Math.max(9, Math.min(18, 130 / hosts));
  const row = Math.max(11, Math.min(15, 190 / queries));
  return { bar, row, tall: Math.max(494, 110 + 18 * streams + bar * hosts + row * queries) };
}

function drawRing(svg: Element, frame: SharedFrame, colour: Colour): void {
  const ring = new Annulus(frame.hosts, frame.streams.length, INNER, OUTER, 0.025);
  for (let host = 0; host < ring.hosts; host++) {
    const [x, y] = point(ring.middle(host), OUTER + 13);
    make(svg, "text", { x, y: y + 4, "text-anchor": "middle", class: "strong" }, host);
  }
  for (const pieces of bySector(records(frame.pieces)).values()) {
    pieces.forEach((piece, k) => {
      drawPiece(svg, ring, piece, k, pieces.length, frame.streams[piece.stream] ?? "", colour);
    });
  }
  for (const stretch of frame.stretches) {
    drawStretch(svg, ring, stretch, frame.streams[stretch.stream] ?? "", colour(stretch.stream));
  }
  drawCentre(svg, frame);
}

/** Pieces by stream and host, in their order. */
export function bySector(pieces: SharedPiece[]): Map<string, SharedPiece[]> {
  return Map.groupBy(pieces, ({ stream, host }) => `${stream}:${host}`);
}

function drawPiece(
  svg: Element,
  ring: Annulus,
  { stream, host, ages, rows, share, queries }: SharedPiece,
  place: number,
  of: number,
  name: string,
  colour: Colour,
): void {
  const [inner, outer] = ring.lane(stream);
  const [begin, end] = ring.span(host);
  const wide = (end - begin) / of;
  const from = begin + place * wide;
  const group = make(svg, "g", { "data-tells": `${stream}:${host}:${place}` });
  const where = `${name} on host ${host}, ages ${ages}`;
  titled(group, `${where}: ${count(rows)} tuples; for ${queries.join(", ")}`);
  if (rows) {
    const d = sector(from, from + wide, inner, inner + Math.max(0.05, share) * (outer - inner));
    make(group, "path", { d, fill: colour(stream), "fill-opacity": 0.3 + 0.5 * share });
  }
  const edge = { class: "rule", "stroke-width": 1, style: "pointer-events: all" };
  make(group, "path", { d: sector(from, from + wide, inner, outer), ...edge });
}

/** The outline of what a host holds of a stream, with its ages, and H on the youngest. */
function drawStretch(
  svg: Element,
  ring: Annulus,
  { stream, host, ages, head }: SharedStretch,
  name: string,
  colour: string,
): void {
  const [inner, outer] = ring.lane(stream);
  const radius = (inner + outer) / 2;
  const outline = { fill: "none", stroke: colour, "stroke-width": 1.3 };
  make(svg, "path", { d: ring.sector(stream, host), ...outline });
  const [x, y] = point(ring.middle(host), radius);
  const style = `${HALO}; pointer-events: none`; // a click is for the slice below
  const text = { x, y: y + 4, "text-anchor": "middle", style };
  if (ring.hosts <= 7) make(svg, "text", text, ages);
  if (!head) return;
  const [cx, cy] = point(ring.span(host)[0] + Math.min(9 / radius, ring.step / 6), radius);
  const group = titled(make(svg, "g", {}), `head of ${name}: host ${host}`);
  const edge = { stroke: "var(--braid-fg)", "stroke-width": 1.5 };
  make(group, "circle", { cx, cy, r: 8, fill: colour, ...edge });
  const letter = "font-size:11px;font-weight:600;fill:#fff";
  make(group, "text", { x: cx, y: cy + 4, "text-anchor": "middle", style: letter }, "H");
}

function drawCentre(svg: Element, frame: SharedFrame): void {
  const texts: [string, string][] = [
    [`batch ${count(frame.batch)}`, "strong"],
    [`${count(frame.mean * frame.hosts)} tuples held`, "muted"],
    [`${count(frame.probed)} probes`, "muted"],
    [`${count(frame.sent)} partial sent`, "muted"],
  ];
  lines(svg, texts, CENTRE, CENTRE - 18, 15, "middle");
  lines(svg, WORDS, 4, 474, 15);
}

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);

/** What every host holds, by stream; the dashed line is the mean, at which the deployment aims. */
function drawLoads(svg: Element, frame: SharedFrame, colour: Colour, bar: number): number {
  const entries = frame.streams.map((name, stream) => {
    return {
      text: `${name}: ${count(frame.live[stream] ?? 0)} tuples held`,
      colour: colour(stream),
    };
  });
  legend(svg, entries, RIGHT, 16, 17);
  const top = 36 + 17 * entries.length;
  const title = "Tuples held by host (counted); dashed: the mean";
  make(svg, "text", { x: RIGHT, y: top, class: "strong" }, title);
  const scale = 290 / Math.max(1, ...frame.stored.map(sum));
  const left = RIGHT + 22;
  const bottom = top + 8 + frame.hosts * bar;
  const mean = left + frame.mean * scale;
  frame.stored.forEach((stored, host) => {
    drawLoad(svg, frame, stored, host, { left, scale, y: top + 8 + host * bar, bar }, colour);
  });
  const line = { x1: mean, x2: mean, y1: top + 6, y2: bottom, class: "edge" };
  make(svg, "line", { ...line, "stroke-dasharray": "3 3" });
  frame.stored.forEach((stored, host) => {
    const x = left + sum(stored) * scale + 5;
    const y = top + 8 + host * bar + bar / 2 + 4;
    make(svg, "text", { x, y, class: "muted", style: HALO }, count(sum(stored)));
  });
  return bottom;
}

function drawLoad(
  svg: Element,
  frame: SharedFrame,
  stored: number[],
  host: number,
  { left, scale, y, bar }: { left: number; scale: number; y: number; bar: number },
  colour: Colour,
): void {
  const style = `font-size:${Math.min(12, bar)}px`;
  const name = { x: RIGHT + 16, y: y + bar / 2 + 4, "text-anchor": "end", style };
  make(svg, "text", name, host);
  let x = left;
  stored.forEach((rows, stream) => {
    const width = rows * scale;
    const box = { x, y: y + 1, width, height: bar - 3, fill: colour(stream) };
    const part = make(svg, "rect", { ...box, "data-load": `${host}:${stream}` });
    titled(part, `host ${host}: ${count(rows)} tuples of ${frame.streams[stream]}`);
    x += width;
  });
}

/** A row for each query, a column for each stretch of ages, filled as far as its window reaches. */
function drawServed(
  svg: Element,
  frame: SharedFrame,
  colour: Colour,
  top: number,
  row: number,
): void {
  const title = "Which queries each age of each host serves (Lemma 9)";
  make(svg, "text", { x: RIGHT, y: top - 14, class: "strong" }, title);
  const left = RIGHT + 128;
  const wide = (WIDE - left - 12) / frame.streams.length;
  const cell = (wide - 8) / frame.hosts;
  frame.streams.forEach((name, stream) => {
    const place = { x: left + stream * wide, y: top, class: "muted" };
    make(svg, "text", place, `${name}, young to old`);
  });
  frame.queries.forEach((query, k) => {
    drawQuery(svg, query, { left, y: top + 5 + k * row, wide, cell, row }, colour);
  });
}

function drawQuery(
  svg: Element,
  query: SharedQuery,
  { left, y, wide, cell, row }: Record<"left" | "y" | "wide" | "cell" | "row", number>,
  colour: Colour,
): void {
  const where = query.selections ? `; ${query.selections}` : "";
  const group = make(svg, "g", { "data-query": `0:${query.name}` });
  titled(group, `${query.name}: windows ${query.windows}${where}`);
  const whole = { x: RIGHT, y, width: WIDE - RIGHT, height: row };
  make(group, "rect", { ...whole, fill: "none", "pointer-events": "all" });
  const style = `font-size:${Math.min(11, row)}px`;
  const name = { x: left - 6, y: y + row - 3, "text-anchor": "end", style };
  make(group, "text", name, cut(query.name, 20));
  const uses = Map.groupBy(records(query.used), ({ stream }) => stream);
  for (const [stream, used] of uses) {
    used.forEach(({ host, share }, k) => {
      const box = { x: left + stream * wide + k * cell, y: y + 1, height: row - 3 };
      const ground = { fill: "var(--braid-bg)", class: "rule" };
      make(group, "rect", { ...box, width: cell - 2, ...ground });
      if (!share) return;
      const fill = { fill: colour(stream), "fill-opacity": 0.75 };
      const data = { "data-used": `${query.name}:${stream}:${host}` };
      make(group, "rect", { ...box, width: share * (cell - 2), ...fill, ...data });
    });
  }
}
