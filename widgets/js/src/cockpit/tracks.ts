// The batches on one time axis: decisions, tracks, and the work of each host. It is painted when
// another batch, part or measure is shown, not while things move within a batch.
import type { Annotation, CockpitPage, Series, Track } from "../../frames.ts";
import { makePen } from "../base/canvas_map.ts";
import { add, make } from "../base/dom.ts";
import { count, several, shareOf } from "../base/format.ts";
import type { Box, Point } from "../base/geometry.ts";
import type { Pen, TextStyle } from "../base/pen.ts";
import { type Colour, hue, type Shade, type Theme, watchLooks } from "../base/theme.ts";

/** The height of the decisions, as in the style sheet, and the middle of their labels. */
const [FLAGS, LABEL] = [30, 15];
const [AXIS, GAP] = [16, 8];
/** Rows of color that are painted; of more, several share one, which shows the greatest. */
const MOST_ROWS = 256;

export type Span = [first: number, last: number];

/** The batches of the axis: those that there are, those that are planned, and those of baselines. */
export function spanOf({ timeline: { batch, last, tracks } }: CockpitPage): Span {
  const baselines = tracks.flatMap(({ series }) => series.map((each) => each.batch.at(-1) ?? 0));
  const first = batch[0] ?? 1;
  return [first, Math.max(first, last, batch.at(-1) ?? 1, ...baselines)];
}

/** The value of a track at a batch, with its unit: the sum of its bars, or its main line. */
export function said({ kind, series, unit }: Track, batch: number): string {
  const shown = kind === "bars" ? series : series.slice(0, 1);
  const values = shown.map((each) => each.values[each.batch.indexOf(batch)]);
  const known = values.filter((value) => typeof value === "number");
  if (!known.length) return "not known";
  const value = known.reduce((sum, each) => sum + each);
  return unit === "s" ? `${value.toFixed(2)} s` : `${count(value)} ${unit}`;
}

/** The heat track of the map; a measure of the hosts if it is named, or if there is no such track. */
export function heatOf({ timeline, hosts }: CockpitPage, measure: string): Track | undefined {
  const own = timeline.tracks.find(({ kind }) => kind === "heat");
  const k = Math.max(0, hosts.names.indexOf(measure));
  const shown = hosts.names[k];
  if (shown === undefined || (own && shown !== measure)) return own;
  const length = Math.max(1, ...hosts.values.map((values) => values[k]?.length ?? 0));
  const series = Array.from({ length }, (_, host): Series => {
    const values = hosts.values.map((each) => each[k]?.[host] ?? 0);
    return { name: `host:${host}`, role: "main", batch: hosts.batch, values };
  });
  const top = series.reduce((most, { values }) => Math.max(most, ...values.map(Number)), 0);
  const name = `${shown === "stored" ? "rows" : shown} by host`;
  return { name, kind: "heat", unit: "", top, limit: null, series };
}

/** Batches that are named below the axis, at most, and those names; there may be no room for one. */
const TICKS = 8;
const TICK: TextStyle = { size: 10, align: "center", colour: "faint", isMinor: true };

/** The color of a line by its role, and its dashes; other lines have the hue of their stream. */
const LINES: Record<string, [Colour, number[]]> = {
  main: ["accent", []],
  mean: ["muted", [1, 3]],
  baseline: ["bad", [4, 3]],
};

export class Tracks {
  /** Ends the look-out for another size or theme. */
  readonly close: () => void;
  private readonly labels: HTMLElement;
  private readonly slider: HTMLInputElement;
  private readonly pen: Pen;
  /** The measure of the hosts that the rows of color show. */
  measure = "";
  private flags: Annotation[] = [];
  private tracks: Track[] = [];
  private span: Span = [1, 1];
  /** The width of a batch, in pixels. */
  private column = 1;
  private batch = 1;
  private selected = "";

  constructor(box: HTMLElement, theme: Theme, seek: (batch: number) => void) {
    this.labels = add(box, "div", "braid-labels");
    this.pen = makePen(box, theme);
    const frame = this.pen.canvas.parentElement as HTMLElement;
    this.slider = add(frame, "input", "braid-axis");
    this.slider.oninput = () => seek(Number(this.slider.value));
    Object.assign(this.slider, { type: "range", ariaLabel: "position" });
    this.close = watchLooks(frame, theme, () => this.paint());
  }

