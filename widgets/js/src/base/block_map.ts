// The map of any run: a row for each host, in it a lane for each stream, in it the blocks that it
// holds, from old to new.
import type { BlockMapFrame, Palette } from "../frames.ts";
import { cycled } from "./colors.ts";
import { records } from "./columns.ts";
import { count } from "./format.ts";
import { legend, make, picture, titled } from "./svg.ts";

const WIDE = 900;
const [LEFT, RIGHT, TOP, BOTTOM] = [34, 150, 8, 26];

/** The height of a host's row. */
export const rowOf = (hosts: number): number => Math.max(10, Math.min(40, 340 / hosts));

export function draw(box: HTMLElement, frame: BlockMapFrame, palette: Palette): void {
  const row = rowOf(frame.hosts);
  const floor = TOP + frame.hosts * row;
  const svg = picture(box, frame, WIDE, Math.max(floor + BOTTOM, 30 + 18 * frame.streams.length));
  const lane = (row - 3) / frame.streams.length;
  const long = WIDE - LEFT - RIGHT;
  const colour = (stream: number) => cycled(palette.streams, stream);
  const most = Math.max(1, ...frame.blocks.rows);
  const hosts = Array.from({ length: frame.hosts }, (_, host) => frame.stored[host] ?? 0);
  const groups = hosts.map((rows, host) => addHost(svg, host, rows, row));
  for (const { block, host, stream, first, last, rows } of records(frame.blocks)) {
    const shape = {
      x: LEFT + first * long,
      y: TOP + host * row + stream * lane,
      width: Math.max(1.5, (last - first) * long - 0.6),
      height: Math.max(1, lane - 0.5),
      fill: colour(stream),
      "fill-opacity": 0.3 + 0.7 * Math.sqrt(rows / most),
    };
    const words = `block ${block}: ${count(rows)} tuples of ${frame.streams[stream]} on host ${host}`;
    titled(make(groups[host] ?? svg, "rect", shape), words);
  }
  groups.forEach((group, host) => {
    drawHost(group, frame, host, row, long);
  });
  const [old = "", young = ""] = frame.ends;
  make(svg, "text", { x: LEFT, y: floor + 16, class: "muted" }, `← ${old}`);
  const end = { x: LEFT + long, y: floor + 16, class: "muted", "text-anchor": "end" };
  make(svg, "text", end, `${young} →`);
  const entries = frame.streams.map((text, stream) => ({ text, colour: colour(stream) }));
  legend(svg, entries, WIDE - 42, TOP + 12, 18);
}

/** The row of a host, which can be selected: the blocks that it holds come into it. */
function addHost(svg: Element, host: number, rows: number, row: number): Element {
  const group = make(svg, "g", { "data-target": `host:${host}` });
  group.dataset.text = `Host ${host}: ${count(rows)} rows`;
  make(group, "rect", { x: 2, y: TOP + host * row - 1.5, width: WIDE - 87, height: row });
  return group;
}

/** A host's number, and at the right what it stores, on the scale of all. */
function drawHost(
  svg: Element,
  frame: BlockMapFrame,
  host: number,
  row: number,
  long: number,
): void {
  const y = TOP + host * row;
  const stored = frame.stored[host] ?? 0;
  make(svg, "line", { x1: LEFT, x2: LEFT + long, y1: y - 1.5, y2: y - 1.5, class: "rule" });
  const middle = y + row / 2 + 4;
  make(svg, "text", { x: LEFT - 6, y: middle, "text-anchor": "end" }, host);
  const width = Math.max(0.5, frame.scale_max ? (60 * stored) / frame.scale_max : 0);
  const bar = {
    x: LEFT + long + 6,
    y,
    width,
    height: row - 3,
    fill: "currentColor",
    opacity: 0.35,
  };
  titled(make(svg, "rect", bar), `host ${host}: ${count(stored)} tuples stored`);
}
