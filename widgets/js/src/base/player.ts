// Goes through frames, forwards and backwards, by buttons, keys, a slider and Play.
import { add, named, still } from "./dom.ts";

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

function controls(bar: Element) {
  const back = add(bar, "button", "", "◀");
  const play = add(bar, "button", "", "Play");
  const forward = add(bar, "button", "", "▶");
  named(back, "back");
  named(forward, "forward");
  const track = add(bar, "div", "braid-track");
  const marks = add(track, "div", "braid-marks");
  const slider = add(track, "input");
  Object.assign(slider, { type: "range", min: "0" });
  named(slider, "position");
  return { back, play, forward, slider, marks, label: add(bar, "span") };
}

export class Player<Frame> {
  private readonly root: HTMLElement;
  private readonly painter: Painter<Frame>;
  private readonly bar: ReturnType<typeof controls>;
  private readonly options: Options<Frame>;
  private frames: Frame[];
  private position: number;
  private timer: ReturnType<typeof setInterval> | undefined;

  /** The controls are put at the end of ``place``. */
  constructor(
    root: HTMLElement,
    frames: Frame[],
    painter: Painter<Frame>,
    options: Options<Frame>,
    place: HTMLElement = root,
  ) {
    this.root = root;
    this.frames = frames;
    this.painter = painter;
    this.position = clamped(options.start, frames.length);
    this.options = options;
    root.tabIndex = 0;
    const bar = add(place, "div", "braid-controls");
    this.bar = controls(bar);
    this.listen();
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
    this.bar.play.textContent = "Play";
  }

  private play(): void {
    this.timer = setInterval(() => this.step(), this.options.every);
    this.bar.play.textContent = "Pause";
  }

  private step(): void {
    if (this.position >= this.frames.length - 1) this.stop();
    else this.go(this.position + 1, true);
  }

  private toggle(): void {
    if (this.timer !== undefined) {
      this.stop();
      return;
    }
    if (this.position >= this.frames.length - 1) this.go(0);
    this.play();
  }

  private turn(by: number): void {
    this.stop();
    this.go(this.position + by, by > 0);
  }

  private mark(): void {
    const { marked } = this.options;
    this.bar.marks.replaceChildren();
    if (!marked) return;
    for (const frame of this.frames) add(this.bar.marks, "i", marked(frame) ? "found" : "");
  }

  private show(glide: boolean): void {
    const { back, forward, slider, marks, label } = this.bar;
    const last = this.frames.length - 1;
    slider.max = String(last);
    slider.value = String(this.position);
    label.textContent = `${this.position + 1} / ${last + 1}`;
    [...marks.children].forEach((mark, k) => {
      mark.classList.toggle("done", k <= this.position);
    });
    back.disabled = this.position === 0;
    forward.disabled = this.position === last;
    const frame = this.frames[this.position];
    if (frame === undefined) return;
    this.painter.draw(frame, this.position, glide && !still() ? this.options.every * 0.8 : 0);
  }

  private listen(): void {
    const { back, play, forward, slider } = this.bar;
    back.addEventListener("click", () => this.turn(-1));
    forward.addEventListener("click", () => this.turn(1));
    play.addEventListener("click", () => this.toggle());
    slider.addEventListener("input", () => {
      this.stop();
      this.go(Number(slider.value));
    });
    this.root.addEventListener("keydown", (event) => this.press(event));
  }

  private press(event: KeyboardEvent): void {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || (event.target as Element).matches("input, select, textarea")) return;
    event.preventDefault();
    event.stopPropagation();
    this.turn(by);
  }
}
