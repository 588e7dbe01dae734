// The batches on one time axis: decisions, tracks, and the work of each host. It is painted when
// another batch, part or measure is shown, not while things move within a batch.
import type { Annotation, CockpitPage, Series, Track } from "../../frames.ts";
import { makePen } from "../base/canvas_map.ts";
import { sum } from "../base/columns.ts";
import { add, make } from "../base/dom.ts";
import { count, several, shareOf } from "../base/format.ts";
import type { Box, Point } from "../base/geometry.ts";
import type { TextStyle } from "../base/pen.ts";
import { type Colour, hue, type Shade, type Theme, watchLooks } from "../base/theme.ts";
import { nameLines } from "./line_names.ts";

/** The height of the decisions, as in the style sheet, and the middle of their labels. */
const [FLAGS, LABEL] = [30, 15];
const [AXIS, GAP] = [16, 8];
/** Rows of color that are painted; of more, several share one, which shows the greatest. */
const MOST_ROWS = 256;

/** The batches of the axis: those that there are, those that are planned, and those of baselines. */
export function spanOf({ timeline }: CockpitPage): [first: number, last: number] {
  const { batch, last, tracks } = timeline;
  const baselines = tracks.flatMap(({ series }) => series.map((each) => each.batch.at(-1) ?? 0));
  const first = batch[0] ?? 1;
  return [first, Math.max(first, last, batch.at(-1) ?? 1, ...baselines)];
}

/** The value of a track at a batch, with its unit: the sum of its bars, or its main line; of rows
 * of color, their number. */
export function said({ name, kind, series, unit }: Track, batch: number): string {
  if (kind === "heat") return several(series.length, name.split(" by ")[1] ?? "row");
  const shown = kind === "bars" ? series : series.slice(0, 1);
  const known = shown.flatMap((each) => each.values[each.batch.indexOf(batch)] ?? []);
  if (!known.length) return "not known";
  return unit === "s" ? `${sum(known).toFixed(2)} s` : `${count(sum(known))} ${unit}`;
}

