// Curves over the batches: a panel has one or two, whose axes are at the left and at the right.
import { short } from "../base/format.ts";
import { type Box, type Painter, type Shade, SMALL, type Stroke } from "../base/painter.ts";
import type { BatchRange, TimelineCurve, TimelineFrame } from "../frames.ts";

/** The axis of a curve: from ``floor`` to ``top``, of which ``peak`` is the most that is shown. */
export interface Axis {
  floor: number;
  peak: number;
  top: number;
}

export function axisOf(curve: TimelineCurve): Axis {
  const { floor = 0, ceiling = 0, cap = Infinity, bound = [], baselines: ghosts = [] } = curve;
  const all = [...curve.values, ...bound, ...ghosts.flatMap(({ values }) => values)];
  const known = all.filter((value) => value !== null);
  const peak = Math.min(cap, Math.max(ceiling, ...known));
  return { floor, peak, top: peak + (peak - floor) * 0.06 || 1 };
}

/** The height on the canvas of a value. */
export const heightOf = (value: number, { floor, top }: Axis, { y, tall }: Box): number =>
  y + tall - ((value - floor) / (top - floor)) * tall;

/** The first and the last batch of the time axis, which has two or more. */
export function extent({ batch, last }: Pick<TimelineFrame, "batch" | "last">): BatchRange {
  const first = batch[0] ?? 1;
  return { first, last: Math.max(batch.at(-1) ?? 0, last, first + 1) };
}

/** The place of a batch on the canvas. */
export const placeOf = (batch: number, { first, last }: BatchRange, { x, wide }: Box): number =>
  x + ((batch - first) / (last - first)) * wide;

/** Batches that are named below the axis: eleven at most. */
export function ticks({ first, last }: BatchRange): number[] {
  const every = Math.ceil((last - first) / 10);
  return Array.from(
    { length: Math.floor((last - first) / every) + 1 },
    (_, k) => first + k * every,
  );
}

/** Runs of values that are known, as [batch, value]. */
export function strokes(batches: number[], values: (number | null)[]): [number, number][][] {
  const found: [number, number][][] = [];
  let open: [number, number][] | undefined;
  values.forEach((value, k) => {
    if (value === null) {
      open = undefined;
      return;
    }
    if (open === undefined) {
      open = [];
      found.push(open);
    }
    open.push([batches[k] ?? 0, value]);
  });
  return found;
}

export function paintMigration(
  painter: Painter,
  { first, last }: BatchRange,
  span: BatchRange,
  panel: Box,
) {
  const left = Math.max(panel.x, placeOf(first - 0.5, span, panel));
  const right = Math.min(panel.x + panel.wide, placeOf(last + 0.5, span, panel));
  painter.fill({ ...panel, x: left, wide: right - left }, painter.palette.migration, 0.25);
}

/** The names of a panel's curves, shorter where they would run into each other. */
export function namesOf(
  curves: TimelineCurve[],
  wide: number,
  width: (text: string) => number,
): string[] {
  const names = curves.map(({ name }) => name);
  const needed = names.reduce((sum, name) => sum + width(name) + 10, 0);
  const short = (name: string) => name.replace(/,.*/, "").replace(/ per second$/, "/s");
  return needed > wide ? names.map(short) : names;
}

export class CurvePainter {
  private readonly painter: Painter;
  private readonly curve: TimelineCurve;
  private readonly panel: Box;
  private readonly atRight: boolean;
  private readonly name: string;
  private readonly colour: string;
  private readonly letters: string;
  private readonly axis: Axis;

  constructor(painter: Painter, curve: TimelineCurve, panel: Box, atRight: boolean, name: string) {
    this.painter = painter;
    this.curve = curve;
    this.panel = panel;
    this.atRight = atRight;
    this.name = name;
    this.colour = painter.shade(curve.color as Shade);
    this.letters = painter.letters(this.colour);
    this.axis = axisOf(curve);
  }

  paint(batches: number[], span: BatchRange): void {
    const { curve, panel } = this;
    if (curve.bound) this.paintBound(strokes(batches, curve.bound), span);
    const align = this.atRight ? "right" : "left";
    const x = this.atRight ? panel.x + panel.wide : panel.x;
    this.painter.text(this.name, x, panel.y - 8, { colour: this.letters, align, font: SMALL });
    if (curve.values.every((value) => value === null)) return;
    this.paintAxis();
    this.paintStrokes(strokes(batches, curve.values), span);
    (curve.baselines ?? []).forEach(({ name, batch, values }, k) => {
      this.paintGhost(name, strokes(batch, values), span, k % 2 ? 9 : -7);
    });
  }

  private height(value: number): number {
    return heightOf(value, this.axis, this.panel);
  }

  /** A text beside the panel, on the curve's side. */
  private aside(text: string, y: number, colour: string): void {
    const { x, wide } = this.panel;
    const align = this.atRight ? "left" : "right";
    this.painter.text(text, this.atRight ? x + wide + 4 : x - 4, y, { colour, align });
  }

  /** What is allowed, by batch. */
  private paintBound(found: [number, number][][], span: BatchRange): void {
    const stroke = { colour: this.painter.shade("ratio_bound"), wide: 1.2, dash: [5, 3] };
    this.inside(() => this.trace(found, span, stroke));
    const last = found.at(-1)?.at(-1);
    const letters = this.painter.letters(stroke.colour);
    if (last) this.aside(last[1].toFixed(2), this.height(last[1]), letters);
  }

  /** ``aside``: how far below its end the name stands. */
  private paintGhost(
    name: string,
    found: [number, number][][],
    span: BatchRange,
    aside: number,
  ): void {
    this.inside(() => {
      this.trace(found, span, { colour: this.colour, wide: 1.4, dash: [2, 3] });
      const last = found.at(-1)?.at(-1);
      if (!last) return;
      const [x, y] = [placeOf(last[0], span, this.panel), this.height(last[1])];
      const low = Math.max(y + aside, this.panel.y + 6);
      this.painter.text(name, x - 2, low, { colour: this.letters, align: "right", font: SMALL });
    });
  }

  /** The ends of the axis; the upper one only where the bound leaves room. */
  private paintAxis(): void {
    const { floor, peak } = this.axis;
    const bound = this.curve.bound?.findLast((value) => value !== null);
    this.aside(short(floor), this.panel.y + this.panel.tall - 4, this.letters);
    if (peak <= floor) return;
    if (bound && Math.abs(this.height(bound) - this.height(peak)) <= 13) return;
    this.aside(short(peak), this.height(peak) + 2, this.letters);
  }

  private paintStrokes(found: [number, number][][], span: BatchRange): void {
    this.inside(() => {
      this.trace(found, span, { colour: this.colour, wide: 1.6 });
      const [only, ...more] = found.flat();
      if (!only || more.length) return;
      const [left, top] = [placeOf(only[0], span, this.panel), this.height(only[1])];
      this.painter.fill({ x: left - 2, y: top - 2, wide: 4, tall: 4 }, this.colour);
    });
  }

  private trace(found: [number, number][][], span: BatchRange, stroke: Stroke): void {
    const place = ([batch, value]: [number, number]): [number, number] => [
      placeOf(batch, span, this.panel),
      this.height(value),
    ];
    for (const run of found) this.painter.path(run.map(place), stroke);
  }

  /** Paints within the panel only. */
  private inside(paint: () => void): void {
    const { context } = this.painter;
    const { x, y, wide, tall } = this.panel;
    context.save();
    context.beginPath();
    context.rect(x - 2, y - 1, wide + 4, tall + 2);
    context.clip();
    paint();
    context.restore();
  }
}
