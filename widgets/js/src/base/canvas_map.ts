// A map of one canvas: a title with its scale above it, a legend, and a sentence below.
import { add, wordy } from "./dom.ts";
import { Pen, type Target } from "./pen.ts";
import type { Theme } from "./theme.ts";

/** A sign of a legend and its meaning; ``stream`` is the hue of the sign, or ``shade`` its color. */
export interface Sign {
  sign?: string;
  stream?: number;
  shade?: string;
  text: string;
}

/** A frame, the one before it, the share of the batch that is over, and what is selected. */
export interface Shown<Frame> {
  frame: Frame;
  before: Frame | undefined;
  time: number;
  selected: string;
}

/** The number in a selection of a kind, as in "host:12"; NaN for another kind. */
export const numberIn = (kind: string, selected: string): number =>
  selected.startsWith(`${kind}:`) ? Number(selected.slice(kind.length + 1)) : Number.NaN;

export abstract class CanvasMap<Frame> {
  protected readonly pen: Pen;
  private readonly title: HTMLElement;
  private readonly scale: HTMLElement;
  private readonly legend: HTMLElement;
  private readonly note: HTMLElement;
  private told: Frame | undefined;

  constructor(box: HTMLElement, theme: Theme) {
    const head = add(box, "div", "braid-caption");
    this.title = add(head, "b");
    this.scale = add(head, "span");
    this.legend = add(box, "div", "braid-caption braid-legend");
    this.pen = new Pen(add(add(box, "div", "braid-canvas"), "canvas"), theme);
    this.note = add(add(box, "div", "braid-caption"), "b");
    this.signs([]);
  }

  get targets(): { element: Element; targets: Target[] }[] {
    return [{ element: this.pen.canvas, targets: this.pen.targets }];
  }

  close(): void {}

  draw(frame: Frame, before: Frame | undefined, time: number, selected: string): void {
    if (frame !== this.told) this.tell(frame);
    this.told = frame;
    if (this.pen.begin()) this.paint({ frame, before, time, selected });
  }

  /** Writes the texts around the canvas. */
  protected abstract tell(frame: Frame): void;

  protected abstract paint(shown: Shown<Frame>): void;

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
}
