// The batches on one time axis: decisions, tracks, and the work of each host. All but
// the playhead is painted on a layer of its own, which is kept while nothing in it changes.
import type { Annotation, CockpitPage, Series, Track } from "../../frames.ts";
import { makePen } from "../base/canvas_map.ts";
import { add } from "../base/dom.ts";
import { count } from "../base/format.ts";
import type { Box, Point } from "../base/geometry.ts";
import { Pen, type TextStyle } from "../base/pen.ts";
import { type Colour, hue, type Shade, type Theme, watchLooks } from "../base/theme.ts";

const FLAGS = 30;
/** The middle of the labels of decisions. */
const LABEL = 15;
const AXIS = 16;
const GAP = 8;
/** Columns of hosts that are painted; more are drawn as wide as one of these. */
const MOST_ROWS = 256;

export interface Span {
  first: number;
  last: number;
}

/** The batches of the axis: those that there are, those that are planned, and those of baselines. */
export function spanOf({ timeline: { batch, last, tracks } }: CockpitPage): Span {
  const baselines = tracks.flatMap(({ series }) => series.map((each) => each.batch.at(-1) ?? 0));
  const first = batch[0] ?? 1;
  return { first, last: Math.max(first, last, batch.at(-1) ?? 1, ...baselines) };
}

/** The left side of a batch's column. */
export const placeOf = (batch: number, { first, last }: Span, { x, wide }: Box): number =>
  x + ((batch - first) / (last - first + 1)) * wide;

/** Batches named below the axis: eight at most, the last among them if there is room. */
export function ticks({ first, last }: Span): number[] {
  const every = Math.max(1, Math.ceil((last - first + 1) / 8));
  const from = Math.ceil(first / every);
  const length = Math.max(0, Math.floor(last / every) - from + 1);
  return Array.from({ length }, (_, k) => (from + k) * every);
}

/** A value with its unit, as it is said beside a track. */
export const said = (value: number | null | undefined, unit: string): string => {
  if (value === null || value === undefined) return "not known";
  return unit === "s" ? `${value.toFixed(2)} s` : `${count(value)} ${unit}`;
};

/** The value of a track at a batch: the sum of its bars, or its main line. */
export function valueAt({ kind, series }: Track, batch: number): number | null {
  const values = series.map((each) => each.values[each.batch.indexOf(batch)] ?? null);
  if (kind !== "bars") return values[0] ?? null;
  const known = values.filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
}

/** Rows of color by batch; the greatest value has the full color. */
export interface Heat {
  name: string;
  of: string;
  batch: number[];
  rows: { name: string; values: number[] }[];
  top: number;
}

const counted = (n: number, of: string): string => {
  const plural = of.endsWith("y") ? `${of.slice(0, -1)}ies` : `${of}s`;
  return `${count(n)} ${n === 1 ? of : plural}`;
};

/** The heat track of the map; a measure of the hosts if it is named, or if there is no such track. */
export function heatOf({ timeline, hosts }: CockpitPage, measure: string): Heat | undefined {
  const track = timeline.tracks.find(({ kind }) => kind === "heat");
  if (track && !hosts.names.includes(measure)) {
    const [name = "", of = ""] = track.name.split(" by ");
    const rows = track.series.map((row) => {
      return { name: row.name, values: row.values.map((value) => value ?? 0) };
    });
    return { name, of, batch: track.series[0]?.batch ?? [], rows, top: track.top };
  }
  const k = Math.max(0, hosts.names.indexOf(measure));
  const shown = hosts.names[k];
  if (shown === undefined) return undefined;
  const length = Math.max(1, ...hosts.values.map((values) => values[k]?.length ?? 0));
  const rows = Array.from({ length }, (_, host) => {
    return { name: `host:${host}`, values: hosts.values.map((each) => each[k]?.[host] ?? 0) };
  });
  const top = rows.reduce((most, { values }) => Math.max(most, ...values), 1e-9);
  return { name: shown === "stored" ? "rows" : shown, of: "host", batch: hosts.batch, rows, top };
}

