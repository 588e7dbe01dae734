// The map of a hypercube: a cell a host, the first two dimensions as a grid, the others as grids side
// by side; frames are the cells that one row of a stream reaches.
import type { CubeCell, CubeFrame } from "../../frames.ts";
import { CanvasMap, numberIn, type Shown } from "../base/canvas_map.ts";
import { records } from "../base/columns.ts";
import { count } from "../base/format.ts";
import { type Box, between, eased, within } from "../base/pen.ts";
import type { Detail } from "../cockpit/details.ts";

const [LEFT, TOP] = [30, 26];

/** The dimensions that a stream has. */
export const dimensionsOf = ({ dimensions }: CubeFrame, stream: number): number[] =>
  dimensions.streams.flatMap((streams, d) => (streams.includes(stream) ? [d] : []));

/** The cells that a row of a stream reaches, if ``at`` counts its parts: those along what it lacks. */
export function reached(frame: CubeFrame, stream: number, at: number): CubeCell[] {
  const own = dimensionsOf(frame, stream);
  const parts: number[] = [];
  let rest = at;
  for (const d of own) {
    const size = frame.dimensions.parts[d] ?? 1;
    parts[d] = rest % size;
    rest = Math.floor(rest / size);
  }
  return records(frame.cells).filter((cell) => own.every((d) => cell.parts[d] === parts[d]));
}

/** The unit box of a cell: dimension 0 down, 1 across, the others as blocks from left to right. */
export function unitBox(parts: number[], sizes: number[]): Box {
  const [rows = 1, columns = 1, ...others] = sizes;
  const block = others.reduce((sum, size, k) => sum * size + (parts[k + 2] ?? 0), 0);
  const blocks = others.reduce((product, size) => product * size, 1);
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
  const cell = records(frame.cells).find((each) => each.host === host);
  if (cell) {
    const places = cell.parts.map((part, d): [string, string] => [
      `part by ${linked(frame, d)}`,
      `${part + 1} of ${frame.dimensions.parts[d]}`,
    ]);
    return { title: `Host ${host}`, words: `a cell of ${times(frame)}`, pairs: places };
  }
  if (frame.idle.includes(host)) return { title: `Host ${host}`, words: "has no cell", pairs: [] };
  const stream = numberIn("stream", selected);
  const reach = frame.reach[stream];
  if (reach === undefined) return undefined;
  const pairs: [string, string][] = [
    ["hosts that store a row of it", count(reach)],
    ["rows in windows", count(frame.rows[stream] ?? 0)],
    ["rows of this batch", count(frame.received[stream] ?? 0)],
  ];
  const own = dimensionsOf(frame, stream).map((d) => linked(frame, d));
  return {
    title: `Stream ${frame.streams[stream]}`,
    words: `hashed by ${own.join(" and ")}`,
    pairs,
  };
}

export class CellsView extends CanvasMap<CubeFrame> {
  protected tell(frame: CubeFrame): void {
    const hosts = `${times(frame)} hosts, one for each combination of parts`;
    const words = ". A row goes to all cells along the equalities that its stream lacks.";
    this.head(`since batch ${frame.since}`, hosts, words);
    const signs = frame.streams.map((name, stream) => {
      const reach = frame.reach[stream] ?? 0;
      return {
        sign: "□",
        stream,
        text: `a row of ${name}: ${count(reach)} host${reach === 1 ? "" : "s"}`,
      };
    });
    this.signs([...signs, { text: "darker: more rows held" }]);
    const then = frame.before.join(" × ");
    const old =
      frame.copies_before === null ? "" : `, with ${then} it would be ${frame.copies_before}`;
    this.foot(`A row goes to ${frame.copies} hosts on average`, old);
  }

