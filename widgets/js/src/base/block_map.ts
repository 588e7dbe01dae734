// The map of any run: a row for each host, in it a lane for each stream, in it the blocks that it
// holds, from old to new.
import type { BlockMapFrame } from "../../frames.ts";
import { CanvasMap } from "./canvas_map.ts";
import { records } from "./columns.ts";
import { count } from "./format.ts";
import { SMALL } from "./pen.ts";
import { hue } from "./theme.ts";

const [RIGHT, LOW] = [12, 20];
/** The least height of a host's row. */
const LEAST = 10;

/** The height of a host's row in a room of so many pixels. */
export const rowOf = (hosts: number, tall: number): number =>
  Math.max(LEAST, Math.min(40, tall / hosts));

export class BlocksView extends CanvasMap<BlockMapFrame> {
  protected tell({ title, note, streams, hosts }: BlockMapFrame): void {
    this.head("bar at the left: rows that a host stores", title);
    this.signs(streams);
    this.foot("", note);
    this.needs(Math.max(LEAST, Math.min(24, 480 / hosts)) * hosts + LOW);
  }

  protected paint({ hosts, streams, blocks, ends }: BlockMapFrame): void {
    const { pen } = this;
    const { x, wide, tall } = this.paintRows(hosts, 0, rowOf(hosts, pen.tall - LOW), RIGHT);
    const lane = (tall - 3) / streams.length;
    const most = Math.max(1, ...blocks.rows);
    for (const { block, host, stream, first, last, rows } of records(blocks)) {
      const box = {
        x: x + first * wide,
        y: host * tall + 1.5 + stream * lane,
        wide: Math.max(1.5, (last - first) * wide - 0.6),
        tall: Math.max(1, lane - 0.5),
      };
      pen.box(box, { fill: hue(stream), alpha: 0.3 + 0.7 * Math.sqrt(rows / most) });
      const of = `${count(rows)} rows of ${streams[stream]} on host ${host}`;
      pen.targets.push({ box, name: `host:${host}`, text: `Block ${block}: ${of}` });
    }
    const [old = "", young = ""] = ends;
    const low = hosts * tall + LOW / 2;
    pen.text(`← ${old}`, x, low, SMALL);
    pen.text(`${young} →`, x + wide, low, { ...SMALL, align: "right" });
  }
}
