// A map of one canvas: a title with its scale above it, a legend, and a sentence below.
import { type Columns, records } from "./columns.ts";
import { add, make, wordy } from "./dom.ts";
import { count, shareOf } from "./format.ts";
import type { Box, Point } from "./geometry.ts";
import { arcAt, arcOf, between, eased, mix, risen, squareAt, tipOf, within } from "./geometry.ts";
import { type Bar, type Placed, placeBars } from "./host_bars.ts";
import { Pen, type Target } from "./pen.ts";
import { type Colour, hue, type Shade, type Theme } from "./theme.ts";

/** A sign of a legend, its color and its meaning; a minor one is left out in a narrow pane. */
export interface Sign {
  sign: string;
  shade: Shade;
  text: string;
  isMinor?: boolean;
}

export type Pair = [name: string, value: string];

/** A selected thing: its name, where it is, and its figures. */
export interface Detail {
  title: string;
  words: string;
  pairs: Pair[];
}

/** The selection that an element offers. */
export interface Targets {
  element: Element;
  targets: Target[];
}

/** The number in a selection of a kind, as in "host:12"; NaN for another kind. */
export const numberIn = (kind: string, selected: string): number =>
  selected.startsWith(`${kind}:`) ? Number(selected.slice(kind.length + 1)) : Number.NaN;

/** A part below a map. */
interface Part {
  section: HTMLElement;
  note: HTMLElement;
  pen: Pen;
}

/** The selected one of some records, by its kind and a field, as in "host:12" or "query:late". */
export const chosen = <T extends object>(
  columns: Columns<T>,
  kind: string,
  field: keyof T,
  selected: string,
): T | undefined => records(columns).find((each) => `${kind}:${each[field]}` === selected);

/** The part that all frames share: the rows of a full bar or cell, and most of them the rows on each host. */
export interface Held {
  scale_max: number;
  stored?: number[];
}

export abstract class CanvasMap<Frame extends Held> {
  protected readonly pen: Pen;
  /** The pens of all canvases on which something can be selected. */
  protected readonly pens: Pen[];
  protected readonly scale: HTMLElement;
  protected frame!: Frame;
  /** The frame before it. */
  protected before: Frame | undefined;
  /** The share of the batch that is over, and of the way of what moves in it. */
  protected time = 1;
  protected share = 1;
  protected selected = "";
  private readonly box: HTMLElement;
  private readonly title: HTMLElement;
  private readonly legend: HTMLElement;
  private readonly note: HTMLElement;
  /** The box of the parts below the map. */
  private parts: HTMLElement | undefined;

  constructor(box: HTMLElement, theme: Theme) {
    this.box = box;
    const head = add(box, "div", "braid-caption");
    this.title = add(head, "b");
    this.scale = add(head, "span");
    this.legend = add(box, "div", "braid-caption braid-legend");
    this.pen = makePen(box, theme);
    this.pens = [this.pen];
    this.note = add(add(box, "div", "braid-caption"), "b");
    this.signs([]);
  }

  get targets(): Targets[] {
    return this.pens.map(({ canvas: element, targets }) => ({ element, targets }));
  }

  draw(frame: Frame, before: Frame | undefined, time: number, selected: string): void {
    const isKnown = frame === this.frame && selected === this.selected;
    Object.assign(this, { frame, before, time, selected, share: eased(time) });
    this.pen.selected = selected;
    if (!isKnown) this.tell(frame);
    if (this.pen.begin()) this.paint(frame);
  }

  /** Writes the texts around the canvas. */
  protected abstract tell(frame: Frame): void;

  protected abstract paint(frame: Frame): void;

  /** Sets the title; every other part, beginning with the second, is left out in a narrow pane. */
  protected head(scale: string, ...title: string[]): void {
    wordy(this.title, ...title);
    this.scale.textContent = scale;
  }

  /** Sets the sentence below the canvas. */
  protected foot(...text: string[]): void {
    wordy(this.note, ...text);
  }