  protected paint({ frame, before, time, selected }: Shown<CubeFrame>): void {
    const { pen } = this;
    const sizes = frame.dimensions.parts;
    const [rows = 1, columns = 1, ...others] = sizes;
    const across = columns * others.reduce((product, size) => product * size, 1);
    const wide = Math.min(pen.wide - LEFT - 4, 400 * across);
    const area = { x: LEFT, y: TOP, wide, tall: Math.min(pen.tall - TOP - 8, 170 * rows) };
    const then = new Map(before ? records(before.cells).map((c) => [c.host, c.parts]) : []);
    const place = (parts: number[], of: number[]) => within(unitBox(parts, of), area);
    const boxes = new Map<number, Box>();
    for (const { host, parts } of records(frame.cells)) {
      const to = place(parts, sizes);
      const from = place(then.get(host) ?? parts, before?.dimensions.parts ?? sizes);
      boxes.set(host, between(from, to, eased(time * 1.6)));
    }
    for (const [host, box] of boxes) this.paintCell(frame, host, box, selected === `host:${host}`);
    frame.streams.forEach((_, stream) => {
      this.paintReach(frame, stream, time, boxes, selected);
    });
    const label = (d: number) => `${linked(frame, d)}: ${sizes[d]} parts`;
    const muted = { bold: true, colour: pen.theme.shade("muted") };
    const more = others.map((_, k) => label(k + 2)).join(", ");
    if (sizes.length > 1) pen.text(`${label(1)}${more ? `, ${more}` : ""}`, area.x, 10, muted);
    const long = pen.width(label(0), 12, true);
    const low = Math.min(pen.tall - 2, Math.max(area.y + area.tall, area.y + long));
    pen.text(label(0), 12, low, { ...muted, turn: -Math.PI / 2 });
  }

  private paintCell(frame: CubeFrame, host: number, box: Box, on: boolean): void {
    const { pen } = this;
    const rows = frame.stored[host] ?? 0;
    const load = frame.scale_max ? rows / frame.scale_max : 0;
    pen.box(box, { fill: pen.theme.load(load), stroke: pen.theme.shade("bg"), width: 1.5 });
    if (on) pen.box(box, { stroke: pen.theme.shade("accent"), width: 3, round: 3 });
    const moved = frame.moved[host] ? `, ${count(frame.moved[host] ?? 0)} moved there` : "";
    pen.target(box, `host:${host}`, `Host ${host}: ${count(rows)} rows held${moved}`);
    if (box.tall < 40 || box.wide < pen.width(`host ${host}`, 12, true) + 40) return;
    const style = {
      bold: true,
      align: "center",
      colour: pen.theme.shade(load > 0.5 ? "bg" : "ink"),
    } as const;
    pen.text(
      `host ${host}`,
      box.x + box.wide / 2,
      box.y + box.tall / 2 - (box.tall > 56 ? 8 : 0),
      style,
    );
    if (box.tall > 56)
      pen.text(`${count(rows)} rows`, box.x + box.wide / 2, box.y + box.tall / 2 + 9, {
        ...style,
        size: 11,
        bold: false,
      });
  }

  /** The cells of one row of a stream; while the batch is shown, of one part after the other. */
  private paintReach(
    frame: CubeFrame,
    stream: number,
    time: number,
    boxes: Map<number, Box>,
    selected: string,
  ): void {
    const { pen } = this;
    const one = numberIn("stream", selected);
    if (!frame.received[stream] || (frame.streams[one] && one !== stream)) return;
    const sizes = dimensionsOf(frame, stream).map((d) => frame.dimensions.parts[d] ?? 1);
    const parts = sizes.reduce((product, size) => product * size, 1);
    const at = Math.min(parts - 1, Math.floor(time * parts));
    const cells = reached(frame, stream, at).flatMap(({ host }) => boxes.get(host) ?? []);
    const whole = around(cells);
    const size = ({ wide, tall }: Box) => wide * tall;
    const isWhole = Math.abs(size(whole) - cells.reduce((sum, box) => sum + size(box), 0)) < 9;
    const inset = 5 + 5 * (stream % 4);
    for (const { x, y, wide, tall } of isWhole ? [whole] : cells) {
      const box = { x: x + inset, y: y + inset, wide: wide - 2 * inset, tall: tall - 2 * inset };
      pen.box(box, { stroke: pen.theme.shade("panel"), width: 5, round: 4 });
      pen.box(box, { stroke: pen.theme.stream(stream), width: 3, round: 4 });
      const edge = { x: box.x - 4, y: box.y - 4, wide: box.wide + 8, tall: 9 };
      pen.target(edge, `stream:${stream}`, `A row of ${frame.streams[stream]} goes here`);
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
