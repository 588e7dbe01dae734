// What happened batch by batch, on one time axis: a flag for each decision, curves, and what each
// host did. A click goes to a batch, a drag shows a stretch of them, a double click all.
import { Canvas, type Pointer } from "../base/canvas.ts";
import { short } from "../base/format.ts";
import { type Box, type Painter, SMALL } from "../base/painter.ts";
import type {
  Annotation,
  BatchRange,
  CockpitPage,
  HostRows,
  Palette,
  TimelineCurve,
} from "../frames.ts";
import { CurvePainter, extent, namesOf, paintMigration, placeOf, ticks } from "./timeline.ts";

const FLAGS = 20;
const PANEL = 48;
const GAP = 18;
const AXIS = 34;
const [LEFT, RIGHT] = [44, 46];
/** Pixels that the pointer may move in a click. */
const STEADY = 5;

const UNITS: Record<string, string> = {
  busy: "s",
  waits: "s",
  compared: "pairs",
  shed: "pairs",
  results: "results",
};

/** Pixels of a host's row. */
export const rowOf = (hosts: number): number => Math.max(2, Math.min(9, Math.floor(112 / hosts)));

/** The batch at a place of the axis. */
export function batchAt(x: number, { first, last }: BatchRange, { x: left, wide }: Box): number {
  const share = Math.max(0, Math.min(1, (x - left) / wide));
  return Math.round(first + share * (last - first));
}

/** A stretch within another, of two batches at least. */
export function within(from: number, to: number, whole: BatchRange): BatchRange {
  const [low, high] = from < to ? [from, to] : [to, from];
  const first = Math.max(whole.first, Math.min(low, whole.last - 1));
  return { first, last: Math.max(first + 1, Math.min(high, whole.last)) };
}

/** What a host did in a batch, in words. */
export function didWords({ batch, names, values }: HostRows, at: number, host: number): string {
  const row = values[at];
  const did = names.map((name, k) => {
    const [value, unit] = [row?.[k]?.[host] ?? 0, unitOf(name)];
    return `${name} ${unit === "s" ? value.toFixed(3) : short(value)} ${unit}`;
  });
  return [`host ${host}, batch ${batch[at]}`, ...did].join("\n");
}

/** What a measure of hosts is counted in. */
export const unitOf = (name: string): string => UNITS[name] ?? "tuples";

export class Lines {
  private readonly canvas: Canvas;
  private readonly seek: (batch: number) => void;
  private readonly zoomed: (stretch: BatchRange | undefined) => void;
  private page: CockpitPage | undefined;
  private batch = 1;
  private stretch: BatchRange | undefined;
  private measure = "";
  private drag: { from: Pointer; to: Pointer } | undefined;

  constructor(
    box: HTMLElement,
    palette: Palette,
    seek: (batch: number) => void,
    zoomed: (stretch: BatchRange | undefined) => void,
  ) {
    this.seek = seek;
    this.zoomed = zoomed;
    const tall = () => this.tall();
    const paint = (painter: Painter, width: number) => this.paint(painter, width);
    this.canvas = new Canvas(box, palette, { tall, paint });
    this.listen(this.canvas.element);
  }

  show(page: CockpitPage, batch: number): void {
    this.page = page;
    this.batch = batch;
    this.canvas.paint();
  }

  /** Shows this measure of the hosts. */
  choose(measure: string): void {
    this.measure = measure;
    this.canvas.paint();
  }

  /** Shows these batches, or all. */
  zoom(stretch?: BatchRange): void {
    this.stretch = stretch;
    this.zoomed(stretch);
    this.canvas.paint();
  }

  close(): void {
    this.canvas.close();
  }

  private get whole(): BatchRange {
    const { batch, last, panels } = this.page?.timeline ?? { batch: [], last: 1, panels: [] };
    const ghosts = panels.flat().flatMap((curve) => curve.baselines ?? []);
    const ahead = ghosts.map((ghost) => ghost.batch.at(-1) ?? 0);
    return extent({ batch, last: Math.max(last, ...ahead) });
  }

  private get span(): BatchRange {
    return this.stretch ? within(this.stretch.first, this.stretch.last, this.whole) : this.whole;
  }

  private get hosts(): number {
    return Math.max(0, ...(this.page?.hosts.values ?? []).map((values) => values[0]?.length ?? 0));
  }

  private area(width: number): Box {
    return { x: LEFT, y: FLAGS, wide: width - LEFT - RIGHT, tall: this.tall() - FLAGS - AXIS };
  }

  private tall(): number {
    const panels = this.page?.timeline.panels.length ?? 0;
    const rows =
      this.hosts && this.page?.hosts.names.length ? GAP + this.hosts * rowOf(this.hosts) : 0;
    return FLAGS + panels * (PANEL + GAP) + rows + AXIS;
  }

  private paint(painter: Painter, width: number): void {
    const { page, span } = this;
    if (!page) return;
    const area = this.area(width);
    let y = area.y;
    for (const curves of page.timeline.panels) {
      const panel = { ...area, y: y + GAP, tall: PANEL };
      this.paintPanel(painter, curves, panel, span);
      y += PANEL + GAP;
    }
    if (this.hosts) this.paintHosts(painter, { ...area, y: y + GAP }, span);
    this.paintFlags(painter, area, span);
    this.paintCursor(painter, area, span);
    this.paintAxis(painter, area, span);
  }