  /** Shows a page at a batch, with the names of the tracks and their values at the left. */
  show(page: CockpitPage, batch: number, selected = "", words = `batch ${batch}`): void {
    const heat = heatOf(page, this.measure);
    const others = page.timeline.tracks.filter(({ kind }) => kind !== "heat");
    this.tracks = heat ? [...others, heat] : others;
    this.span = spanOf(page);
    Object.assign(this, { flags: page.annotations, batch, selected });
    const [first, last] = this.span;
    Object.assign(this.slider, { min: first, max: last, value: batch, ariaValueText: words });
    const labels = this.tracks.map((track) => {
      const [, thing = "row"] = track.name.split(" by ");
      const rows = make("span", "", several(track.series.length, thing));
      return make("div", "", track.name, track === heat ? rows : make("b", "", said(track, batch)));
    });
    this.labels.replaceChildren(make("div", "", "decisions"), ...labels);
    this.paint();
  }

  /** The left side of a batch's column. */
  private x(batch: number): number {
    return (batch - this.span[0]) * this.column;
  }

  private paint(): void {
    const { pen, tracks } = this;
    if (!pen.begin()) return;
    const { wide, tall } = pen;
    const [first, last] = this.span;
    this.column = wide / (last - first + 1);
    this.slider.style.padding = `0 ${this.column / 2}px`;
    const height = (tall - FLAGS - AXIS) / Math.max(1, tracks.length);
    tracks.forEach((track, k) => {
      const box = { x: 0, y: FLAGS + k * height + GAP, wide, tall: height - GAP };
      if (track.kind === "bars") this.paintBars(track, box);
      else if (track.kind === "heat") this.paintHeat(track, box);
      else this.paintLines(track, box);
    });
    const every = Math.ceil((last - first + 1) / TICKS);
    for (let batch = Math.ceil(first / every) * every; batch <= last; batch += every) {
      pen.text(`${batch}`, this.x(batch) + this.column / 2, tall - AXIS / 2, TICK);
    }
    this.paintFlags();
  }

  /** Makes the batches after the playhead pale, and paints what stands below all. */
  private fade({ y, wide, tall }: Box): void {
    const x = this.x(this.batch + 1);
    this.pen.box({ x, y, wide: wide - x, tall }, { fill: "panel", alpha: 0.68 });
  }

  private paintBars({ series, top, limit }: Track, box: Box): void {
    const { pen } = this;
    const wide = Math.max(1, this.column - 1);
    const [base, scale] = [box.y + box.tall, box.tall / (top * 1.08 || 1)];
    const heights: number[] = [];
    for (const { role, batch, values } of series) {
      values.forEach((value, k) => {
        const tall = (value ?? 0) * scale;
        const high = (heights[k] ?? 0) + tall;
        heights[k] = high;
        const bar = { x: this.x(batch[k] ?? 0) + 0.5, y: base - high, wide, tall };
        pen.box(bar, { fill: `phase-${role}` as Shade });
      });
    }
    this.fade(box);
    pen.straight(0, base, box.wide, base, "rule");
    if (limit === null) return;
    const y = Math.max(box.y + 12, base - limit * scale);
    const name = limit > top ? `limit ${limit} s, above` : `limit ${limit} s`;
    if (limit <= top) pen.straight(0, y, box.wide, y, "bad", 1.2, [6, 4]);
    pen.text(name, box.wide - 2, y - 7, { size: 10, align: "right", colour: "bad" });
  }

