// The canvas of a stage, with its colours and texts; parts of the picture paint with it.

import type { Palette } from "../frames.ts";
import { cycled, darker, paler } from "./colors.ts";
import { wrapped } from "./format.ts";

export const BOLD = "600 12px system-ui, sans-serif";
export const SMALL = "11px system-ui, sans-serif";

/** Pixels left blank at both sides, so that no line or letter is cut. */
export const EDGE = 2;

export interface Box {
  x: number;
  y: number;
  wide: number;
  tall: number;
}

/** A part of the picture that says something when the pointer is over it. */
export interface Target {
  box: Box;
  text: string;
}

/** The topmost target at a point. */
export const hit = (targets: Target[], x: number, y: number): Target | undefined =>
  targets.findLast(
    ({ box }) => x >= box.x && x <= box.x + box.wide && y >= box.y && y <= box.y + box.tall,
  );

/** The size of letters in which a number fits a box; undefined where none that can be read does. */
export function fontSize(text: string | number, box: Box, most: number): number | undefined {
  const size = Math.min(most, box.tall - 2, (box.wide - 3) / (0.62 * String(text).length));
  return size >= 9 ? size : undefined;
}

export interface TextStyle {
  colour?: string;
  align?: CanvasTextAlign;
  /** Pixels, or a whole font. */
  font?: number | string;
  turn?: number;
  /** The widest it may get. */
  most?: number;
}

export interface Stroke {
  colour: string;
  wide?: number;
  dash?: number[];
}

/** A palette's colour of the time line. */
export type Shade = Exclude<keyof Palette, "hosts" | "streams">;

export class Painter {
  readonly context: CanvasRenderingContext2D;
  readonly palette: Palette;
  readonly targets: Target[] = [];
  readonly fg: string;
  readonly muted: string;
  readonly rule: string;
  readonly bg: string;
  private readonly dark: boolean;

  constructor(context: CanvasRenderingContext2D, palette: Palette, css: CSSStyleDeclaration) {
    const named = (name: string) => css.getPropertyValue(`--braid-${name}`).trim();
    this.context = context;
    this.palette = palette;
    this.fg = named("fg");
    this.muted = named("muted");
    this.rule = named("line");
    this.bg = named("bg");
    this.dark = Number(css.color.match(/\d+/)?.[0] ?? 0) > 127;
  }

  host(host: number): string {
    return cycled(this.palette.hosts, host);
  }

  stream(stream: number): string {
    return this.onGround(cycled(this.palette.streams, stream));
  }

  shade(name: Shade): string {
    return this.onGround(this.palette[name]);
  }

  target(box: Box, text: string): void {
    this.targets.push({ box, text });
  }

  text(text: string | number, x: number, y: number, style: TextStyle = {}): void {
    const { context } = this;
    const font = style.font ?? 12;
    context.save();
    context.translate(x, y);
    context.rotate(style.turn ?? 0);
    context.fillStyle = style.colour ?? this.fg;
    context.font = typeof font === "number" ? `${font}px system-ui, sans-serif` : font;
    context.textAlign = style.align ?? "left";
    context.textBaseline = "middle";
    context.fillText(String(text), 0, 0, style.most);
    context.restore();
  }

  /** How wide a text is. */
  width(text: string, font: string): number {
    this.context.font = font;
    return this.context.measureText(text).width;
  }

  /** A note in two lines at most. */
  remark(text: string, x: number, y: number, most: number): void {
    this.context.font = SMALL;
    const fits = (line: string) => this.context.measureText(line).width <= most;
    wrapped(text, fits).forEach((line, k) => {
      this.text(line, x, y + 14 * k, { colour: this.muted, font: SMALL, most });
    });
  }

  fill({ x, y, wide, tall }: Box, colour: string, alpha = 1): void {
    this.context.globalAlpha = alpha;
    this.context.fillStyle = colour;
    this.context.fillRect(x, y, wide, tall);
    this.context.globalAlpha = 1;
  }

  outline({ x, y, wide, tall }: Box, stroke: Stroke): void {
    this.pen(stroke);
    this.context.strokeRect(x, y, wide, tall);
    this.context.setLineDash([]);
  }

  line(from: [number, number], to: [number, number], stroke: Stroke, alpha = 1): void {
    this.pen(stroke);
    this.context.globalAlpha = alpha;
    this.context.beginPath();
    this.context.moveTo(...from);
    this.context.lineTo(...to);
    this.context.stroke();
    this.context.globalAlpha = 1;
    this.context.setLineDash([]);
  }

  path(points: [number, number][], stroke: Stroke): void {
    this.pen(stroke);
    this.context.beginPath();
    points.forEach(([x, y], k) => {
      if (k) this.context.lineTo(x, y);
      else this.context.moveTo(x, y);
    });
    this.context.stroke();
    this.context.setLineDash([]);
  }

  polygon(points: [number, number][], colour: string): void {
    this.context.fillStyle = colour;
    this.context.beginPath();
    for (const [x, y] of points) this.context.lineTo(x, y);
    this.context.fill();
  }

  private pen({ colour, wide = 1, dash = [] }: Stroke): void {
    this.context.strokeStyle = colour;
    this.context.lineWidth = wide;
    this.context.setLineDash(dash);
  }

  /** A colour of the picture, as texts have it. */
  letters(colour: string): string {
    return this.dark ? colour : darker(colour);
  }

  /** Lines and texts on a dark ground are painted paler than on a light one. */
  private onGround(colour: string): string {
    return this.dark ? paler(colour) : colour;
  }
}
