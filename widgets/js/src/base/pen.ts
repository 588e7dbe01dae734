// Paints on a canvas that is as large as its box, and keeps what can be selected and where texts are.
import type { Colour, Theme } from "./theme.ts";

export interface Box {
  x: number;
  y: number;
  wide: number;
  tall: number;
}

export type Point = [number, number];

/** A part of the picture that can be selected, with what it says. */
export interface Target {
  box: Box;
  name: string;
  text: string;
}

export interface BoxStyle {
  fill?: Colour;
  stroke?: Colour;
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
  ground?: Colour;
}

type LineStyle = [colour: Colour, width?: number, dash?: number[], alpha?: number];

/** Texts that explain. */
export const SMALL: TextStyle = { size: 11, colour: "muted" };

/** The topmost target at a point. */
export const hit = (targets: Target[], x: number, y: number): Target | undefined =>
  targets.findLast(
    ({ box }) => x >= box.x && x <= box.x + box.wide && y >= box.y && y <= box.y + box.tall,
  );

/** Slow at both ends: of a share of the time, the share of the way. */
export const eased = (time: number): number =>
  time <= 0 ? 0 : time >= 1 ? 1 : time * time * (3 - 2 * time);

export const mix = (from: number, to: number, share: number): number => from + (to - from) * share;

/** The point at a share of the way from one to another. */
export const along = (a: Point, b: Point, share: number): Point => [
  mix(a[0], b[0], share),
  mix(a[1], b[1], share),
];

/** A box that is larger on all sides by so many pixels. */
export const grown = ({ x, y, wide, tall }: Box, by: number): Box => ({
  x: x - by,
  y: y - by,
  wide: wide + 2 * by,
  tall: tall + 2 * by,
});

/** A box in shares of an area, in its pixels. */
export const within = (unit: Box, area: Box): Box => ({
  x: area.x + unit.x * area.wide,
  y: area.y + unit.y * area.tall,
  wide: unit.wide * area.wide,
  tall: unit.tall * area.tall,
});

/** The box at a share of the way from one to another. */
export const between = (a: Box, b: Box, share: number): Box => ({
  x: mix(a.x, b.x, share),
  y: mix(a.y, b.y, share),
  wide: mix(a.wide, b.wide, share),
  tall: mix(a.tall, b.tall, share),
});

const FONT = 'system-ui, "Segoe UI", sans-serif';

/** A canvas whose texts tests can read. */
type Canvas = HTMLCanvasElement & { texts?: (Box & { text: string })[] };

