// The join matrix: row 0 on top, column 0 at the left. It is a rectangle |R| by |S| to scale, so the
// cells of a grid that suits the streams are squares.
import { textColor } from "../base/colors.ts";
import { records } from "../base/columns.ts";
import { count } from "../base/format.ts";
import { BOLD, type Box, fontSize, type Painter } from "../base/painter.ts";
import type { MatrixCell, MatrixFrame, MoveChip } from "../frames.ts";

/** A square of the canvas, in which the matrix grows from the upper left. */
export interface Square {
  x: number;
  y: number;
  size: number;
}

/** The least share of the square that a side of the matrix takes, so that cells can be seen. */
export const LEAST = 1 / 12;

/** The rectangle |R| by |S|, where ``most`` tuples fill a side; ``true`` if it is to scale. */
export function rectangle(rows: number[], most: number, { x, y, size }: Square): [Box, boolean] {
  const share = (stream: number) => (most ? (rows[stream] ?? 0) / most : 1);
  const shares = [share(1), share(0)].map((side) => Math.max(LEAST, Math.min(1, side)));
  const [wide = 1, tall = 1] = shares.map((side) => side * size);
  return [{ x, y, wide, tall }, Math.min(share(0), share(1)) >= LEAST];
}

/** Where a cell lies. */
export function boxOf(cell: MatrixCell, { x, y, wide, tall }: Box): Box {
  return {
    x: x + cell.left * wide,
    y: y + cell.top * tall,
    wide: (cell.right - cell.left) * wide,
    tall: (cell.bottom - cell.top) * tall,
  };
}

/** Slow at both ends: of a share of the time, the share of the way. */
export const eased = (time: number): number => time * time * (3 - 2 * time);

/** Where a chip is at a share of its time. */
export function chipAt(chip: MoveChip, { x, y, wide, tall }: Box, time: number): [number, number] {
  const way = eased(time);
  return [
    x + (chip.x0 + (chip.x1 - chip.x0) * way) * wide,
    y + (chip.y0 + (chip.y1 - chip.y0) * way) * tall,
  ];
}

export function paintMatrix(
  painter: Painter,
  frame: MatrixFrame,
  { x, y, size: side }: Square,
  time: number,
): void {
  const square = { x: x + 24, y: y + 40, size: side - 62 };
  const [area, faithful] = rectangle(frame.rows, frame.max_rows, square);
  painter.text(frame.title, x, y + 8, { font: BOLD, most: side });
  paintAxes(painter, frame, square);
  const cells = records(frame.cells);
  for (const cell of cells) paintCell(painter, cell, boxOf(cell, area));
  for (const cell of cells) if (cell.moving) paintOutline(painter, boxOf(cell, area));
  paintFrame(painter, square, area, cells.length === 0);
  const chips = records(frame.chips);
  const radius = chips.length > 40 ? 3 : 5;
  for (const chip of chips) paintChip(painter, chip, frame.streams, area, radius, time);
  const scale = faithful ? "to scale" : "short side stretched";
  painter.remark(`${scale} · ${frame.note}`, square.x, square.y + square.size + 11, side - 24);
}

function paintAxes(painter: Painter, frame: MatrixFrame, { x, y, size }: Square): void {
  const [down = "", across = ""] = frame.streams;
  const [rows = 0, columns = 0] = frame.rows;
  const right = `${across}: ${count(columns)} tuples  →`;
  painter.text(right, x, y - 10, { colour: painter.letters(painter.stream(1)) });
  const left = `←  ${down}: ${count(rows)} tuples`;
  const colour = painter.letters(painter.stream(0));
  painter.text(left, x - 14, y + size, { colour, turn: -Math.PI / 2 });
}

function paintCell(painter: Painter, cell: MatrixCell, box: Box): void {
  const { host, percent, moving } = cell;
  const { x, y, wide, tall } = box;
  const colour = painter.host(host);
  painter.fill(box, colour, 0.2 + (0.8 * percent) / 100);
  painter.outline(box, { colour: painter.bg, wide: Math.min(1, wide / 6, tall / 6) });
  const migrates = moving ? ", migrating" : "";
  painter.target(box, `host ${host}: ${percent}% of due pairs joined${migrates}`);
  const font = fontSize(host, box, 13);
  if (font === undefined) return;
  const on = percent > 50 ? textColor(colour) : painter.fg;
  painter.text(host, x + wide / 2, y + tall / 2, { colour: on, align: "center", font });
}

/** Of a cell that migrates, unless it is too small. */
function paintOutline(painter: Painter, { x, y, wide, tall }: Box): void {
  const least = Math.min(wide, tall);
  if (least < 9) return;
  const inset = Math.min(1.5, wide / 4, tall / 4);
  const box = { x: x + inset, y: y + inset, wide: wide - 2 * inset, tall: tall - 2 * inset };
  const dash = least < 26 ? [] : [4, 2];
  painter.outline(box, { colour: painter.fg, wide: Math.min(2, wide / 12, tall / 12), dash });
}

/** Round the matrix, and paler round what the run's largest one would fill. */
function paintFrame(painter: Painter, { x, y, size }: Square, area: Box, empty: boolean): void {
  const around = (box: Box) => {
    return { x: x - 0.5, y: y - 0.5, wide: box.wide + 1, tall: box.tall + 1 };
  };
  painter.outline(around({ x, y, wide: size, tall: size }), { colour: painter.rule, dash: [1, 3] });
  painter.outline(around(area), { colour: painter.rule });
  const style = { colour: painter.muted, align: "center" } as const;
  if (empty) painter.text("no pair has met yet", x + size / 2, y + size / 2, style);
}

function paintChip(
  painter: Painter,
  chip: MoveChip,
  streams: string[],
  area: Box,
  radius: number,
  time: number,
): void {
  const [x, y] = chipAt(chip, area, time);
  const colour = painter.stream(chip.stream);
  painter.line(chipAt(chip, area, 0), [x, y], { colour, wide: 1.2 }, 0.55);
  const box = { x: x - radius, y: y - radius, wide: 2 * radius, tall: 2 * radius };
  painter.fill(box, painter.bg);
  painter.outline(box, { colour, wide: 2 });
  const around = { x: box.x - 1, y: box.y - 1, wide: box.wide + 2, tall: box.tall + 2 };
  const moved = `${count(chip.rows)} tuples of ${streams[chip.stream]}`;
  painter.target(around, `${moved}: host ${chip.source} → host ${chip.target}`);
}