const TICK: TextStyle = { size: 10, align: "center", colour: "faint" };

export class Tracks {
  private readonly labels: HTMLElement;
  private readonly slider: HTMLInputElement;
  private readonly pen: Pen;
  private readonly layer: Pen;
  private readonly forget: () => void;
  private page: CockpitPage | undefined;
  private span: Span = { first: 1, last: 1 };
  private batch = 1;
  private selected = "";
  private measure = "";
  /** What the layer shows. */
  private painted = "";
  /** The tracks, and the rows of color below them: those of the map, or of a measure of hosts. */
  private tracks: Track[] = [];
  private heat: Heat | undefined;

  constructor(box: HTMLElement, theme: Theme, seek: (batch: number) => void) {
    this.labels = add(box, "div", "braid-labels");
    this.pen = makePen(box, theme);
    this.layer = new Pen(document.createElement("canvas"), theme);
    const frame = this.pen.canvas.parentElement as HTMLElement;
    this.slider = add(frame, "input", "braid-axis");
    this.slider.type = "range";
    this.slider.setAttribute("aria-label", "position");
    this.slider.addEventListener("input", () => seek(Number(this.slider.value)));
    this.forget = watchLooks(frame, theme, () => this.again());
  }

  /** Shows a page at a batch. */
  show(page: CockpitPage, batch: number, selected = "", words = ""): void {
    if (page !== this.page) this.tell(page);
    if (selected !== this.selected) this.painted = "";
    Object.assign(this, { batch, selected });
    const { first, last } = this.span;
    Object.assign(this.slider, { min: first, max: last, value: batch });
    this.slider.setAttribute("aria-valuetext", words || `batch ${batch}`);
    this.say();
    this.paint();
  }

  /** Shows this measure of the hosts. */
  choose(measure: string): void {
    this.measure = measure;
    if (this.page) this.tell(this.page);
    this.say();
    this.again();
  }

  close(): void {
    this.forget();
  }

  /** The names of the tracks, at the left. */
  private tell(page: CockpitPage): void {
    Object.assign(this, { page, painted: "", span: spanOf(page) });
    this.tracks = page.timeline.tracks.filter(({ kind }) => kind !== "heat");
    this.labels.replaceChildren();
    add(this.labels, "div", "", "decisions");
    for (const { name } of this.tracks) add(add(this.labels, "div", "", name), "b");
    const heat = heatOf(page, this.measure);
    this.heat = heat;
    if (heat) {
      const part = add(this.labels, "div", "", `${heat.name} by ${heat.of}`);
      add(part, "span", "", counted(heat.rows.length, heat.of));
    }
    this.labels.style.gridTemplateRows = `${FLAGS}px`;
  }

  private say(): void {
    const values = this.labels.querySelectorAll("b");
    this.tracks.forEach((track, k) => {
      values[k]?.replaceChildren(said(valueAt(track, this.batch), track.unit));
    });
  }

  private get column(): number {
    return this.pen.wide / (this.span.last - this.span.first + 1);
  }

  /** The left side of a batch's column. */
  private x(batch: number): number {
    return placeOf(batch, this.span, { x: 0, y: 0, wide: this.pen.wide, tall: 0 });
  }

  private again(): void {
    this.painted = "";
    this.paint();
  }

  private paint(): void {
    const { page, pen, column } = this;
    if (!page || !pen.begin()) return;
    const key = `${pen.wide} ${pen.tall} ${this.batch} ${this.selected} ${this.measure}`;
    if (key !== this.painted) this.paintLayer(page);
    this.painted = key;
    pen.copy(this.layer);
    this.slider.style.left = `${column / 2}px`;
    this.slider.style.width = `${Math.max(1, pen.wide - column)}px`;
    this.paintPlayhead(page.annotations);
  }

