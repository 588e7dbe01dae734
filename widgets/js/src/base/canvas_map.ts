// A map of one canvas: a title with its scale above it, a legend, and a sentence below.
import { add, wordy } from "./dom.ts";
import { count, shareOf } from "./format.ts";
import { type Box, between, eased, mix, type Point, risen, within } from "./geometry.ts";
import { Pen, type Target } from "./pen.ts";
import type { Colour, Theme } from "./theme.ts";

/** A sign of a legend and its meaning; ``stream`` is the hue of the sign, or ``shade`` its color. A
 * minor one is left out in a narrow pane. */
export interface Sign {
  sign?: string;
  stream?: number;
  shade?: string;
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

/** The part that all frames share: the rows of a full bar or cell, and most of them the rows on each host. */
export interface Held {
  scale_max: number;
  stored?: number[];
}

export abstract class CanvasMap<Frame extends Held> {
  protected readonly pen: Pen;
  protected readonly scale: HTMLElement;
  protected frame!: Frame;
  /** The frame before it. */
  protected before: Frame | undefined;
  /** The share of the batch that is over, and of the way of what moves in it. */
  protected time = 1;
  protected share = 1;
  protected selected = "";
  private readonly title: HTMLElement;
  private readonly legend: HTMLElement;
  private readonly note: HTMLElement;

  constructor(box: HTMLElement, theme: Theme) {
    const head = add(box, "div", "braid-caption");
    this.title = add(head, "b");
    this.scale = add(head, "span");
    this.legend = add(box, "div", "braid-caption braid-legend");
    this.pen = makePen(box, theme);
    this.note = add(add(box, "div", "braid-caption"), "b");
    this.signs([]);
  }

  get targets(): Targets[] {
    return [{ element: this.pen.canvas, targets: this.pen.targets }];
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

  protected signs(signs: Sign[]): void {
    this.legend.hidden = !signs.length;
    this.legend.replaceChildren();
    for (const { sign = "■", stream, shade, text, isMinor } of signs) {
      const colour = stream === undefined ? shade : `stream${stream % 6}`;
      const mark = add(
        this.legend,
        "span",
        isMinor ? "braid-wordy" : "",
        colour ? `${sign} ` : text,
      );
      if (!colour) continue;
      mark.style.color = `var(--ck-${colour})`;
      mark.append(text);
    }
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

  /** The style of a text that names what can be selected. */
  protected named(name: string, colour: Colour = "ink"): { bold: boolean; colour: Colour } {
    const bold = this.selected === name;
    return { bold, colour: bold ? "accent" : colour };
  }

  protected textOf(host: number): string {
    return `Host ${host}: ${count(this.frame.stored?.[host] ?? 0)} rows`;
  }

  /** The color of a host's bar. */
  protected barColour(host: number): Colour {
    const { theme } = this.pen;
    if (theme.failed.has(`host:${host}`)) return "bad";
    return this.named(`host:${host}`, theme.load(0.62)).colour;
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
    pen.box(box, { fill: pen.theme.load(load), stroke: "bg", width: 1.5 });
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
      pen.box(risen(room, this.heldBy(host)), { fill: this.barColour(host), round: 2 });
      pen.target({ x: 0, y: top, wide: pen.wide, tall }, name, this.textOf(host));
    }
    return row;
  }

  /** Paints dots on a line. Each moves to the place of the next while the batch goes on. */
  protected paintBeads(line: Point[], colour: Colour): void {
    const apart = 46;
    for (const [shade, width] of [
      ["panel", 8],
      [colour, 5],
    ] as const) {
      this.pen.line(line, shade, width, [0, apart], 1, -apart * this.time);
    }
  }

  /** Names the upper and the left side of a box. */
  protected nameSides({ x, y, tall }: Box, names: string[], colours: Colour[]): void {
    const { pen } = this;
    const [[above = "", beside = ""], [a = "muted", b = "muted"]] = [names, colours];
    pen.text(above, x, y - 18, { bold: true, colour: a });
    const long = Math.min(pen.width(beside, 12, true), pen.tall - 12);
    const low = Math.min(pen.tall - 4, Math.max(y + tall, y + long - 20));
    pen.text(beside, x - 20, low, { bold: true, colour: b, turn: -Math.PI / 2 });
  }
}

/** A pen for a canvas as large as its box, at the end of another. */
export const makePen = (box: HTMLElement, theme: Theme): Pen =>
  new Pen(add(add(box, "div", "braid-canvas"), "canvas"), theme);
