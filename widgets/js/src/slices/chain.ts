// Draws the chain of a shared run: for each stream its slices by age, and under them the windows of
// the queries that they serve.
import { cycled } from "../base/colors.ts";
import { count, cut } from "../base/format.ts";
import { rovingTabIndex } from "../base/keyboard.ts";
import { make, picture, titled } from "../base/svg.ts";
import type { ChainFrame, ChainQuery, ChainSlice, ChainStream, Palette } from "../frames.ts";
import { crossings, inWords, Labels, LEFT, placed, said, TALL, WIDE } from "./axis.ts";
import { mergeable, splittable } from "./slice_actions.ts";

const CUT = "#e03131";
const WORDS =
  "fill: tuples held · n →: aged into the next slice since the batch before · " +
  "✂: cut off, no later query wants them · bars: windows of the queries";
const HELP =
  "Click the boundary of two slices to merge them, or inside a slice to split it there (live runs).";

/** A stream's drawing: where it begins, how tall a query is, what moves for how long. */
export interface Lane {
  svg: SVGSVGElement;
  stream: ChainStream;
  top: number;
  row: number;
  colour: string;
  glide: number;
  at(age: number): number;
}

/** Heights: of a query, and where each stream begins and all ends. */
export function layout(queries: number[]): { row: number; tops: number[]; end: number } {
  const row = Math.max(...queries) > 16 ? 8 : 15;
  const tops: number[] = [];
  let end = 24;
  for (const asked of queries) {
    tops.push(end);
    end += TALL + 34 + row * asked + 34;
  }
  return { row, tops, end };
}

export function draw(box: HTMLElement, frame: ChainFrame, palette: Palette, glide: number): void {
  const { row, tops, end } = layout(frame.streams.map(({ queries }) => queries.length));
  const svg = picture(box, frame, WIDE, end + (frame.pick ? 20 : 4), "group");
  frame.streams.forEach((stream, k) => {
    const colour = cycled(palette.streams, stream.index);
    const at = (age: number) => placed(stream.marks, age);
    drawStream({ svg, stream, top: tops[k] ?? 0, row, colour, glide, at }, frame.pick);
  });
  make(svg, "text", { x: LEFT, y: end - 4, class: "muted" }, WORDS);
  if (!frame.pick) return;
  make(svg, "text", { x: LEFT, y: end + 12, class: "muted" }, HELP);
  rovingTabIndex([...svg.querySelectorAll<SVGElement>("[data-merge]")]);
}

function drawStream(lane: Lane, pick: boolean): void {
  const { svg, stream, top } = lane;
  const held = stream.slices.reduce((sum, { rows }) => sum + rows, 0);
  const name = { x: 4, y: top + 22, class: "strong", style: "font-size:15px" };
  make(svg, "text", name, stream.name);
  make(svg, "text", { x: 4, y: top + 38, class: "muted" }, `${count(held)} held`);
  const came = { x: LEFT - 6, y: top - 7, "text-anchor": "end" };
  if (stream.received_tuples) make(svg, "text", came, `${count(stream.received_tuples)} →`);
  stream.slices.forEach((slice, k) => {
    const cell = drawSlice(lane, slice, k, pick);
    if (pick) splittable(lane, cell, slice);
  });
  drawAxis(lane);
  drawFlows(lane);
  stream.queries.forEach((query, k) => {
    drawQuery(lane, query, top + TALL + 24 + k * lane.row);
  });
  if (pick) for (const { last } of stream.slices.slice(0, -1)) mergeable(lane, last);
}

function drawSlice(lane: Lane, slice: ChainSlice, k: number, pick: boolean): SVGRectElement {
  const { svg, stream, top, colour, at } = lane;
  const { first, last, rows, share, serves } = slice;
  const x = at(first);
  const width = at(last) - x;
  const ages = `ages ${inWords(stream.marks, first)} to ${inWords(stream.marks, last)}`;
  const place = `${stream.index}:${k}`;
  const group = make(svg, "g", { "data-slice": place, ...(pick ? {} : { "data-tells": place }) });
  titled(
    group,
    `slice ${k + 1} of ${stream.name} on host 0, ${ages}: ${count(rows)} tuples\nserves ${serves}`,
  );
  const full = Math.max(rows ? 2 : 0, share * (TALL - 4));
  const fill = { x, y: top + TALL - 2 - full, width, height: full, fill: colour };
  make(group, "rect", { ...fill, "fill-opacity": 0.55 });
  const edge = { class: "edge", "stroke-width": 1.2, "pointer-events": "all" };
  const cell = make(group, "rect", { x, y: top, width, height: TALL, ...edge });
  if (width > 9 + 7 * count(rows).length) {
    const middle = { x: x + width / 2, y: top + TALL / 2 + 4, "text-anchor": "middle" };
    make(group, "text", { ...middle, class: "strong" }, count(rows));
  }
  return cell;
}

