// The map of aligned routing: a row a host, batches across; solid where a host has a segment of the
// master stream.
import { records } from "../base/columns.ts";
import { add, wordy } from "../base/dom.ts";
import { count } from "../base/format.ts";
import { eased, mix, Pen, type Target } from "../base/pen.ts";
import type { Theme } from "../base/theme.ts";
import type { Segment, SegmentsFrame } from "../frames.ts";

const [TOP, LOW] = [16, 20];
const WORDS =
  ": rows of the master stream go to one host at a time, rows of the others are copied there";

/** All frames of a run on one scale. */
export function segmentScale(frames: SegmentsFrame[]): void {
  const top = Math.max(0, ...frames.map(({ scale_max }) => scale_max));
  for (const frame of frames) frame.scale_max = top;
}

/** The segments at which another stream becomes the master. */
export const switches = (segments: Segment[]): Segment[] =>
  segments.filter(({ stream }, k) => k > 0 && segments[k - 1]?.stream !== stream);

export class SegmentsView {
  private readonly pen: Pen;
  private readonly legend: HTMLElement;
  private readonly scale: HTMLElement;
  private readonly note: HTMLElement;

  constructor(box: HTMLElement, theme: Theme) {
    const head = add(box, "div", "braid-caption");
    wordy(add(head, "b"), "Segments of the master", WORDS);
    this.scale = add(head, "span");
    this.legend = add(box, "div", "braid-caption braid-legend");
    this.pen = new Pen(add(add(box, "div", "braid-canvas"), "canvas"), theme);
    this.note = add(add(box, "div", "braid-caption"), "b");
  }

  get targets(): { element: Element; targets: Target[] }[] {
    return [{ element: this.pen.canvas, targets: this.pen.targets }];
  }

  close(): void {}

  draw(
    frame: SegmentsFrame,
    before: SegmentsFrame | undefined,
    time: number,
    selected: string,
  ): void {
    const { pen } = this;
    this.tell(frame);
    if (!pen.begin()) return;
    const hosts = Math.max(1, frame.stored.length);
    const row = (pen.tall - TOP - LOW) / hosts;
    const left = pen.width(`host ${hosts - 1}`, 12, true) + 26;
    const column = (pen.wide - left - 12) / Math.max(8, frame.last - frame.first + 1);
    const shift = before && before.first < frame.first ? 1 - eased(time) : 0;
    const x = (batch: number) => left + (batch - frame.first + shift) * column;
    frame.stored.forEach((rows, host) => {
      const y = TOP + host * row;
      const line = { x: left, y: y + 1, wide: pen.wide - left - 12, tall: row - 2 };
      pen.box(line, { fill: pen.theme.shade("panel"), round: 4 });
      this.paintHost(frame, before, host, rows, y, row, left, eased(time), selected);
    });
    const inside = { x: left, y: 0, wide: pen.wide - left - 12, tall: pen.tall };
    const segments = records(frame.segments);
    const now = Math.min(x(frame.last + time), inside.x + inside.wide);
    pen.inside(inside, () => {
      for (const segment of segments) this.paintSegment(segment, x, row, now);
    });
    for (const { first, stream } of switches(segments)) {
      const at = x(first);
      if (at < left) continue;
      pen.line(
        [
          [at, TOP - 2],
          [at, pen.tall - LOW],
        ],
        pen.theme.shade("ink"),
        1,
        [3, 4],
      );
      const text = `${frame.streams[stream]} is master`;
      if (at + pen.width(text, 11, true) < pen.wide)
        pen.text(text, at + 3, 7, { size: 11, bold: true });
    }
    pen.line(
      [
        [now, TOP],
        [now, pen.tall - LOW],
      ],
      pen.theme.shade("accent"),
      2,
    );
    const style = { size: 11, bold: true, colour: pen.theme.shade("accent") };
    pen.text("now", Math.min(now, pen.wide - 14), pen.tall - 9, { ...style, align: "center" });
  }

  /** The description in words. */
  private tell(frame: SegmentsFrame): void {
    this.scale.textContent = `batches ${frame.first} to ${frame.last}`;
    this.legend.replaceChildren();
    frame.streams.forEach((stream, k) => {
      const mark = add(this.legend, "span", "", "■ ");
      mark.style.color = `var(--ck-stream${k % 6})`;
      mark.append(`stream ${stream}`);
    });
    add(this.legend, "span", "", "bar: rows that a host holds");
    const mean =
      frame.stored.reduce((sum, rows) => sum + rows, 0) / Math.max(1, frame.stored.length);
    const copies = frame.received ? (frame.sent / frame.received).toFixed(2) : "0";
    const loads = `fullest host ${count(Math.max(0, ...frame.stored))} rows, mean ${count(mean)}`;
    this.note.textContent = `${copies} copies sent for one row · ${loads}`;
  }

  private paintHost(
    frame: SegmentsFrame,
    before: SegmentsFrame | undefined,
    host: number,
    rows: number,
    y: number,
    row: number,
    left: number,
    share: number,
    selected: string,
  ): void {
    const { pen } = this;
    const on = selected === `host:${host}`;
    const colour = pen.theme.shade(on ? "accent" : "muted");
    if (row >= 12) pen.text(`host ${host}`, 0, y + row / 2, { bold: on, colour });
    const held = mix(before?.stored[host] ?? rows, rows, share) / (frame.scale_max || 1);
    const tall = held * (row - 4);
    const bar = { x: left - 16, y: y + row - 2 - tall, wide: 10, tall };
    pen.box(bar, { fill: on ? pen.theme.shade("accent") : pen.theme.load(0.62), round: 2 });
    const whole = { x: 0, y, wide: pen.wide, tall: row };
    pen.target(whole, `host:${host}`, `Host ${host}: ${count(rows)} rows`);
  }

  private paintSegment(
    { stream, host, first, last }: Segment,
    x: (batch: number) => number,
    row: number,
    now: number,
  ): void {
    const { pen } = this;
    const end = Math.min(x(last + 1), now);
    const box = {
      x: x(first) + 1,
      y: TOP + host * row + 4,
      wide: end - x(first) - 2,
      tall: row - 8,
    };
    pen.box(box, { fill: pen.theme.stream(stream), round: 4, alpha: 0.9 });
  }
}