  private paintLayer(page: CockpitPage): void {
    const { tracks, heat, layer, span } = this;
    const { wide, tall } = this.pen;
    layer.begin(wide, tall);
    const height = (tall - FLAGS - AXIS) / Math.max(1, tracks.length + (heat ? 1 : 0));
    const boxOf = (k: number): Box => {
      return { x: 0, y: FLAGS + k * height + GAP, wide, tall: height - GAP };
    };
    tracks.forEach((track, k) => {
      if (track.kind === "bars") this.paintBars(track, boxOf(k));
      else this.paintLines(track, boxOf(k));
    });
    if (heat) this.paintHeat(heat, boxOf(tracks.length));
    this.paintFlags(page.annotations);
    let last = -99;
    for (const batch of ticks(span)) {
      const half = layer.width(`${batch}`, 10) / 2;
      const inside = Math.max(half, Math.min(wide - half, this.x(batch) + this.column / 2));
      if (inside - half < last + 6) continue;
      last = inside + half;
      layer.text(`${batch}`, inside, tall - AXIS / 2, TICK);
    }
  }

  /** The strength of a batch's colors: those after the playhead are pale. */
  private alpha(batch: number): number {
    return batch <= this.batch ? 1 : 0.3;
  }

  private paintBars({ series, top, limit }: Track, box: Box): void {
    const { layer, column } = this;
    const [base, scale] = [box.y + box.tall, box.tall / (top * 1.08 || 1)];
    const heights = new Map<number, number>();
    for (const { role, batch, values } of series) {
      values.forEach((value, k) => {
        const at = batch[k] ?? 0;
        const low = heights.get(at) ?? 0;
        const tall = (value ?? 0) * scale;
        heights.set(at, low + tall);
        const wide = Math.max(1, column - 1);
        const bar = { x: this.x(at) + 0.5, y: base - low - tall, wide, tall };
        layer.box(bar, { fill: `phase-${role}` as Shade, alpha: this.alpha(at) });
      });
    }
    layer.straight(0, base, box.wide, base, "rule");
    if (limit === null) return;
    const y = Math.max(box.y + 12, base - limit * scale);
    const name = limit > top ? `limit ${limit} s, above` : `limit ${limit} s`;
    if (limit <= top) layer.straight(0, y, box.wide, y, "bad", 1.2, [6, 4]);
    layer.text(name, box.wide - 2, y - 7, { size: 10, align: "right", colour: "bad" });
  }

  private paintLines({ series, top }: Track, box: Box): void {
    const { layer } = this;
    const base = box.y + box.tall;
    const place = ([batch, value]: Point): Point => [
      this.x(batch) + this.column / 2,
      base - (value / (top * 1.08 || 1)) * box.tall,
    ];
    layer.straight(0, base, box.wide, base, "rule");
    for (const { role, ...each } of series.toReversed()) {
      for (const run of strokes(each)) {
        const past = run.filter(([batch]) => batch <= this.batch);
        const future = run.filter(([batch]) => batch >= this.batch);
        this.paintStroke(role, past.map(place), 1);
        this.paintStroke(role, future.map(place), 0.35);
      }
    }
    const baselines = series.filter(({ role }) => role === "baseline").map(({ name }) => name);
    const fits = (name: string) => layer.width(name, 10) < box.wide - 8;
    const name = [`dashed: ${baselines.join("; ")}`, `dashed: ${baselines[0]}`].find(fits);
    if (!baselines.length || name === undefined) return;
    layer.text(name, 2, box.y + 5, { size: 10, colour: "bad", ground: "panel" });
  }

  private paintStroke(role: string, points: Point[], alpha: number): void {
    const stream = /^stream(\d+)$/.exec(role)?.[1];
    const named = role === "baseline" ? "bad" : role === "mean" ? "muted" : "accent";
    const colour: Colour = stream ? hue(Number(stream)) : named;
    const isMain = role === "main" || stream !== undefined;
    const [only, more] = points;
    if (!only) return;
    if (!more && isMain) this.layer.dot(only, 2, colour);
    const dash = isMain ? [] : role === "mean" ? [1, 3] : [4, 3];
    this.layer.line(points, colour, isMain ? 2 : 1.3, dash, alpha);
  }

