// An algorithm, step by step, forwards and backwards, by buttons, keys, a slider and Play; by a kernel
// and on a page without one.
import type { StepAlgorithm, StepFrame } from "../../frames.ts";
import { add, make, named, pressed, still } from "../base/dom.ts";
import { startListening } from "../base/kernel_messages.ts";
import { Playback } from "../base/playback.ts";
import { draw } from "../base/stepper.ts";
import { observed, onPages, type View } from "../base/widget.ts";

interface Page {
  frames: StepFrame[];
  position: number;
  algorithm: StepAlgorithm;
}

/** Milliseconds from one step to the next while it plays. */
const EVERY = 1600;

/** Reads a field of the page. */
type Get = <K extends keyof Page>(name: K) => Page[K];
/** Sends a field to the kernel: the position, or the texts to run again on. */
type Send = (name: "position" | "fork", value: unknown) => void;

class Player extends Playback {
  private readonly get: Get;
  private readonly send: Send | undefined;
  private readonly root: HTMLElement;
  private readonly box = make("div", "braid-step");
  private readonly bar = make("div", "braid-controls");
  private readonly back = this.addTurn("◀", "back", -1);
  private readonly button = pressed(this.bar, "Play", () => this.playOrStop());
  private readonly forward = this.addTurn("▶", "forward", 1);
  private readonly marks = make("div", "braid-marks");
  private readonly slider = named(make("input"), "position");
  private readonly label = make("span");
  private frames: StepFrame[] = [];
  private shown: StepFrame | undefined;

  /** Without ``send`` there are recorded variants instead of rows of one's own. */
  constructor(root: HTMLElement, get: Get, send?: Send) {
    super();
    this.length = EVERY;
    this.root = root;
    this.get = get;
    this.send = send;
    root.classList.add("braid", "braid-stepper");
    root.tabIndex = 0;
    root.append(this.box, this.bar);
    Object.assign(this.slider, { type: "range", min: "0" });
    this.bar.append(make("div", "braid-track", this.marks, this.slider), this.label);
    this.slider.oninput = () => this.go(Number(this.slider.value));
    root.addEventListener("keydown", (event) => this.press(event));
    this.load();
  }

  /** Shows the steps of the page, or other ones, from now on. */
  load(frames = this.get("frames"), position = this.get("position")): void {
    this.frames = frames;
    this.go(position);
  }

  /** Shows the step at which the kernel is. */
  follow(): void {
    if (this.position !== this.get("position")) this.go(this.get("position"));
  }

  close(): void {
    this.stop();
  }

  protected get last(): number {
    return this.frames.length - 1;
  }

  protected show(): void {
    const { slider, position, last } = this;
    const frame = this.frames[position];
    this.button.textContent = this.isPlaying ? "Pause" : "Play";
    if (!frame || frame === this.shown) return;
    this.shown = frame;
    Object.assign(slider, { max: String(last), value: String(position) });
    this.label.textContent = `${position + 1} / ${last + 1}`;
    const marks = this.frames.map(({ matches }, k) =>
      make("i", `${matches.length ? "found" : ""} ${k <= position ? "done" : ""}`),
    );
    this.marks.replaceChildren(...marks);
    this.back.disabled = position === 0;
    this.forward.disabled = position === last;
    const glide = this.time === 0 && !still() ? EVERY * 0.8 : 0;
    this.addFork(draw(this.box, frame, this.get("algorithm"), glide), frame);
    this.root.dataset.seq = String(position);
    this.send?.("position", position);
  }

  /** The browser moves what moves in a step. */
  protected paint(): void {}

  private addTurn(text: string, name: string, by: number): HTMLButtonElement {
    return named(
      pressed(this.bar, text, () => this.step(by)),
      name,
    );
  }

  private press(event: KeyboardEvent): void {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || (event.target as Element).matches("input, select, textarea")) return;
    event.preventDefault();
    event.stopPropagation();
    this.step(by);
  }

  private addFork(side: Element, { arrived }: StepFrame): void {
    const { texts, variants } = this.get("algorithm");
    if (!(this.send ? texts : Object.keys(variants)).length) return;
    const fork = add(side, "div", "braid-fork");
    const opens = pressed(fork, "↳ Fork here with other rows", () => {
      opens.remove();
      if (this.send) this.askForRows(fork, arrived, this.send);
      else this.offerVariants(fork);
    });
  }

  /** Asks for the rows from this step on; those that have arrived stay. */
  private askForRows(box: HTMLElement, arrived: number, send: Send): void {
    const { labels, texts } = this.get("algorithm");
    const areas = texts.map((text, k) => {
      const words = k || !arrived ? [] : text.trim().split(/\s+/);
      const fixed = words.splice(0, arrived).join(" ");
      const area = make("textarea");
      Object.assign(area, { value: fixed ? words.join(" ") : text, rows: k ? 5 : 3 });
      add(box, "label", "", labels[k], fixed ? make("code", "", `${fixed} …`) : undefined, area);
      return () => `${fixed} ${area.value}`;
    });
    const position = this.position;
    pressed(box, "Run again", () => send("fork", { texts: areas.map((read) => read()), position }));
    add(box, "div", "braid-refusal").setAttribute("role", "alert");
  }

  private offerVariants(box: HTMLElement): void {
    const all = { example: this.get("frames"), ...this.get("algorithm").variants };
    for (const [name, frames] of Object.entries(all))
      pressed(box, name, () => this.load(frames, 0));
    add(box, "p", "", "Rows of your own need a kernel.");
  }
}

onPages<Page>("steps", (root, page) => new Player(root, (name) => page[name]));

export default {
  initialize: startListening,
  render({ model, el }: View): () => void {
    const root = add(el, "div");
    const send: Send = (name, value) => {
      model.set(name, value);
      model.save_changes();
    };
    const player = new Player(root, (name) => model.get(name), send);
    const forget = observed(model, {
      frames: () => player.load(),
      position: () => player.follow(),
      refusal: () => root.querySelector(".braid-refusal")?.replaceChildren(model.get("refusal")),
    });
    return () => {
      forget();
      player.close();
    };
  },
};
