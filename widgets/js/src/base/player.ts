// Goes through frames, forwards and backwards, by buttons, keys, a slider and Play.
import { add, make, named, pressed, still } from "./dom.ts";

/** Draws the frames of one film. */
export interface Painter<Frame> {
  /** ``glide``: milliseconds in which things may move to where they belong; 0: at once. */
  draw(frame: Frame, position: number, glide: number): void;
}

interface Options<Frame> {
  start: number;
  /** Milliseconds from one frame to the next while it plays. */
  every: number;
  moved?: (position: number) => void;
  /** Whether a frame is marked on the slider. */
  marked?: (frame: Frame) => boolean;
}

export const clamped = (position: number, length: number): number =>
  Math.max(0, Math.min(length - 1, position));

export class Player<Frame> {
  private readonly painter: Painter<Frame>;
  private readonly options: Options<Frame>;
  private readonly back: HTMLButtonElement;
  private readonly button: HTMLButtonElement;
  private readonly forward: HTMLButtonElement;
  private readonly marks = make("div", "braid-marks");
  private readonly slider = named(make("input"), "position");
  private readonly label = make("span");
  private frames: Frame[];
  private position: number;
  private timer: ReturnType<typeof setInterval> | undefined;

  /** The controls are put at the end of the root. */
  constructor(
    root: HTMLElement,
    frames: Frame[],
    painter: Painter<Frame>,
    options: Options<Frame>,
  ) {
    this.frames = frames;
    this.painter = painter;
    this.position = clamped(options.start, frames.length);
    this.options = options;
    root.tabIndex = 0;
    const bar = add(root, "div", "braid-controls");
    this.back = pressed(bar, "◀", () => this.turn(-1));
    this.button = pressed(bar, "Play", () => this.toggle());
    this.forward = pressed(bar, "▶", () => this.turn(1));
    named(this.back, "back");
    named(this.forward, "forward");
    add(bar, "div", "braid-track").append(this.marks, this.slider);
    bar.append(this.label);
    Object.assign(this.slider, { type: "range", min: "0" });
    this.slider.addEventListener("input", () => {
      this.stop();
      this.go(Number(this.slider.value));
    });
    root.addEventListener("keydown", (event) => this.press(event));
    this.mark();
    this.show(false);
  }

  /** Shows other frames from now on. */
  load(frames: Frame[], position: number): void {
    this.frames = frames;
    this.position = clamped(position, frames.length);
    this.mark();
    this.show(false);
  }

  go(to: number, glide = false): void {
    const next = clamped(to, this.frames.length);
    if (next === this.position) return;
    this.position = next;
    this.show(glide);
    this.options.moved?.(next);
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.button.textContent = "Play";
  }

  private get last(): number {
    return this.frames.length - 1;
  }

  private step(): void {
    if (this.position >= this.last) this.stop();
    else this.go(this.position + 1, true);
  }

  private toggle(): void {
    if (this.timer !== undefined) {
      this.stop();
      return;
    }
    if (this.position >= this.last) this.go(0);
    this.timer = setInterval(() => this.step(), this.options.every);
    this.button.textContent = "Pause";
  }

  private turn(by: number): void {
    this.stop();
    this.go(this.position + by, by > 0);
  }

  private mark(): void {
    const { marked } = this.options;
    this.marks.replaceChildren();
    if (!marked) return;
    for (const frame of this.frames) add(this.marks, "i", marked(frame) ? "found" : "");
  }

  private show(glide: boolean): void {
    const { back, forward, slider, marks, label, position, last } = this;
    slider.max = String(last);
    slider.value = String(position);
    label.textContent = `${position + 1} / ${last + 1}`;
    [...marks.children].forEach((mark, k) => {
      mark.classList.toggle("done", k <= position);
    });
    back.disabled = position === 0;
    forward.disabled = position === last;
    const frame = this.frames[position];
    if (frame === undefined) return;
    this.painter.draw(frame, position, glide && !still() ? this.options.every * 0.8 : 0);
  }

  private press(event: KeyboardEvent): void {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || (event.target as Element).matches("input, select, textarea")) return;
    event.preventDefault();
    event.stopPropagation();
    this.turn(by);
  }
}