/** The heat track of the map; a measure of the hosts if it is named, or if there is no such track. */
export function heatOf(
  { timeline, hosts, host_word }: CockpitPage,
  measure: string,
): Track | undefined {
  const own = timeline.tracks.find(({ kind }) => kind === "heat");
  const k = Math.max(0, hosts.names.indexOf(measure));
  const shown = hosts.names[k];
  if (shown === undefined || (own && shown !== measure)) return own;
  const rows = hosts.values.map((values) => values[k] ?? []);
  const length = Math.max(1, ...rows.map((row) => row.length));
  const series = Array.from({ length }, (_, host): Series => {
    const values = rows.map((row) => row[host] ?? 0);
    return { name: `host:${host}`, role: "main", batch: hosts.batch, values };
  });
  const top = rows.reduce((most, row) => Math.max(most, ...row), 0);
  return { name: `${shown} by ${host_word}`, kind: "heat", unit: "", top, limit: null, series };
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

/** A batch with its name, the selection, and the measure of the hosts that rows of color show. */
export type Moment = { batch: number } & Record<"words" | "selected" | "measure", string>;

/** Fills the time line, and returns what shows a moment, and what ends the look-out for another
 * size or theme. */
export function makeTracks(box: HTMLElement, theme: Theme, seek: (batch: number) => void) {
  const labels = add(box, "div", "braid-labels");
  const pen = makePen(box, theme);
  const frame = pen.canvas.parentElement as HTMLElement;
  const slider = add(frame, "input", "braid-axis");
  slider.oninput = () => seek(Number(slider.value));
  Object.assign(slider, { type: "range", ariaLabel: "position" });
  let flags: Annotation[] = [];
  let tracks: Track[] = [];
  let [first, last, now, selected] = [1, 1, 1, ""];
  /** The width of a batch, in pixels. */
  let column = 1;
  /** The left side of a batch's column, or the place at a share of its width. */
  const xOf = (batch: number, share = 0) => (batch - first + share) * column;

  /** Makes the batches after the playhead pale. */
  const fade = ({ y, wide, tall }: Box) => {
    const x = xOf(now + 1);
    pen.box({ x, y, wide: wide - x, tall }, { fill: "panel", alpha: 0.68 });
  };

  const paintBars = ({ series, top, limit }: Track, area: Box, yOf: (value: number) => number) => {
    const sums: number[] = [];
    for (const { role, batch, values } of series) {
      values.forEach((value, k) => {
        const low = sums[k] ?? 0;
        const high = low + (value ?? 0);
        sums[k] = high;
        const [x, wide] = [xOf(batch[k] ?? 0) + 0.5, Math.max(1, column - 1)];
        const bar = { x, y: yOf(high), wide, tall: yOf(low) - yOf(high) };
        pen.box(bar, { fill: `phase-${role}` as Shade });
      });
    }
    fade(area);
    if (limit === null) return;
    const y = Math.max(area.y + 12, yOf(limit));
    const name = limit > top ? `limit ${limit} s, above` : `limit ${limit} s`;
    if (limit <= top) pen.straight(0, y, area.wide, y, "bad", 1.2, [6, 4]);
    pen.text(name, area.wide - 2, y - 7, { size: 10, align: "right", colour: "bad" });
  };

  const paintLines = ({ series }: Track, area: Box, yOf: (value: number) => number) => {
    for (const { role, batch, values } of series.toReversed()) {
      const [colour, dash] = LINES[role] ?? [hue(Number(role.slice(6))), []];
      const xs = batch.map((each) => xOf(each, 0.5));
      const points = values.map((value, k): Point => [xs[k] ?? 0, yOf(value ?? Number.NaN)]);
      pen.line(points, colour, dash.length ? 1.3 : 2, dash);
      const here = points[batch.indexOf(now)];
      if (here && !dash.length) pen.dot(here, 2.5, colour);
    }
    fade(area);
    nameLines(pen, area, series, (batch) => xOf(batch, 0.5), yOf);
  };

  const paintHeat = ({ series, top }: Track, area: Box) => {
    const every = Math.ceil(series.length / MOST_ROWS);
    const tall = area.tall / Math.ceil(series.length / every);
    const yOf = (row: number) => area.y + Math.floor(row / every) * tall;
    for (let row = 0; row < series.length; row += every) {
      const near = series.slice(row, row + every);
      near[0]?.batch.forEach((batch, b) => {
        const most = Math.max(0, ...near.map(({ values }) => values[b] ?? 0));
        const cell = { x: xOf(batch), y: yOf(row), wide: column, tall: tall + 0.3 };
        pen.box(cell, { fill: theme.load(shareOf(most, top)) });
      });
    }
    fade(area);
    const chosen = series.findIndex(({ name }) => name === selected);
    const framed = { x: 1, y: yOf(chosen) - 1, wide: area.wide - 2, tall: Math.max(4, tall + 2) };
    if (chosen >= 0) pen.box(framed, { stroke: "accent", width: 1.5 });
  };

  /** A mark for each decision, a bar as long as it lasts, and labels where there is room; above
   * them the playhead. */
  const paintFlags = () => {
    const [strong, others] = orderFlags(flags, now);
    const marks = [...others, ...strong.toReversed()];
    for (const flag of marks) {
      const [x, isStrong] = [xOf(flag.batch), strong.includes(flag)];
      const [fill, alpha] = [flag.kind === "fault" ? "bad" : "accent", isStrong ? 1 : 0.5] as const;
      pen.straight(x, 4, x, FLAGS - 3, fill, isStrong ? 2 : 1.2, [], alpha);
      if (flag.end === null) continue;
      pen.box({ x, y: FLAGS - 5, wide: xOf(flag.end + 1) - x, tall: 3 }, { fill, alpha });
    }
    const here = xOf(now, 0.5);
    pen.straight(here, 6, here, pen.tall - AXIS, "ink", 1.5);
    for (const { short: label, batch, kind } of strong) {
      const x = Math.min(xOf(batch) + 5, pen.wide - pen.width(label, 11, true) - 4);
      const colour = kind === "fault" ? "bad" : "ink";
      pen.text(label, x, LABEL, { size: 11, bold: true, ground: "panel", isMinor: true, colour });
    }
    pen.dot([here, 4], 3.5, "ink");
    const starts = marks.map(({ batch }) => xOf(batch));
    for (const { short: label, batch } of others) {
      const x = xOf(batch) + 5;
      const room = Math.min(...starts.filter((start) => start > x)) - 4 - x;
      pen.text(label, x, LABEL, { size: 11, colour: "muted", room, isMinor: true });
    }
  };

  const paint = () => {
    if (!pen.begin()) return;
    const { wide, tall } = pen;
    column = wide / (last - first + 1);
    slider.style.padding = `0 ${column / 2}px`;
    const height = (tall - FLAGS - AXIS) / Math.max(1, tracks.length);
    tracks.forEach((track, k) => {
      const area = { x: 0, y: FLAGS + k * height + GAP, wide, tall: height - GAP };
      const base = area.y + area.tall;
      const yOf = (value: number) => base - (value * area.tall) / (track.top * 1.08 || 1);
      if (track.kind === "bars") paintBars(track, area, yOf);
      else if (track.kind === "heat") paintHeat(track, area);
      else paintLines(track, area, yOf);
      if (track.kind !== "heat") pen.straight(0, base, wide, base, "rule");
    });
    const every = Math.ceil((last - first + 1) / TICKS);
    for (let batch = Math.ceil(first / every) * every; batch <= last; batch += every) {
      pen.text(`${batch}`, xOf(batch, 0.5), tall - AXIS / 2, TICK);
    }
    paintFlags();
  };

  /** Shows a moment, with the names of the tracks and their values at the left. */
  const show = (page: CockpitPage, { batch, words, selected: name, measure }: Moment) => {
    const others = page.timeline.tracks.filter(({ kind }) => kind !== "heat");
    tracks = [...others, heatOf(page, measure) ?? []].flat();
    [first, last] = spanOf(page);
    [flags, now, selected] = [page.annotations, batch, name];
    Object.assign(slider, { min: first, max: last, value: batch, ariaValueText: words });
    const rows = tracks.map((track) => {
      const value = make(track.kind === "heat" ? "span" : "b", "", said(track, batch));
      return make("div", "", track.name, value);
    });
    labels.replaceChildren(make("div", "", "decisions"), ...rows);
    paint();
  };
  return { show, close: watchLooks(frame, theme, paint) };
}

/** The decisions with a label: those whose label counts most first, the last one at the playhead and
 * all faults; then the others. */
export function orderFlags(flags: Annotation[], at: number): [Annotation[], Annotation[]] {
  const named = flags.filter(({ short: label }) => label);
  const current = named.findLast(({ batch }) => batch <= at);
  const faults = named.filter((flag) => flag.kind === "fault" && flag !== current);
  const strong = current ? [current, ...faults] : faults;
  return [strong, named.filter((flag) => !strong.includes(flag))];
}