  /** Sets the legend: a sign in the hue of each stream, then others; a text alone has no sign. */
  protected signs(streams: string[], others: (Sign | string)[] = [], sign = "■"): void {
    const hues = streams.map((text, stream): Sign => ({ sign, shade: hue(stream), text }));
    const marks = [...hues, ...others].map((each) => {
      if (typeof each === "string") return make("span", "", each);
      const mark = make("span", each.isMinor ? "braid-wordy" : "", `${each.sign} ${each.text}`);
      mark.style.color = `var(--ck-${each.shade})`;
      return mark;
    });
    this.legend.hidden = !marks.length;
    this.legend.replaceChildren(...marks);
  }

  /** The height below which the pane scrolls, in pixels. */
  protected needs(height: number): void {
    const around = this.pen.canvas.parentElement;
    if (around) around.style.minHeight = `${height}px`;
  }

  /** The rows of a host, on their way from those of the frame before, as a share of a full bar. */
  protected heldBy(host: number): number {
    const now = this.frame.stored?.[host] ?? 0;
    return shareOf(mix(this.before?.stored?.[host] ?? now, now, this.share), this.frame.scale_max);
  }

  /** The style of a text that names what can be selected, or has failed. */
  protected named(name: string, colour: Colour = "ink"): { bold: boolean; colour: Colour } {
    if (this.pen.theme.failed.has(name)) return { bold: true, colour: "bad" };
    const bold = this.selected === name;
    return { bold, colour: bold ? "accent" : colour };
  }

  protected textOf(host: number): string {
    return `Host ${host}: ${count(this.frame.stored?.[host] ?? 0)} rows`;
  }

  /** Paints a host's bar in a room, and offers the host in a box around it. */
  protected paintHostBar(
    host: number,
    room: Box,
    share: number,
    around: Box,
    more = "",
    pen = this.pen,
  ): void {
    const name = `host:${host}`;
    const { colour: fill } = this.named(name, pen.theme.load(0.62));
    pen.box(risen(room, share), { fill, round: 2 });
    pen.target(around, name, this.textOf(host) + more);
  }

  /** Adds a part below the map: a canvas, above it a title and a text. */
  protected addPart(...title: string[]): Part {
    this.parts ??= add(this.box, "div", "braid-foot");
    const section = add(this.parts, "section");
    wordy(add(section, "b"), ...title);
    const part = { section, note: add(section, "span"), pen: makePen(section, this.pen.theme) };
    this.pens.push(part.pen);
    return part;
  }

  /** Paints what each host holds as bars, apart from row to row, and a dashed line at some rows, with
   * the first of some texts that has room; returns the boxes of the bars. */
  protected paintHeld(
    { pen }: Part,
    hosts: Placed[],
    [limit, colour, ...texts]: [number | null, Colour, ...string[]],
    low = 5,
  ): Bar[] {
    if (!pen.begin()) return [];
    const tall = pen.tall - low;
    const bars = placeBars(hosts, pen.wide, tall);
    for (const { host, ...box } of bars) {
      const room = { ...box, x: box.x + 0.5, wide: Math.max(1, box.wide - 1) };
      this.paintHostBar(host, room, this.heldBy(host), box, "", pen);
    }
    pen.straight(0, tall + 4.5, pen.wide, tall + 4.5, "rule");
    if (limit === null) return bars;
    const y = 4 + tall * (1 - shareOf(limit, this.frame.scale_max));
    pen.straight(0, y, pen.wide, y, colour, 1.5, [6, 4]);
    const style = { bold: true, align: "right", ground: "bg", colour } as const;
    const text = texts.find((each) => pen.width(each, 12, true) < pen.wide - 8) ?? "";
    pen.text(text, pen.wide - 4, y < 20 ? y + 11 : y - 11, style);
    return bars;
  }

  /** Paints an arrow along an arc, and rows on it that come almost to its end. */
  protected paintMove(from: Point, to: Point, fill: Colour, way: number): void {
    this.pen.line(arcOf(from, to, 0, 1), "muted", 1.5, [4, 3]);
    this.pen.line(tipOf(arcAt(from, to, 0.9), to), "muted", 1.5);
    this.paintFlight(from, to, fill, 4.5, 0.85 * way);
  }

