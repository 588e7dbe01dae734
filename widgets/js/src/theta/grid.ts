// The map of a join of two streams: the join matrix and its hosts, side by side where there is room.
import { Canvas } from "../base/canvas.ts";
import type { Painter } from "../base/painter.ts";
import type { GridFrame, Palette } from "../frames.ts";
import { paintHosts } from "./hosts.ts";
import { paintMatrix } from "./matrix.ts";

/** Where the two parts lie, and how tall both are. */
export function layout(width: number) {
  const beside = width >= 620;
  const side = Math.floor(Math.min(beside ? (width - 24) / 2 : width, beside ? 372 : 520));
  const left = beside ? Math.floor((width - 24) / 2) : side;
  const hosts = beside ? { x: left + 24, y: 0 } : { x: 0, y: side + 26 };
  return { side, hosts, tall: hosts.y + side + 16 };
}

/** All frames on the scale of the greatest. */
export function oneScale(frames: GridFrame[]): void {
  const top = Math.max(0, ...frames.map(({ hosts }) => hosts.scale_max));
  const most = Math.max(0, ...frames.map(({ matrix }) => matrix.max_rows));
  for (const frame of frames) {
    frame.hosts.scale_max = top;
    frame.matrix.max_rows = most;
  }
}

export class GridView {
  private readonly canvas: Canvas;
  private frame: GridFrame | undefined;

  constructor(box: HTMLElement, palette: Palette) {
    const tall = (width: number) => layout(width).tall;
    const paint = (painter: Painter, width: number, time: number) => {
      this.paint(painter, width, time);
    };
    this.canvas = new Canvas(box, palette, { tall, paint });
  }

  draw(frame: GridFrame, glide: number): void {
    this.frame = frame;
    this.canvas.paint(glide > 0 && frame.matrix.chips.rows.length > 0);
  }

  close(): void {
    this.canvas.close();
  }

  private paint(painter: Painter, width: number, time: number): void {
    if (!this.frame) return;
    const { side, hosts } = layout(width);
    paintMatrix(painter, this.frame.matrix, { x: 0, y: 0, size: side }, time);
    paintHosts(painter, this.frame.hosts, hosts.x, hosts.y, side);
  }
}