  private paintLines({ series, top }: Track, box: Box): void {
    const { pen } = this;
    const base = box.y + box.tall;
    const scale = box.tall / (top * 1.08 || 1);
    for (const { role, batch, values } of series.toReversed()) {
      const [colour, dash] = LINES[role] ?? [hue(Number(role.slice(6))), []];
      const points = values.map((value, k): Point => {
        return [this.x(batch[k] ?? 0) + this.column / 2, base - (value ?? Number.NaN) * scale];
      });
      pen.line(points, colour, dash.length ? 1.3 : 2, dash);
      const here = points[batch.indexOf(this.batch)];
      if (here && !dash.length) pen.dot(here, 2.5, colour);
    }
    this.fade(box);
    pen.straight(0, base, box.wide, base, "rule");
    const baselines = series.filter(({ role }) => role === "baseline").map(({ name }) => name);
    if (!baselines.length) return;
    const style = { size: 10, colour: "bad", ground: "panel", room: box.wide - 8 } as const;
    pen.text(`dashed: ${baselines.join("; ")}`, 2, box.y + 5, style);
    pen.text(`dashed: ${baselines[0]}`, 2, box.y + 5, { ...style, isMinor: true });
  }

  private paintHeat({ series, top }: Track, box: Box): void {
    const { pen, column: wide } = this;
    const every = Math.ceil(series.length / MOST_ROWS);
    const tall = box.tall / Math.ceil(series.length / every);
    const y = (row: number) => box.y + Math.floor(row / every) * tall;
    for (let row = 0; row < series.length; row += every) {
      const near = series.slice(row, row + every);
      near[0]?.batch.forEach((batch, b) => {
        const most = Math.max(0, ...near.map(({ values }) => values[b] ?? 0));
        const cell = { x: this.x(batch), y: y(row), wide, tall: tall + 0.3 };
        pen.box(cell, { fill: pen.theme.load(shareOf(most, top)) });
      });
    }
    this.fade(box);
    const chosen = series.findIndex(({ name }) => name === this.selected);
    if (chosen < 0) return;
    const framed = { x: 1, y: y(chosen) - 1, wide: box.wide - 2, tall: Math.max(4, tall + 2) };
    pen.box(framed, { stroke: "accent", width: 1.5 });
  }

  /** A mark for each decision, a bar as long as it lasts, and labels where there is room; above
   * them the playhead. */
  private paintFlags(): void {
    const { pen } = this;
    const [strong, others] = orderFlags(this.flags, this.batch);
    const marks = [...others, ...strong.toReversed()];
    for (const flag of marks) {
      const [x, isStrong] = [this.x(flag.batch), strong.includes(flag)];
      const [fill, alpha] = [flag.kind === "fault" ? "bad" : "accent", isStrong ? 1 : 0.5] as const;
      pen.straight(x, 4, x, FLAGS - 3, fill, isStrong ? 2 : 1.2, [], alpha);
      const bar = { x, y: FLAGS - 5, wide: this.x((flag.end ?? flag.batch) + 1) - x, tall: 3 };
      if (flag.end !== null) pen.box(bar, { fill, alpha });
    }
    const here = this.x(this.batch) + this.column / 2;
    pen.straight(here, 6, here, pen.tall - AXIS, "ink", 1.5);
    for (const { short: label, batch, kind } of strong) {
      const x = Math.min(this.x(batch) + 5, pen.wide - pen.width(label, 11, true) - 4);
      const colour = kind === "fault" ? "bad" : "ink";
      pen.text(label, x, LABEL, { size: 11, bold: true, ground: "panel", isMinor: true, colour });
    }
    pen.dot([here, 4], 3.5, "ink");
    const starts = marks.map(({ batch }) => this.x(batch));
    for (const { short: label, batch } of others) {
      const x = this.x(batch) + 5;
      const room = Math.min(...starts.filter((start) => start > x)) - 4 - x;
      pen.text(label, x, LABEL, { size: 11, colour: "muted", room, isMinor: true });
    }
  }
}

/** The decisions with a label: those whose label counts most first, the last one at the playhead and
 * all faults; then the others. */
export function orderFlags(flags: Annotation[], at: number): [Annotation[], Annotation[]] {
  const named = flags.filter(({ short: label }) => label);
  const current = named.findLast(({ batch }) => batch <= at);
  const isStrong = (flag: Annotation) => flag === current || flag.kind === "fault";
  const strong = named
    .filter(isStrong)
    .sort((a, b) => Number(b === current) - Number(a === current));
  return [strong, named.filter((flag) => !isStrong(flag))];
}
