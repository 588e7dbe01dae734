// The map of a hypercube: a cell a host, the first two dimensions as a grid, the others as grids side
// by side; frames are the cells that one row of a stream reaches.
import type { CubeCell, CubeFrame } from "../../frames.ts";
import { CanvasMap, chosen, type Detail, numberIn, type Pair } from "../base/canvas_map.ts";
import { product, records, sum } from "../base/columns.ts";
import { count, several, shareOf } from "../base/format.ts";
import { type Box, grown, middle } from "../base/geometry.ts";
import { hue } from "../base/theme.ts";

const [LEFT, TOP] = [30, 26];

/** The dimensions that a stream has. */
export const dimensionsOf = ({ dimensions }: CubeFrame, stream: number): number[] =>
  dimensions.streams.flatMap((streams, d) => (streams.includes(stream) ? [d] : []));

/** The cells that a row of a stream reaches, for each part: those along what the stream lacks. */
export function reached(frame: CubeFrame, stream: number): CubeCell[][] {
  const own = dimensionsOf(frame, stream);
  const partOf = ({ parts }: CubeCell) => own.map((d) => parts[d]).join();
  return [...Map.groupBy(records(frame.cells), partOf).values()];
}

/** The unit box of a cell: dimension 0 down, 1 across, the others as blocks from left to right. */
export function unitBox(parts: number[], sizes: number[]): Box {
  const [rows = 1, columns = 1, ...others] = sizes;
  const block = others.reduce((place, size, k) => place * size + (parts[k + 2] ?? 0), 0);
  const blocks = product(others);
  const wide = 1 / (columns * blocks);
  const x = block / blocks + (parts[1] ?? 0) * wide;
  return { x, y: (parts[0] ?? 0) / rows, wide, tall: 1 / rows };
}

const linked = ({ dimensions, streams }: CubeFrame, d: number): string =>
  (dimensions.streams[d] ?? []).map((stream) => streams[stream]).join(" = ");

const times = (frame: CubeFrame): string => frame.dimensions.parts.join(" × ");

/** The text about a host or a stream in the inspector. */
export function inspectCells(frame: CubeFrame, selected: string): Detail | undefined {
  const host = numberIn("host", selected);
  const cell = chosen(frame.cells, "host", "host", selected);
  if (cell) {
    const places = cell.parts.map((part, d): Pair => {
      return [`part by ${linked(frame, d)}`, `${part + 1} of ${frame.dimensions.parts[d]}`];
    });
    return { title: `Host ${host}`, words: `a cell of ${times(frame)}`, pairs: places };
  }
  if (frame.idle.includes(host)) return { title: `Host ${host}`, words: "has no cell", pairs: [] };
  const stream = numberIn("stream", selected);
  const reach = frame.reach[stream];
  if (reach === undefined) return undefined;
  const pairs: Pair[] = [
    ["hosts that store a row of it", count(reach)],
    ["rows in windows", count(frame.rows[stream] ?? 0)],
    ["rows of this batch", count(frame.received[stream] ?? 0)],
  ];
  const own = dimensionsOf(frame, stream).map((d) => linked(frame, d));
  const words = `hashed by ${own.join(" and ")}`;
  return { title: `Stream ${frame.streams[stream]}`, words, pairs };
}

const meanOf = ({ stored }: CubeFrame): number => shareOf(sum(stored), stored.length);

/** The unit boxes of all cells. */
const cellsOf = ({ cells, dimensions }: CubeFrame): Map<number, Box> =>
  new Map(records(cells).map(({ host, parts }) => [host, unitBox(parts, dimensions.parts)]));

export class CellsView extends CanvasMap<CubeFrame> {
  private boxes = new Map<number, Box>();
  private readonly bars = this.addPart("Rows on each host", ", one scale for the whole run");

