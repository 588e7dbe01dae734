// The map of any run: a row for each host, in it a lane for each stream, in it the blocks that it
// holds, from old to new.
import type { BlockMapFrame } from "../../frames.ts";
import { CanvasMap } from "./canvas_map.ts";
import { records } from "./columns.ts";
import { count } from "./format.ts";
import { SMALL } from "./pen.ts";
import { hue } from "./theme.ts";

const [LEFT, RIGHT, LOW] = [34, 76, 20];
/** The least height of a host's row. */
const LEAST = 10;

/** The height of a host's row in a room of so many pixels. */
export const rowOf = (hosts: number, tall: number): number =>
  Math.max(LEAST, Math.min(40, tall / hosts));

export class BlocksView extends CanvasMap<BlockMapFrame> {
  protected tell({ title, note, streams, hosts }: BlockMapFrame): void {
    this.head("bar at the right: rows that a host stores", title);
    this.signs(streams.map((text, stream) => ({ stream, text })));
    this.foot("", note);
    this.needs(Math.max(LEAST, Math.min(24, 480 / hosts)) * hosts + LOW);
  }

  protected paint({ hosts, streams, blocks, ends: [old = "", young = ""] }: BlockMapFrame): void {
    const { pen } = this;
    const row = rowOf(hosts, pen.tall - LOW);
    const lane = (row - 3) / streams.length;
    const long = pen.wide - LEFT - RIGHT;
    const most = Math.max(1, ...blocks.rows);
    const boxes = records(blocks).map(({ block, host, stream, first, last, rows }) => {
      const box = {
        x: LEFT + first * long,
        y: host * row + 1.5 + stream * lane,
        wide: Math.max(1.5, (last - first) * long - 0.6),
        tall: Math.max(1, lane - 0.5),
      };
      pen.box(box, { fill: hue(stream), alpha: 0.3 + 0.7 * Math.sqrt(rows / most) });
      const of = `${count(rows)} rows of ${streams[stream]} on host ${host}`;
      return { box, name: `host:${host}`, text: `Block ${block}: ${of}` };
    });
    for (let host = 0; host < hosts; host++) this.paintHost(host, row);
    pen.targets.push(...boxes);
    const low = hosts * row + LOW / 2;
    pen.text(`← ${old}`, LEFT, low, SMALL);
    pen.text(`${young} →`, LEFT + long, low, { ...SMALL, align: "right" });
  }

  /** A host's number, and at the right what it stores, on the scale of all. */
  private paintHost(host: number, row: number): void {
    const { pen, frame } = this;
    const stored = frame.stored[host] ?? 0;
    const on = this.selected === `host:${host}`;
    const y = host * row;
    pen.straight(LEFT, y, pen.wide - RIGHT, y, "rule");
    const look = { size: Math.min(12, row), bold: on, colour: on ? "accent" : "ink" } as const;
    pen.text(`${host}`, LEFT - 6, y + row / 2, { ...look, align: "right" });
    const wide = Math.max(0.5, frame.scale_max ? (60 * stored) / frame.scale_max : 0);
    const bar = { x: pen.wide - RIGHT + 6, y: y + 1.5, wide, tall: row - 3 };
    pen.box(bar, { fill: this.barColour(host) });
    const whole = { x: 2, y, wide: pen.wide - 4, tall: row };
    if (on) pen.box(whole, { stroke: "accent", width: 2 });
    pen.target(whole, `host:${host}`, `Host ${host}: ${count(stored)} rows`);
  }
}
