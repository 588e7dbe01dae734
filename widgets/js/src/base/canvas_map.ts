// A map of one canvas: a title with its scale above it, a legend, and a sentence below.
import { add, wordy } from "./dom.ts";
import { count } from "./format.ts";
import { type Box, eased, Pen, type Target } from "./pen.ts";
import type { Colour, Theme } from "./theme.ts";

/** A sign of a legend and its meaning; ``stream`` is the hue of the sign, or ``shade`` its color. */
export interface Sign {
  sign?: string;
  stream?: number;
  shade?: string;
  text: string;
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

export abstract class CanvasMap<Frame> {
  protected readonly pen: Pen;
  protected readonly scale: HTMLElement;
  /** What stands below the canvas. */
  protected readonly low: HTMLElement;
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
    this.low = add(box, "div", "braid-caption");
    this.note = add(this.low, "b");
    this.signs([]);
  }

  get targets(): Targets[] {
    return [{ element: this.pen.canvas, targets: this.pen.targets }];
  }

  draw(frame: Frame, before: Frame | undefined, time: number, selected: string): void {
    const known = this.frame;
    Object.assign(this, { frame, before, time, selected, share: eased(time) });
    if (frame !== known) this.tell(frame);
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
    for (const { sign = "■", stream, shade, text } of signs) {
      const colour = stream === undefined ? shade : `stream${stream % 6}`;
      const mark = add(this.legend, "span", "", colour ? `${sign} ` : text);
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

  /** The color of a host's bar. */
  protected barColour(host: number): Colour {
    return this.selected === `host:${host}` ? "accent" : this.pen.theme.load(0.62);
  }

  /** Paints a host's cell, the darker the more it holds, and returns the color of its texts. */
  protected paintCell(host: number, box: Box, rows: number, top: number, more = ""): Colour {
    const { pen } = this;
    const load = top ? rows / top : 0;
    pen.box(box, { fill: pen.theme.load(load), stroke: "bg", width: 1.5 });
    pen.target(box, `host:${host}`, `Host ${host}: ${count(rows)} rows${more}`);
    return load > 0.5 ? "bg" : "ink";
  }
}

/** A pen for a canvas as large as its box, at the end of another. */
export const makePen = (box: HTMLElement, theme: Theme): Pen =>
  new Pen(add(add(box, "div", "braid-canvas"), "canvas"), theme);