/** Ages under the chain: ends of slices in full, windows that end inside a slice in grey. */
function drawAxis({ svg, stream, top, row, at }: Lane): void {
  const bottom = top + TALL;
  const foot = bottom + 24 + row * stream.queries.length;
  const ends = new Set([0, ...stream.slices.map(({ last }) => last)]);
  const first = (age: number) => Number(!ends.has(age));
  const texts = new Labels();
  for (const { age, text } of [...stream.marks].sort((a, b) => first(a.age) - first(b.age))) {
    const x = at(age);
    const own = ends.has(age);
    const rule = { x1: x, x2: x, class: "rule", "stroke-dasharray": own ? "none" : "2 4" };
    if (age) make(svg, "line", { ...rule, y1: bottom + 20, y2: foot });
    if (!own) make(svg, "line", { ...rule, y1: top, y2: bottom, "pointer-events": "none" });
    if (!texts.fits(x, 12 + 6 * text.length)) continue;
    const place = { x, y: bottom + 15, "text-anchor": "middle", class: own ? "" : "muted" };
    make(svg, "text", place, text);
  }
}

/** The rows that aged over a boundary, that were cut off there, and that left at the end. */
function drawFlows(lane: Lane): void {
  const { stream, top } = lane;
  const { slices } = stream;
  const x = lane.at;
  const middle = (k: number) => (x(slices[k]?.first ?? 0) + x(slices[k]?.last ?? 0)) / 2;
  for (const { source, target } of stream.aged) {
    drawToken(lane, middle(source), middle(target), 0, lane.colour);
  }
  for (const { slice } of stream.trimmed) {
    const begin = x(slices[Math.min(slice, slices.length - 1)]?.first ?? 0);
    drawToken(lane, begin, begin, TALL + 26, CUT);
  }
  const over = crossings(stream);
  const cuts = new Map(stream.trimmed.map(({ slice, rows }) => [slice, rows]));
  const texts = new Labels();
  slices.slice(0, -1).forEach(({ last }, k) => {
    const parts = [part(over.get(k), "n →", ""), part(cuts.get(k + 1), " ✂ n", CUT)];
    drawLabel(lane, x(last), top - 7, parts, texts);
  });
  drawLabel(lane, middle(0), top - 7, [part(cuts.get(0), "✂ n", CUT)], texts);
  const end = x(slices.at(-1)?.last ?? 0) + 20;
  const left = part(stream.expired, "n → expired", "");
  drawLabel(lane, end, top - 7, [left], new Labels(), "start");
}

interface Part {
  text: string;
  fill: string;
}

/** A number of tuples in its words, in which it is "n"; nothing when there are none. */
export const part = (tuples: number | undefined, words: string, fill: string): Part => {
  return { text: tuples ? words.replace("n", count(tuples)) : "", fill };
};

function drawLabel(
  { svg }: Lane,
  x: number,
  y: number,
  parts: Part[],
  texts: Labels,
  anchor = "middle",
): void {
  const said = parts.filter(({ text }) => text);
  const wide = 6.2 * said.reduce((sum, { text }) => sum + text.length, 0);
  if (!wide || !texts.fits(x, wide)) return;
  const node = make(svg, "text", { x, y, "text-anchor": anchor });
  for (const { text, fill } of said) {
    const span = make(node, "tspan", {}, text);
    if (fill) span.style.fill = fill;
  }
}

/** A handful of tuples on their way; it is seen while it moves only. */
function drawToken(lane: Lane, from: number, to: number, fall: number, colour: string): void {
  if (!lane.glide) return;
  const y = lane.top + TALL / 2 + 14;
  const square = { x: -5, y: -5, width: 10, height: 10, rx: 2 };
  const paint = { fill: colour, stroke: "var(--braid-bg)", opacity: 0 };
  const chip = make(lane.svg, "rect", { ...square, ...paint });
  const place = (x: number, low: number) => `translate(${x}px, ${y + low}px)`;
  const steps = [
    { transform: place(from, 0), opacity: 1 },
    { transform: place(to, fall), opacity: 1 },
    { transform: place(to, fall), opacity: 0 },
  ];
  chip.animate(steps, { duration: lane.glide });
}

function drawQuery({ svg, stream, row, colour, at }: Lane, query: ChainQuery, y: number): void {
  const { name, window, selection: where } = query;
  const reach = `window ${inWords(stream.marks, window)} on ${stream.name}`;
  const selection = where ? `where ${where}` : "no selection";
  const group = make(svg, "g", { "data-query": `${stream.index}:${name}` });
  titled(group, `${name}: ${reach}, ${selection}`);
  const box = { x: LEFT, y, width: at(window) - LEFT, height: row - 4, rx: 2 };
  const edge = { stroke: colour, "stroke-width": where ? 1 : 0 };
  make(group, "rect", { ...box, ...edge, fill: colour, "fill-opacity": where ? 0.22 : 0.5 });
  const room = Math.max(12, Math.floor((WIDE - at(window)) / 6.3));
  const style = `font-size:${Math.min(11, row)}px`;
  const place = { x: at(window) + 6, y: y + row / 2 + 2, style };
  make(group, "text", place, cut(said(query), room));
}
