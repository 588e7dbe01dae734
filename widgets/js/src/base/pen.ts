// Paints on a canvas that is as large as its box, and keeps what can be selected and where texts are.
import { type Box, grown, type Point } from "./geometry.ts";
import type { Colour, Theme } from "./theme.ts";

/** A part of the picture that can be selected, with what it says. */
export interface Target {
  box: Box;
  name: string;
  text: string;
}

export interface BoxStyle {
  fill?: Colour;
  stroke?: Colour | undefined;
  width?: number;
  dash?: number[];
  round?: number;
  alpha?: number;
}

export interface TextStyle {
  colour?: Colour;
  size?: number;
  bold?: boolean;
  align?: CanvasTextAlign;
  turn?: number;
  /** The color of a ground under the letters. */
  ground?: Colour | undefined;
  /** The width that there is: a longer text is left out. */
  room?: number;
  /** Whether it is left out where another text is. */
  isMinor?: boolean;
}

/** Dashes of no length are dots; ``offset`` moves them towards the start. */
type LineStyle = [colour: Colour, width?: number, dash?: number[], alpha?: number, offset?: number];

/** Texts that explain. */
export const SMALL: TextStyle = { size: 11, colour: "muted" };

/** The topmost target at a point. */
export const hit = (targets: Target[], x: number, y: number): Target | undefined =>
  targets.findLast(
    ({ box }) => x >= box.x && x <= box.x + box.wide && y >= box.y && y <= box.y + box.tall,
  );

const FONT = 'system-ui, "Segoe UI", sans-serif';

/** A canvas whose texts tests can read. */
type Canvas = HTMLCanvasElement & { texts?: (Box & { text: string })[] };

export class Pen {
  readonly canvas: Canvas;
  readonly theme: Theme;
  targets: Target[] = [];
  /** The name of what is selected. */
  selected = "";
  wide = 0;
  tall = 0;
  private readonly context: CanvasRenderingContext2D;

  constructor(canvas: HTMLCanvasElement, theme: Theme) {
    const context = canvas.getContext("2d");
    if (!context) throw new Error("this browser has no canvas");
    this.canvas = canvas;
    this.theme = theme;
    this.context = context;
  }

  /** Begins a picture anew, as large as the canvas is seen; false where it is not seen. */
  begin(): boolean {
    const { clientWidth: wide, clientHeight: tall } = this.canvas;
    if (!wide || !tall) return false;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(wide * ratio), Math.round(tall * ratio)];
    Object.assign(this.canvas, { width, height, texts: [] }); // also clears it
    Object.assign(this, { wide, tall, targets: [] });
    this.context.scale(ratio, ratio);
    return true;
  }

  /** The outline of what is selected or has failed. */
  outline(name: string): BoxStyle | undefined {
    const { failed, pulse: alpha } = this.theme;
    if (failed.has(name)) return { stroke: "bad", width: 3, round: 3, alpha };
    return name === this.selected ? { stroke: "accent", width: 3, round: 3 } : undefined;
  }

  /** Offers a part to be selected, and outlines it inside, as neighbours are painted later. */
  target(box: Box, name: string, text: string): void {
    this.targets.push({ box, name, text });
    const outline = this.outline(name);
    if (outline) this.box(grown(box, -2), outline);
  }

  box({ x, y, wide, tall }: Box, style: BoxStyle): void {
    this.context.beginPath();
    this.context.roundRect(x, y, Math.max(0, wide), Math.max(0, tall), style.round ?? 0);
    this.finish(style);
  }

  /** A line with a gap where a point is not known (not a number). */
  line(points: Point[], ...[stroke, width = 1, dash = [], alpha = 1, offset = 0]: LineStyle): void {
    this.context.lineDashOffset = offset;
    this.context.beginPath();
    points.forEach(([x, y], k) => {
      if (Number.isNaN(points[k - 1]?.[1])) this.context.moveTo(x, y);
      else this.context.lineTo(x, y);
    });
    this.finish({ stroke, width, dash, alpha }, dash[0] ? "butt" : "round");
  }

  straight(x0: number, y0: number, x1: number, y1: number, ...style: LineStyle): void {
    const start: Point = [x0, y0];
    this.line([start, [x1, y1]], ...style);
  }

  /** A piece of a ring: angles in radians. */
  arc([x, y]: Point, radius: number, ends: [number, number], style: BoxStyle): void {
    this.context.beginPath();
    this.context.arc(x, y, radius, ...ends);
    this.finish(style);
  }

  dot(at: Point, radius: number, fill: Colour, stroke?: Colour, width = 1.5): void {
    this.arc(at, radius, [0, 2 * Math.PI], { fill, stroke, width });
  }

  text(text: string, x: number, y: number, style: TextStyle = {}): void {
    const { context } = this;
    const { size = 12, align = "left", turn = 0, colour = "ink", ground: fill } = style;
    const wide = this.width(text, size, style.bold);
    const left = align === "center" ? -wide / 2 : align === "left" ? 0 : -wide;
    const flat = { x: x + left, y: y - size / 2, wide, tall: size };
    const box = turn ? { x: x - size / 2, y: y - left - wide, wide: size, tall: wide } : flat;
    if (!text || wide > (style.room ?? wide) || (style.isMinor && !this.isFree(box))) return;
    context.save();
    context.translate(x, y);
    context.rotate(turn);
    if (fill) this.box({ x: left - 3, y: -0.7 * size, wide: wide + 6, tall: 1.4 * size }, { fill });
    context.textBaseline = "middle";
    context.fillStyle = this.theme.shade(colour);
    context.fillText(text, left, 0);
    context.restore();
    this.canvas.texts?.push({ ...box, text });
  }

  /** The width of a text, in pixels. */
  width(text: string, size = 12, bold = false): number {
    this.context.font = `${bold ? 600 : 450} ${size}px ${FONT}`;
    return this.context.measureText(text).width;
  }

  /** Whether a box lies on the canvas and beside no text so far. */
  private isFree({ x, y, wide, tall }: Box): boolean {
    const [right, low] = [x + wide, y + tall];
    const texts = this.canvas.texts ?? [];
    const isApart = (text: Box) =>
      right + 6 < text.x || text.x + text.wide + 6 < x || low < text.y || text.y + text.tall < y;
    return x >= 0 && y >= 0 && right <= this.wide && low <= this.tall && texts.every(isApart);
  }

  /** Fills and strokes the path that was begun. */
  private finish(style: BoxStyle, lineCap: CanvasLineCap = "butt"): void {
    const { context, theme } = this;
    const { fill, stroke, width: lineWidth = 1, dash = [] } = style;
    context.globalAlpha = style.alpha ?? 1;
    if (fill) {
      context.fillStyle = theme.shade(fill);
      context.fill();
    }
    if (stroke) {
      const strokeStyle = theme.shade(stroke);
      Object.assign(context, { strokeStyle, lineWidth, lineCap, lineJoin: "round" });
      context.setLineDash(dash);
      context.stroke();
    }
    context.globalAlpha = 1;
  }
}
