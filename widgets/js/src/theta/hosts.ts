// One box for each host, at its row and column in its group's grid; the bar is what it stores, the
// tick the mean (ILF).
import { textColor } from "../base/colors.ts";
import { records } from "../base/columns.ts";
import { count } from "../base/format.ts";
import { BOLD, type Box, fontSize, type Painter } from "../base/painter.ts";
import type { HostCell, HostGroup, HostsFrame } from "../frames.ts";

export interface HostBox extends HostCell {
  mapping: boolean;
  box: Box;
}

/** Groups lie below one another; a group's height goes with the square root of its hosts. */
export function hostBoxes(groups: HostGroup[], { x, y, wide, tall }: Box): HostBox[] {
  const gap = groups.length > 1 ? 14 : 0;
  const root = (group: HostGroup) => Math.sqrt(group.cells.host.length);
  const total = groups.reduce((sum, group) => sum + root(group), 0);
  const room = tall - gap * (groups.length - 1);
  const found: HostBox[] = [];
  let top = y;
  for (const group of groups) {
    const height = (room * root(group)) / total;
    const size = { wide: wide / group.m, tall: height / group.n };
    for (const cell of records(group.cells)) {
      const corner = { x: x + cell.column * size.wide, y: top + cell.row * size.tall };
      found.push({ ...cell, mapping: group.mapping, box: { ...corner, ...size } });
    }
    top += height + gap;
  }
  return found;
}

/** Bars stand in boxes that are not much wider than tall, and lie in others. */
export const upright = ({ wide, tall }: Box): boolean => wide <= 2 * tall;

const padding = ({ wide, tall }: Box): number => Math.min(1, wide / 8, tall / 8);

/** The bar of a share of a full box. */
export function bar(box: Box, share: number): Box {
  const { x, y, wide, tall } = box;
  const pad = padding(box);
  if (!upright(box)) {
    return { x: x + pad, y: y + pad, wide: share * (wide - 2 * pad), tall: tall - 2 * pad };
  }
  const height = share * (tall - 2 * pad);
  return { x: x + pad, y: y + tall - pad - height, wide: wide - 2 * pad, tall: height };
}

export function paintHosts(
  painter: Painter,
  frame: HostsFrame,
  x: number,
  y: number,
  side: number,
): void {
  const area = { x, y: y + 40, wide: side, tall: side - 62 };
  const fits = painter.width(frame.title, BOLD) <= side;
  const title = fits ? frame.title : frame.title.replace(/^.*?: /, "");
  painter.text(title, x, y + 8, { font: BOLD, most: side });
  const scale = `tuples stored, a full box is ${count(frame.scale_max)}`;
  painter.text(scale, x, area.y - 10, { colour: painter.muted, most: side });
  for (const host of hostBoxes(frame.groups, area)) paintHost(painter, host, frame);
  painter.remark(frame.note, x, area.y + area.tall + 11, side);
}

function paintHost(painter: Painter, place: HostBox, frame: HostsFrame): void {
  const { stored, scale_max: top, mean, baseline: ghost } = frame;
  const { host, row, column, box, mapping } = place;
  const tuples = stored[host] ?? 0;
  const share = top ? tuples / top : 0;
  const colour = painter.host(host);
  painter.fill(bar(box, share), colour);
  painter.outline(box, { colour: painter.rule, wide: Math.min(1, box.wide / 6, box.tall / 6) });
  if (ghost !== null && top) paintLevel(painter, box, Math.min(1, ghost / top), [3, 3]);
  paintLevel(painter, box, top ? mean / top : 0);
  paintName(painter, host, box, share, colour);
  const where = mapping ? `, row ${row}, column ${column}` : "";
  painter.target(box, `host ${host}${where}: ${count(tuples)} tuples stored`);
}

/** A line where a bar of this share would end. */
function paintLevel(painter: Painter, box: Box, share: number, dash: number[] = []): void {
  const { x, y, wide, tall } = box;
  const end = bar(box, share);
  const colour = dash.length ? painter.fg : painter.shade("ratio_bound");
  const stroke = { colour, wide: dash.length ? 1 : 1.5, dash };
  if (upright(box)) painter.line([x, end.y], [x + wide, end.y], stroke);
  else painter.line([end.x + end.wide, y], [end.x + end.wide, y + tall], stroke);
}

/** The host's number, in a colour that reads on the bar where it lies on it. */
function paintName(painter: Painter, host: number, box: Box, share: number, bar: string): void {
  const { x, y, wide, tall } = box;
  const font = fontSize(host, box, 12);
  if (font === undefined) return;
  if (upright(box)) {
    const colour = share * tall > font ? textColor(bar) : painter.fg;
    const low = y + tall - padding(box) - font * 0.75;
    painter.text(host, x + wide / 2, low, { align: "center", colour, font });
  } else {
    const colour = share * wide > font * 2 ? textColor(bar) : painter.fg;
    painter.text(host, x + 4, y + tall / 2, { align: "left", colour, font });
  }
}