export class Pen {
  readonly canvas: Canvas;
  readonly theme: Theme;
  targets: Target[] = [];
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
  begin(wide = this.canvas.clientWidth, tall = this.canvas.clientHeight): boolean {
    if (!wide || !tall) return false;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(wide * ratio), Math.round(tall * ratio)];
    if (this.canvas.width !== width || this.canvas.height !== height) {
      Object.assign(this.canvas, { width, height });
    }
    [this.wide, this.tall] = [wide, tall];
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, wide, tall);
    this.targets = [];
    this.canvas.texts = [];
    return true;
  }

  /** Puts what another pen of the same size has painted. */
  copy(from: Pen): void {
    this.context.drawImage(from.canvas, 0, 0, this.wide, this.tall);
    this.canvas.texts = [...(from.canvas.texts ?? [])];
    this.targets = [...from.targets];
  }

  /** Offers a part to be selected; one that has failed is outlined. */
  target(box: Box, name: string, text: string): void {
    this.targets.push({ box, name, text });
    const { failed, pulse: alpha } = this.theme;
    if (!failed.has(name)) return;
    // inside, as neighbours are painted later
    this.box(grown(box, -2.5), { stroke: "bad", width: 3, round: 3, alpha });
  }

  box({ x, y, wide, tall }: Box, style: BoxStyle): void {
    const { context } = this;
    const [w, h] = [Math.max(0, wide), Math.max(0, tall)];
    context.beginPath();
    if (style.round) context.roundRect(x, y, w, h, Math.min(style.round, w / 2, h / 2));
    else context.rect(x, y, w, h);
    this.finish(style);
  }

  line(points: Point[], ...[stroke, width = 1, dash = [], alpha = 1]: LineStyle): void {
    this.context.beginPath();
    const [first = [0, 0], ...others] = points;
    this.context.moveTo(...first);
    for (const point of others) this.context.lineTo(...point);
    this.finish({ stroke, width, dash, alpha });
  }

  straight(x0: number, y0: number, x1: number, y1: number, ...style: LineStyle): void {
    const ends: Point[] = [
      [x0, y0],
      [x1, y1],
    ];
    this.line(ends, ...style);
  }

  /** A piece of a ring: angles in radians. */
  arc([x, y]: Point, radius: number, ends: [number, number], stroke: Colour, width: number): void {
    this.context.beginPath();
    this.context.arc(x, y, radius, ...ends);
    this.finish({ stroke, width }, "butt");
  }

  dot([x, y]: Point, radius: number, fill: Colour, stroke?: Colour, width = 1.5): void {
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 2 * Math.PI);
    this.finish(stroke ? { fill, stroke, width } : { fill });
  }

  text(text: string, x: number, y: number, style: TextStyle = {}): void {
    const { context } = this;
    const { size = 12, align = "left", turn = 0 } = style;
    context.save();
    context.translate(x, y);
    context.rotate(turn);
    context.font = fontOf(size, style.bold);
    context.textAlign = align;
    context.textBaseline = "middle";
    const wide = context.measureText(text).width;
    const left = align === "center" ? -wide / 2 : align === "left" ? 0 : -wide;
    if (style.ground) {
      context.fillStyle = this.theme.shade(style.ground);
      context.fillRect(left - 3, -size * 0.7, wide + 6, size * 1.4);
    }
    context.fillStyle = this.theme.shade(style.colour ?? "ink");
    context.fillText(text, 0, 0);
    context.restore();
    const flat = { x: x + left, y: y - size / 2, wide, tall: size };
    const upright = { x: x - size / 2, y: y - left - wide, wide: size, tall: wide };
    this.canvas.texts?.push({ ...(turn ? upright : flat), text });
  }

  /** Whether a box lies on the canvas and on no text so far. */
  isFree({ x, y, wide, tall }: Box): boolean {
    if (x < 0 || y < 0 || x + wide > this.wide || y + tall > this.tall) return false;
    const texts = this.canvas.texts ?? [];
    return texts.every(
      (text) =>
        x + wide <= text.x ||
        text.x + text.wide <= x ||
        y + tall <= text.y ||
        text.y + text.tall <= y,
    );
  }

  /** The width of a text, in pixels. */
  width(text: string, size = 12, bold = false): number {
    this.context.font = fontOf(size, bold);
    return this.context.measureText(text).width;
  }

  /** Paints within a box only. */
  inside({ x, y, wide, tall }: Box, paint: () => void): void {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, wide, tall);
    this.context.clip();
    paint();
    this.context.restore();
  }

  /** Fills and strokes the path that was begun. */
  private finish(style: BoxStyle, lineCap: CanvasLineCap = style.dash?.length ? "butt" : "round") {
    const { context, theme } = this;
    const { fill, stroke, width: lineWidth = 1, dash = [], alpha: globalAlpha = 1 } = style;
    context.globalAlpha = globalAlpha;
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

const fontOf = (size: number, bold = false): string => `${bold ? 600 : 450} ${size}px ${FONT}`;

/** Calls back when a box gets another size, or the page another theme; what it returns ends that. */
export function watchLooks(box: Element, theme: Theme, changed: () => void): () => void {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const again = () => {
    theme.forget();
    requestAnimationFrame(changed); // once the page has its new style
  };
  const resize = new ResizeObserver(changed);
  const themes = new MutationObserver(again);
  const attributeFilter = ["data-jp-theme-light", "data-jp-theme-name", "class"];
  resize.observe(box);
  themes.observe(document.body, { attributes: true, attributeFilter });
  scheme.addEventListener("change", again);
  return () => {
    resize.disconnect();
    themes.disconnect();
    scheme.removeEventListener("change", again);
  };
}