  protected tell(frame: CubeFrame): void {
    const hosts = `${times(frame)} hosts, one for each combination of parts`;
    const words = ". A row goes to all cells along the equalities that its stream lacks.";
    this.head(`since batch ${frame.since}`, hosts, words);
    const reach = frame.streams.map((name, stream) => {
      return `a row of ${name}: ${several(frame.reach[stream] ?? 0, "host")}`;
    });
    this.signs(reach, ["darker: more rows held"], "□");
    const then = `, with ${frame.before.join(" × ")} it would be ${frame.copies_before}`;
    const old = frame.copies_before === null ? "" : then;
    this.foot(`A row goes to ${frame.copies} hosts on average`, old);
    // more rows of cells need the room for themselves
    this.bars.section.hidden = (frame.dimensions.parts[0] ?? 1) > 4;
    const fullest = `fullest host ${count(Math.max(0, ...frame.stored))} rows`;
    this.bars.note.textContent = `${fullest}, mean ${count(meanOf(frame))} (dashed)`;
  }

  protected paint(frame: CubeFrame): void {
    const { pen } = this;
    const [rows = 1, ...rest] = frame.dimensions.parts;
    const tall = Math.min(pen.tall - TOP - 8, 170 * rows);
    const wide = Math.min(pen.wide - LEFT - 4, Math.max(400 * product(rest), 2 * tall));
    const area = { x: LEFT, y: TOP, wide, tall };
    this.boxes = new Map(this.placed(cellsOf, area));
    for (const [host, box] of this.boxes) this.paintHost(frame, host, box);
    for (const stream of frame.streams.keys()) this.paintReach(stream);
    const names = frame.dimensions.parts.map((size, d) => `${linked(frame, d)}: ${size} parts`);
    this.nameSides(area, [names.slice(1).join(", "), names[0] ?? ""], []);
    const hosts = records(frame.cells).map(({ host, parts: [row = 0] }) => ({ host, row }));
    this.paintHeld(this.bars, hosts, [meanOf(frame), "ink"]);
  }

  private paintHost({ stored, moved }: CubeFrame, host: number, box: Box): void {
    const { pen } = this;
    const came = moved[host] ? `, ${count(moved[host])} moved there` : "";
    const colour = this.paintCell(host, box, ` held${came}`);
    if (box.tall < 40) return;
    const style = { align: "center", colour, room: box.wide - 40 } as const;
    // below this height frames would cross two lines of text
    const [[x, y], roomy] = [middle(box), box.tall > 76];
    const [name, held] = [`host ${host}`, `${count(stored[host] ?? 0)} rows`];
    pen.text(roomy ? name : `${name}: ${held}`, x, y - (roomy ? 8 : 0), { ...style, bold: true });
    if (roomy) pen.text(held, x, y + 9, { ...style, size: 11 });
  }

  /** The cells of one row of a stream; while the batch is shown, of one part after the other. */
  private paintReach(stream: number): void {
    const { pen, frame } = this;
    const one = numberIn("stream", this.selected);
    if (!frame.received[stream] || (frame.streams[one] && one !== stream)) return;
    const all = reached(frame, stream);
    const cells = all[Math.min(all.length - 1, Math.floor(this.time * all.length))] ?? [];
    const grids = Map.groupBy(cells, ({ parts }) => parts.slice(2).join());
    for (const grid of grids.values()) {
      const whole = around(grid.flatMap(({ host }) => this.boxes.get(host) ?? []));
      const box = grown(whole, -5 - 5 * (stream % 4));
      pen.box(box, { stroke: "panel", width: 5, round: 4 });
      pen.box(box, { stroke: hue(stream), width: 3, round: 4 });
      const text = `A row of ${frame.streams[stream]} goes here`;
      pen.targets.push({ box: { ...grown(box, 4), tall: 9 }, name: `stream:${stream}`, text });
    }
  }
}

/** The box around some boxes. */
function around(boxes: Box[]): Box {
  const [x, y] = [Math.min(...boxes.map((b) => b.x)), Math.min(...boxes.map((b) => b.y))];
  const right = Math.max(...boxes.map((b) => b.x + b.wide));
  const low = Math.max(...boxes.map((b) => b.y + b.tall));
  return { x, y, wide: right - x, tall: low - y };
}