  private paintHeat({ batch, rows, top }: Heat, box: Box): void {
    const { layer, column: wide } = this;
    const every = Math.ceil(rows.length / MOST_ROWS);
    const tall = box.tall / Math.ceil(rows.length / every);
    batch.forEach((at, b) => {
      for (let row = 0; row < rows.length; row += every) {
        const near = rows.slice(row, row + every).map(({ values }) => values[b] ?? 0);
        const fill = layer.theme.load(Math.max(0, ...near) / (top || 1));
        const cell = { x: this.x(at), y: box.y + (row / every) * tall, wide, tall: tall + 0.3 };
        layer.box(cell, { fill, alpha: this.alpha(at) });
      }
    });
    const chosen = rows.findIndex(({ name }) => name === this.selected);
    if (chosen < 0) return;
    const y = box.y + Math.floor(chosen / every) * tall;
    const framed = { x: 1, y: y - 1, wide: box.wide - 2, tall: Math.max(4, tall + 2) };
    layer.box(framed, { stroke: "accent", width: 1.5 });
  }

  /** A mark for each decision, a bar as long as it lasts, and labels where there is room. */
  private paintFlags(flags: Annotation[]): void {
    const { layer } = this;
    const named = flags.filter(({ short: label }) => label);
    const current = this.current(flags);
    for (const flag of named) {
      const x = this.x(flag.batch);
      const here = flag === current;
      layer.straight(x, 4, x, FLAGS - 3, "accent", here ? 2 : 1.2, [], here ? 1 : 0.5);
      if (flag.end === null) continue;
      const bar = { x, y: FLAGS - 5, wide: this.x(flag.end + 1) - x, tall: 3 };
      layer.box(bar, { fill: "accent", alpha: here ? 1 : 0.45 });
    }
    const taken = current && this.labelBox(current);
    named.forEach((flag, k) => {
      if (flag === current) return;
      const x = this.x(flag.batch) + 5;
      const next = named[k + 1];
      const end = x + layer.width(flag.short, 11);
      if (end > (next ? this.x(next.batch) - 4 : layer.wide)) return;
      if (taken && x < taken.x + taken.wide + 6 && end > taken.x - 6) return;
      layer.text(flag.short, x, LABEL, { size: 11, colour: "muted" });
    });
  }

  /** The decision with a label that was the last one at the playhead. */
  private current(flags: Annotation[]): Annotation | undefined {
    return flags.findLast(({ batch, short: label }) => label && batch <= this.batch);
  }

  /** The place of the current decision's label, inside the canvas. */
  private labelBox(flag: Annotation): { x: number; wide: number } {
    const wide = this.layer.width(flag.short, 11, true);
    return { x: Math.min(this.x(flag.batch) + 5, this.pen.wide - wide - 4), wide };
  }

  private paintPlayhead(flags: Annotation[]): void {
    const { pen } = this;
    const x = this.x(this.batch) + this.column / 2;
    pen.straight(x, 6, x, pen.tall - AXIS, "ink", 1.5);
    const current = this.current(flags);
    if (current) {
      const style = { size: 11, bold: true, ground: "panel" } as const;
      pen.text(current.short, this.labelBox(current).x, LABEL, style);
    }
    pen.dot([x, 4], 3.5, "ink");
  }
}

/** Runs of values that are known, as [batch, value]. */
export function strokes({ batch, values }: Pick<Series, "batch" | "values">): Point[][] {
  const found: Point[][] = [[]];
  values.forEach((value, k) => {
    if (value === null) found.push([]);
    else found.at(-1)?.push([batch[k] ?? 0, value]);
  });
  return found.filter(({ length }) => length);
}
