// The batches on one time axis: decisions, tracks, and the work of each host. All but
// the playhead is painted on a layer of its own, which is kept while nothing in it changes.
import type { Annotation, CockpitPage, Series, Track } from "../../frames.ts";
import { add } from "../base/dom.ts";
import { count } from "../base/format.ts";
import { type Box, Pen, type Point, watchLooks } from "../base/pen.ts";
import type { Shade, Theme } from "../base/theme.ts";

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
  const found: number[] = [];
  for (let batch = Math.ceil(first / every) * every; batch <= last; batch += every) {
    found.push(batch);
  }
  return found;
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
    const batch = track.series[0]?.batch ?? [];
    const rows = track.series.map((row) => ({
      name: row.name,
      values: row.values.map((value) => value ?? 0),
    }));
    return { name, of, batch, rows, top: track.top };
  }
  const k = Math.max(0, hosts.names.indexOf(measure));
  const shown = hosts.names[k];
  if (shown === undefined) return undefined;
  const most = Math.max(1, ...hosts.values.map((values) => values[k]?.length ?? 0));
  const rows = Array.from({ length: most }, (_, host) => ({
    name: `host:${host}`,
    values: hosts.values.map((values) => values[k]?.[host] ?? 0),
  }));
  const top = rows.reduce((most, { values }) => Math.max(most, ...values), 1e-9);
  return { name: shown === "stored" ? "rows" : shown, of: "host", batch: hosts.batch, rows, top };
}

export class Tracks {
  private readonly labels: HTMLElement;
  private readonly slider: HTMLInputElement;
  private readonly pen: Pen;
  private readonly layer: Pen;
  private readonly theme: Theme;
  private readonly forget: () => void;
  private page: CockpitPage | undefined;
  private batch = 1;
  private selected = "";
  private measure = "";
  private painted = "";
  /** The rows of color at the bottom: those of the map, or of a measure of the hosts. */
  private heat: Heat | undefined;

  constructor(box: HTMLElement, theme: Theme, seek: (batch: number) => void) {
    this.theme = theme;
    this.labels = add(box, "div", "braid-labels");
    const frame = add(box, "div", "braid-canvas");
    this.pen = new Pen(add(frame, "canvas"), theme);
    this.layer = new Pen(document.createElement("canvas"), theme);
    this.slider = add(frame, "input", "braid-axis");
    Object.assign(this.slider, { type: "range", min: "1" });
    this.slider.setAttribute("aria-label", "position");
    this.slider.addEventListener("input", () => seek(Number(this.slider.value)));
    this.forget = watchLooks(frame, theme, () => {
      this.painted = "";
      this.paint();
    });
  }

  /** Shows a page at a batch. */
  show(page: CockpitPage, batch: number, selected = "", words = ""): void {
    const span = spanOf(page);
    if (page !== this.page) this.tell(page);
    if (page !== this.page || selected !== this.selected) this.painted = "";
    Object.assign(this, { page, batch, selected });
    this.slider.min = String(span.first);
    this.slider.max = String(span.last);
    this.slider.value = String(batch);
    this.slider.setAttribute("aria-valuetext", words || `batch ${batch}`);
    this.say();
    this.paint();
  }

  /** Shows this measure of the hosts. */
  choose(measure: string): void {
    this.measure = measure;
    this.painted = "";
    if (this.page) this.tell(this.page);
    this.say();
    this.paint();
  }

  close(): void {
    this.forget();
  }

  private get tracks(): Track[] {
    return this.page?.timeline.tracks.filter(({ kind }) => kind !== "heat") ?? [];
  }