  private paintPanel(
    painter: Painter,
    curves: TimelineCurve[],
    panel: Box,
    span: BatchRange,
  ): void {
    const { batch, migrations } = this.page?.timeline ?? { batch: [], migrations: [] };
    for (const stretch of migrations) paintMigration(painter, stretch, span, panel);
    painter.outline(panel, { colour: painter.rule });
    const names = namesOf(curves, panel.wide, (text) => painter.width(text, SMALL));
    curves.forEach((curve, side) => {
      const name = names[side] ?? curve.name;
      new CurvePainter(painter, curve, panel, side === 1, name).paint(batch, span);
    });
    batch.forEach((number, k) => {
      const told = curves.map(({ name, values }) => `${name}: ${short(values[k] ?? Number.NaN)}`);
      const words = told.map((text) => text.replace("NaN", "not known"));
      this.column(painter, number, panel, span, [`batch ${number}`, ...words].join("\n"));
    });
  }

  /** What the pointer is told at a batch. */
  private column(
    painter: Painter,
    batch: number,
    panel: Box,
    span: BatchRange,
    text: string,
  ): void {
    if (batch < span.first || batch > span.last) return;
    const wide = panel.wide / (span.last - span.first);
    painter.target({ ...panel, x: placeOf(batch, span, panel) - wide / 2, wide }, text);
  }

  private paintHosts(painter: Painter, area: Box, span: BatchRange): void {
    const rows = this.page?.hosts;
    if (!rows?.names.length) return;
    const name = rows.names.includes(this.measure) ? this.measure : (rows.names[0] ?? "");
    const k = rows.names.indexOf(name);
    const most = Math.max(...rows.values.flatMap((values) => values[k] ?? []), 1e-9);
    const tall = rowOf(this.hosts);
    const wide = area.wide / (span.last - span.first);
    const full = `full colour is ${short(most)} ${unitOf(name)}`;
    const whole = `each host: ${name} in a batch, ${full}`;
    const text = painter.width(whole, SMALL) <= area.wide ? whole : `${name}: ${full}`;
    painter.text(text, area.x, area.y - 8, { colour: painter.muted, font: SMALL, most: area.wide });
    rows.batch.forEach((batch, at) => {
      if (batch < span.first || batch > span.last) return;
      const x = Math.max(area.x, placeOf(batch, span, area) - wide / 2);
      const end = Math.min(area.x + area.wide, placeOf(batch, span, area) + wide / 2);
      rows.values[at]?.[k]?.forEach((value, host) => {
        const box = { x, y: area.y + host * tall, wide: end - x, tall };
        painter.fill(box, painter.shade("ratio"), 0.06 + (0.94 * value) / most);
        painter.target(box, didWords(rows, at, host));
      });
    });
    const frame = { ...area, tall: this.hosts * tall };
    painter.outline(frame, { colour: painter.rule });
    const style = { colour: painter.muted, align: "right", font: SMALL } as const;
    painter.text("0", area.x - 4, area.y + 5, style);
    if (this.hosts > 1) painter.text(this.hosts - 1, area.x - 4, area.y + frame.tall - 4, style);
  }

  private paintFlags(painter: Painter, area: Box, span: BatchRange): void {
    for (const flag of this.page?.annotations ?? []) {
      if (flag.batch < span.first || flag.batch > span.last) continue;
      this.paintFlag(painter, flag, placeOf(flag.batch, span, area), area);
    }
  }

  private paintFlag(painter: Painter, { batch, text }: Annotation, x: number, area: Box): void {
    const here = batch === this.batch;
    const colour = here ? painter.shade("ratio_bound") : painter.shade("migration");
    painter.line([x, 4], [x, FLAGS], { colour, wide: here ? 2 : 1 });
    painter.polygon(
      [
        [x, 3],
        [x + 8, 6.5],
        [x, 10],
      ],
      colour,
    );
    painter.target({ x: x - 5, y: 0, wide: 14, tall: area.y }, text);
  }

  private paintCursor(painter: Painter, area: Box, span: BatchRange): void {
    const x = placeOf(this.batch, span, area);
    const inside = this.batch >= span.first && this.batch <= span.last;
    const { y, tall } = area;
    if (inside) painter.line([x, y], [x, y + tall], { colour: painter.fg, wide: 1 }, 0.7);
    if (!this.drag) return;
    const [a, b] = [this.drag.from.x, this.drag.to.x];
    const box = { x: Math.min(a, b), y, wide: Math.abs(a - b), tall };
    painter.fill(box, painter.shade("ratio"), 0.15);
  }

  private paintAxis(painter: Painter, area: Box, span: BatchRange): void {
    const style = { colour: painter.muted, align: "center" } as const;
    const y = area.y + area.tall + 10;
    for (const batch of ticks(span)) painter.text(batch, placeOf(batch, span, area), y, style);
    painter.text(this.page?.timeline.axis ?? "", area.x + area.wide / 2, y + 14, style);
  }

  private listen(element: HTMLCanvasElement): void {
    element.addEventListener("pointerdown", (event) => {
      const from = this.canvas.at(event);
      this.drag = { from, to: from };
      element.setPointerCapture(event.pointerId);
    });
    element.addEventListener("pointermove", (event) => {
      if (!this.drag) return;
      this.drag.to = this.canvas.at(event);
      this.canvas.paint();
    });
    element.addEventListener("pointerup", () => this.drop());
    element.addEventListener("pointercancel", () => {
      this.drag = undefined;
    });
    element.addEventListener("dblclick", () => this.zoom());
  }

  private drop(): void {
    if (!this.drag) return;
    const { from, to } = this.drag;
    this.drag = undefined;
    const area = this.area(from.width);
    const [a, b] = [from.x, to.x].map((x) => batchAt(x, this.span, area)) as [number, number];
    if (Math.abs(from.x - to.x) <= STEADY) this.seek(a);
    else this.zoom(within(a, b, this.whole));
  }
}
