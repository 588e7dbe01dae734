// The map of a join of two streams: its matrix to scale, and below it the rows that hosts hold.
import type { GridFrame } from "../../frames.ts";
import { CanvasMap, chosen, type Detail } from "../base/canvas_map.ts";
import { records, sum } from "../base/columns.ts";
import { limitHeight, wordy } from "../base/dom.ts";
import { count, shareOf } from "../base/format.ts";
import { atLeast, type Box, between, eased, fitted, middle } from "../base/geometry.ts";
import { nameParts, nameQuantiles, shownHosts, stayedTexts } from "../base/host_bars.ts";
import { hue } from "../base/theme.ts";

const HUES = [hue(0), hue(1)];
/** Room round the matrix for rulers. */
const [LEFT, TOP, REST] = [34, 30, 8];

/** The boxes of hosts in a matrix of unit sides: across is stream 0 unless it is turned. */
export function cellsOf({ n, m, places, cells }: GridFrame, turned: boolean): Map<number, Box> {
  const parts = records(places).map(({ host, row, column }) => {
    return { host, top: row / n, bottom: (row + 1) / n, left: column / m, right: (column + 1) / m };
  });
  const boxes = (n ? parts : records(cells)).map(({ host, top: x, bottom, left: y, right }) => {
    const [wide, tall] = [bottom - x, right - y];
    const box = turned ? { x: y, y: x, wide: tall, tall: wide } : { x, y, wide, tall };
    return { host, box, size: wide * tall };
  });
  // of those of a host the largest stays
  if (!n) boxes.sort((a, b) => a.host - b.host || a.size - b.size);
  return new Map(boxes.map(({ host, box }) => [host, box]));
}

/** Turns all frames of a run the way round of the one with the longest stream. */
export function sameWay(frames: GridFrame[]): void {
  const [longest] = frames.toSorted((a, b) => Math.max(...b.rows) - Math.max(...a.rows));
  for (const frame of frames) frame.across = longest?.across ?? 0;
}

/** The place of a host in its grid, and the rows that go from it. */
export function inspectGrid(grid: GridFrame, selected: string): Detail | undefined {
  const { streams, n, m } = grid;
  const place = chosen(grid.places, "host", "host", selected);
  if (!place) return undefined;
  const going = records(grid.copies).filter(({ source }) => source === place.host);
  const rows = `${count(sum(going.map((copy) => copy.rows)))} rows`;
  const part = `part ${place.row + 1} of ${n} of ${streams[0]}`;
  const words = `${part}, part ${place.column + 1} of ${m} of ${streams[1]}`;
  return { title: `Host ${place.host}`, words, pairs: [["goes to other hosts", rows]] };
}

export class GridView extends CanvasMap<GridFrame> {
  private readonly host = this.addPart("Rows of one host", ": its two sides");
  private readonly bars = this.addPart("Rows on each host", ", one scale for the whole run");
  /** Whether stream 0 goes down: the longest stream of the run lies along the longer side. */
  private turned = false;

  protected tell(frame: GridFrame): void {
    const { n, m, load, load_before: baseline, streams, rows, title, copies } = frame;
    const parts = title.split(/(\d+ × \d+ hosts)/);
    // the scale is known when it is painted; until then the old one keeps its room
    this.head(this.scale.textContent ?? "", ...(parts[1] ? ["", ...parts] : parts));
    const which = [...new Set(copies.stream)].map((k) => streams[k]).join(" and ");
    const old = frame.before.join(" × ");
    const moved = which && `${count(sum(copies.rows))} rows of ${which} are on their way`;
    const waits = which && !frame.waiting ? "" : `${count(frame.waiting)} rows wait`;
    const going = moved ? [moved, waits && ` · ${waits}`] : [waits, ""];
    this.foot(...(frame.is_moving ? [...going, old && ` · dotted: the old ${old}`] : []));
    this.host.section.hidden = load === null;
    if (load === null) return;
    const sides = [n, m].map((each, k) => `${count((rows[k] ?? 0) / each)} of ${streams[k]}`);
    const dotted = baseline === null ? "" : ` · dotted, before: ${count(baseline)}`;
    wordy(this.host.note, "", `${sides.join(" + ")} = `, `${count(load)} rows`, dotted);
  }