  /** Paints rows on their way along an arc as a square, half its side so long, and a trail. */
  protected paintFlight(from: Point, to: Point, fill: Colour, half: number, way: number): void {
    if (way <= 0) return;
    const trail = arcOf(from, to, Math.max(0, way - 0.4), way);
    this.pen.line(trail, fill, 2.5, [], 0.8 - 0.45 * way);
    const square = { fill, stroke: "panel", width: 1.2, round: 2 } as const;
    this.pen.box(squareAt(arcAt(from, to, way), half), square);
  }

  /** The cells of hosts in an area, on their way from those of the frame before; a unit is its side. */
  protected placed(cells: (frame: Frame) => Map<number, Box>, area: Box): [number, Box][] {
    const [then, share] = [cells(this.before ?? this.frame), eased(1.6 * this.time)];
    return [...cells(this.frame)].map(([host, unit]) => {
      return [host, within(between(then.get(host) ?? unit, unit, share), area)];
    });
  }

  /** Paints a host's cell, the darker the more it holds, and returns the color of its texts. */
  protected paintCell(host: number, box: Box, more = ""): Colour {
    const { pen, frame } = this;
    const load = shareOf(frame.stored?.[host] ?? 0, frame.scale_max);
    const width = Math.min(1.5, box.wide / 5, box.tall / 5);
    pen.box(box, { fill: pen.theme.load(load), stroke: "bg", width });
    pen.target(box, `host:${host}`, this.textOf(host) + more);
    return load > 0.5 ? "bg" : "ink";
  }

  /** Paints a row for each host, with its name and a bar of what it holds, and returns the first. */
  protected paintRows(hosts: number, y: number, tall: number, right: number): Box {
    const { pen } = this;
    const x = pen.width(`host ${hosts - 1}`, 12, true) + 32;
    const row = { x, y, wide: pen.wide - x - right, tall };
    for (let host = 0; host < hosts; host++) {
      const [name, top] = [`host:${host}`, y + host * tall];
      pen.box({ ...row, y: top + 1, tall: tall - 2 }, { fill: "panel", round: 4 });
      const style = { ...this.named(name, "muted"), size: Math.min(12, tall) };
      if (tall >= 9) pen.text(`host ${host}`, 6, top + tall / 2, style);
      const room = { x: x - 16, y: top + 2, wide: 10, tall: tall - 4 };
      this.paintHostBar(host, room, this.heldBy(host), { x: 0, y: top, wide: pen.wide, tall });
    }
    return row;
  }

  /** Paints dots on a line. Each moves to the place of the next while the batch goes on. */
  protected paintBeads(line: Point[], colour: Colour): void {
    const apart = 46;
    const paint = (shade: Colour, width: number) =>
      this.pen.line(line, shade, width, [0, apart], 1, -apart * this.time);
    paint("panel", 8);
    paint(colour, 5);
  }

  /** Names the upper and the left side of a box, and paints a line along each. */
  protected nameSides(box: Box, names: string[], colours: Colour[], pen = this.pen): void {
    const { x, y, wide, tall } = box;
    const [[above = "", beside = ""], [a = "muted", b = "muted"]] = [names, colours];
    pen.straight(x, y - 6, x + wide, y - 6, a, 3);
    pen.straight(x - 6, y, x - 6, y + tall, b, 3);
    pen.text(above, x, y - 18, { bold: true, colour: a });
    const long = Math.min(pen.width(beside, 12, true), pen.tall - 12);
    const low = Math.min(pen.tall - 4, Math.max(y + tall, y + long - 20));
    pen.text(beside, x - 20, low, { bold: true, colour: b, turn: -Math.PI / 2 });
  }
}

/** A pen for a canvas as large as its box, at the end of another. */
export const makePen = (box: HTMLElement, theme: Theme): Pen =>
  new Pen(add(add(box, "div", "braid-canvas"), "canvas"), theme);