  /** The names of the tracks, at the left. */
  private tell(page: CockpitPage): void {
    this.page = page;
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
      const told = values[k];
      if (told) told.textContent = said(valueAt(track, this.batch), track.unit);
    });
  }

  private area(pen: Pen): Box {
    return { x: 0, y: FLAGS, wide: pen.wide, tall: pen.tall - FLAGS - AXIS };
  }

  private paint(): void {
    const { page, pen } = this;
    if (!page || !pen.begin()) return;
    const span = spanOf(page);
    const key = `${pen.wide} ${pen.tall} ${this.batch} ${this.selected} ${this.measure}`;
    if (key !== this.painted) {
      this.paintLayer(page, span);
      this.painted = key;
    }
    pen.copy(this.layer);
    const area = this.area(pen);
    const column = pen.wide / (span.last - span.first + 1);
    this.slider.style.left = `${column / 2}px`;
    this.slider.style.width = `${Math.max(1, pen.wide - column)}px`;
    this.paintPlayhead(page.annotations, span, area, column);
  }

  private paintLayer(page: CockpitPage, span: Span): void {
    const { wide, tall } = this.pen;
    this.layer.begin(wide, tall);
    const area = this.area(this.layer);
    const { tracks, heat } = this;
    const parts = tracks.length + (heat ? 1 : 0);
    const height = area.tall / Math.max(1, parts);
    tracks.forEach((track, k) => {
      const box = { ...area, y: area.y + k * height + GAP, tall: height - GAP };
      if (track.kind === "bars") this.paintBars(track, span, box);
      else this.paintLines(track, span, box);
    });
    const rows = { ...area, y: area.y + tracks.length * height + GAP, tall: height - GAP };
    if (heat) this.paintHeat(heat, span, rows);
    this.paintFlags(page.annotations, span, area);
    const last = { x: -99 };
    for (const batch of ticks(span)) {
      const half = this.layer.width(`${batch}`, 10) / 2;
      const column = area.wide / (span.last - span.first + 1);
      const x = placeOf(batch, span, area) + column / 2;
      const inside = Math.max(half, Math.min(area.wide - half, x));
      if (inside - half < last.x + 6) continue;
      last.x = inside + half;
      const style = { size: 10, align: "center", colour: this.theme.shade("faint") } as const;
      this.layer.text(`${batch}`, inside, tall - AXIS / 2, style);
    }
  }

  /** The strength of a batch's colors: those after the playhead are pale. */
  private alpha(batch: number): number {
    return batch <= this.batch ? 1 : 0.3;
  }

  private paintBars({ series, top, limit }: Track, span: Span, box: Box): void {
    const [base, scale] = [box.y + box.tall, box.tall / (top * 1.08 || 1)];
    const column = box.wide / (span.last - span.first + 1);
    const heights = new Map<number, number>();
    for (const { role, batch, values } of series) {
      values.forEach((value, k) => {
        const at = batch[k] ?? 0;
        const low = heights.get(at) ?? 0;
        const tall = (value ?? 0) * scale;
        heights.set(at, low + tall);
        const x = placeOf(at, span, box);
        const fill = this.theme.shade(`phase-${role}` as Shade);
        const bar = { x: x + 0.5, y: base - low - tall, wide: Math.max(1, column - 1), tall };
        this.layer.box(bar, { fill, alpha: this.alpha(at) });
      });
    }
    this.layer.straight(box.x, base, box.x + box.wide, base, this.theme.shade("rule"));
    if (limit === null) return;
    const y = Math.max(box.y + 12, base - limit * scale);
    const colour = this.theme.shade("bad");
    const name = limit > top ? `limit ${limit} s, above` : `limit ${limit} s`;
    if (limit <= top) this.layer.straight(box.x, y, box.x + box.wide, y, colour, 1.2, [6, 4]);
    this.layer.text(name, box.wide - 2, y - 7, { size: 10, align: "right", colour });
  }

  private paintLines({ series, top }: Track, span: Span, box: Box): void {
    const base = box.y + box.tall;
    const column = box.wide / (span.last - span.first + 1);
    const place = (batch: number, value: number): Point => [
      placeOf(batch, span, box) + column / 2,
      base - (value / (top * 1.08 || 1)) * box.tall,
    ];
    this.layer.straight(box.x, base, box.x + box.wide, base, this.theme.shade("rule"));
    for (const each of series.toReversed()) {
      for (const run of strokes(each)) {
        const past = run.filter(([batch]) => batch <= this.batch);
        const future = run.filter(([batch]) => batch >= this.batch);
        this.paintStroke(
          each.role,
          past.map(([b, v]) => place(b, v)),
          1,
        );
        this.paintStroke(
          each.role,
          future.map(([b, v]) => place(b, v)),
          0.35,
        );
      }
    }
    const baselines = series.filter(({ role }) => role === "baseline").map(({ name }) => name);
    const fits = (name: string) => this.layer.width(name, 10) < box.wide - 8;
    const name = [`dashed: ${baselines.join("; ")}`, `dashed: ${baselines[0]}`].find(fits);
    if (!baselines.length || name === undefined) return;
    const colour = this.theme.shade("bad");
    this.layer.text(name, 2, box.y + 5, { size: 10, colour, ground: this.theme.shade("panel") });
  }

  private paintStroke(role: string, points: Point[], alpha: number): void {
    const stream = /^stream(\d+)$/.exec(role)?.[1];
    const named = role === "baseline" ? "bad" : role === "mean" ? "muted" : "accent";
    const colour = stream ? this.theme.stream(Number(stream)) : this.theme.shade(named);
    const isMain = role === "main" || stream !== undefined;
    const [only, more] = points;
    if (!only) return;
    if (!more && isMain) this.layer.dot(only, 2, colour);
    const dash = isMain ? [] : role === "mean" ? [1, 3] : [4, 3];
    this.layer.line(points, colour, isMain ? 2 : 1.3, dash, alpha);
  }

  private paintHeat({ batch, rows, top }: Heat, span: Span, box: Box): void {
    const column = box.wide / (span.last - span.first + 1);
    const every = Math.ceil(rows.length / MOST_ROWS);
    const tall = box.tall / Math.ceil(rows.length / every);
    batch.forEach((at, b) => {
      const x = placeOf(at, span, box);
      for (let row = 0; row < rows.length; row += every) {
        const near = rows.slice(row, row + every).map(({ values }) => values[b] ?? 0);
        const fill = this.theme.load(Math.max(0, ...near) / (top || 1));
        const y = box.y + (row / every) * tall;
        this.layer.box({ x, y, wide: column, tall: tall + 0.3 }, { fill, alpha: this.alpha(at) });
      }
    });
    const chosen = rows.findIndex(({ name }) => name === this.selected);
    if (chosen < 0) return;
    const y = box.y + Math.floor(chosen / every) * tall;
    const framed = { x: box.x + 1, y: y - 1, wide: box.wide - 2, tall: Math.max(4, tall + 2) };
    this.layer.box(framed, { stroke: this.theme.shade("accent"), width: 1.5 });
  }

  /** A mark for each decision, a bar as long as it lasts, and labels where there is room. */
  private paintFlags(flags: Annotation[], span: Span, area: Box): void {
    const accent = this.theme.shade("accent");
    const named = flags.filter(({ short: label }) => label);
    for (const flag of named) {
      const x = placeOf(flag.batch, span, area);
      const here = flag === this.current(flags);
      const alpha = here ? 1 : 0.5;
      this.layer.straight(x, 4, x, FLAGS - 3, accent, here ? 2 : 1.2, [], alpha);
      if (flag.end === null) continue;
      const bar = { x, y: FLAGS - 5, wide: placeOf(flag.end + 1, span, area) - x, tall: 3 };
      this.layer.box(bar, { fill: accent, alpha: here ? 1 : 0.45 });
    }
    const current = this.current(flags);
    named.forEach((flag, k) => {
      if (flag === current || !flag.short) return;
      const x = placeOf(flag.batch, span, area) + 5;
      const next = named[k + 1];
      const room = next ? placeOf(next.batch, span, area) - 4 : area.wide;
      if (x + this.layer.width(flag.short, 11) > room) return;
      if (current && this.isUnder(current, span, area, x, flag.short)) return;
      this.layer.text(flag.short, x, LABEL, { size: 11, colour: this.theme.shade("muted") });
    });
  }

  /** The decision with a label that was the last one at the playhead. */
  private current(flags: Annotation[]): Annotation | undefined {
    return flags.findLast(({ batch, short: label }) => label && batch <= this.batch);
  }

  /** The place of the current decision's label, inside the canvas. */
  private labelBox(flag: Annotation, span: Span, area: Box): Box {
    const wide = this.layer.width(flag.short, 11, true);
    const x = Math.min(placeOf(flag.batch, span, area) + 5, area.wide - wide - 4);
    return { x, y: 4, wide, tall: 14 };
  }

  private isUnder(current: Annotation, span: Span, area: Box, x: number, label: string): boolean {
    const box = this.labelBox(current, span, area);
    return x < box.x + box.wide + 6 && x + this.layer.width(label, 11) > box.x - 6;
  }

  private paintPlayhead(flags: Annotation[], span: Span, area: Box, column: number): void {
    const { pen, theme } = this;
    const x = placeOf(this.batch, span, area) + column / 2;
    pen.straight(x, 6, x, pen.tall - AXIS, theme.shade("ink"), 1.5);
    const current = this.current(flags);
    if (current) {
      const box = this.labelBox(current, span, area);
      pen.text(current.short, box.x, LABEL, { size: 11, bold: true, ground: theme.shade("panel") });
    }
    pen.dot([x, 4], 3.5, theme.shade("ink"));
  }
}

/** Runs of values that are known, as [batch, value]. */
export function strokes({ batch, values }: Pick<Series, "batch" | "values">): Point[][] {
  const found: Point[][] = [];
  let open: Point[] | undefined;
  values.forEach((value, k) => {
    if (value === null) {
      open = undefined;
      return;
    }
    if (open === undefined) {
      open = [];
      found.push(open);
    }
    open.push([batch[k] ?? 0, value]);
  });
  return found;
}