  protected paint(frame: GridFrame): void {
    this.turned = (frame.across === 0) !== this.pen.wide > this.pen.tall;
    this.paintMatrix(frame);
    const { n, places, stored, load, load_before: before, streams } = frame;
    const hosts = n ? records(places) : stored.map((_, host) => ({ host, row: 0 }));
    const shown = shownHosts(hosts, stored);
    if (load !== null) this.paintHost(frame);
    const texts = stayedTexts(frame.before.join(" × "), load, before);
    const bars = this.paintHeld(this.bars, shown, [before, "bad", ...texts], n > 1 ? 19 : 5);
    nameQuantiles(this.bars.pen, shown, stored);
    nameParts(this.bars.pen, shown, bars, streams[0] ?? "");
  }

  /** Leaves the height that the matrix cannot fill to what stands below it. */
  override draw(...all: Parameters<CanvasMap<GridFrame>["draw"]>): void {
    const [{ rows, across: first }] = all;
    const { clientWidth: wide, clientHeight: tall, parentElement } = this.pen.canvas;
    const room = { x: 0, y: 0, wide: wide - LEFT - REST, tall: 1e6 };
    const filled = fitted(rows[first] ?? 0, rows[1 - first] ?? 0, room).tall + TOP + REST;
    if (wide > tall) limitHeight(parentElement, filled);
    super.draw(...all);
  }

  /** Two things, one for each stream, in the order across and down. */
  private ways<T>(things: T[]): T[] {
    return this.turned ? things.toReversed() : things;
  }

  private area({ rows }: GridFrame): Box {
    const [across = 0, down = 0] = this.ways(rows);
    const [wide, tall] = [this.pen.wide - LEFT - REST, this.pen.tall - TOP - REST];
    return { ...fitted(across, down, { x: LEFT, y: TOP, wide, tall }), y: TOP };
  }

  private paintMatrix(frame: GridFrame): void {
    const { pen, before = frame, turned, time } = this;
    const area = between(this.area(before), this.area(frame), eased(time * 1.6));
    const placed = new Map(this.placed((each) => cellsOf(each, turned), area));
    const rows = shareOf(100 * (this.ways(frame.rows)[0] ?? 0), area.wide);
    this.scale.textContent = `100 px = ${count(rows)} rows, both sides alike`;
    const least = frame.is_moving ? 44 : 24; // else what flies hides a number
    for (const [host, box] of placed) {
      const colour = this.paintCell(host, atLeast(box, 2));
      const style = { size: 11, bold: true, colour, room: box.wide - 12 };
      if (placed.size > 256 || box.tall < least) continue;
      pen.text(`${host}`, box.x + 6, box.y + 11, style);
    }
    if (frame.is_moving && frame.before.length) this.paintOld(frame, area);
    const names = frame.streams.map((name, k) => `${name}  ${count(frame.rows[k] ?? 0)} rows`);
    this.nameSides(area, this.ways(names), this.ways(HUES));
    for (const [k, { source, target, stream, rows }] of records(frame.copies).entries()) {
      const [from, to] = [placed.get(source) ?? area, placed.get(target) ?? area];
      const way = eased(time * 1.5 - (k % 9) * 0.055);
      const half = Math.max(2.5, Math.min(6, Math.sqrt(rows) / 5.2));
      this.paintFlight(middle(from), middle(to), hue(stream), half, way);
    }
  }

  /** The lines of the mapping before. */
  private paintOld(frame: GridFrame, { x, y, wide, tall }: Box): void {
    const [n = 1, m = 1] = this.ways(frame.before);
    const rule = (...ends: [number, number, number, number]) =>
      this.pen.straight(...ends, "ink", 1, [2, 4], 0.7);
    for (let k = 0; k <= n; k++) rule(x + (k * wide) / n, y - 4, x + (k * wide) / n, y + tall + 4);
    for (let k = 0; k <= m; k++) rule(x - 4, y + (k * tall) / m, x + wide + 4, y + (k * tall) / m);
  }

  /** A cell with its two sides, and the one before, at one scale. */
  private paintHost({ n, m, rows, before, load_before }: GridFrame): void {
    const { pen } = this.host;
    if (!pen.begin()) return;
    const parts = load_before === null ? [[n, m]] : [[n, m], before];
    const both = parts.map((each) => this.ways(rows.map((all, k) => all / (each[k] ?? 1))));
    const room = [pen.wide - 14, pen.tall - 14];
    const scale = Math.min(
      ...both.flatMap((sides) => sides.map((side, k) => (room[k] ?? 0) / Math.max(1, side))),
    );
    const at = { x: 10, y: 9 };
    const [now, old] = both.map(([a = 0, d = 0]) => ({ ...at, wide: scale * a, tall: scale * d }));
    if (now) pen.box(now, { fill: pen.theme.load(0.35), round: 2 });
    if (old) pen.box(old, { stroke: "ink", dash: [2, 4] });
    if (now) this.nameSides(now, [], this.ways(HUES), pen);
  }
}
