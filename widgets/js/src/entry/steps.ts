// An algorithm, step by step, forwards and backwards, by buttons, keys, a slider and Play; by a kernel
// and on a page without one.
import type { StepAlgorithm, StepFrame } from "../../frames.ts";
import { add, make, named, pressed, still } from "../base/dom.ts";
import { startListening } from "../base/kernel_messages.ts";
import { Playback } from "../base/playback.ts";
import { draw } from "../base/stepper.ts";
import { type Model, observed, onPages, type View } from "../base/widget.ts";

interface Page {
  frames: StepFrame[];
  position: number;
  algorithm: StepAlgorithm;
}

/** Milliseconds from one step to the next while it plays. */
const EVERY = 1600;

/** The page, or the model of a kernel: it takes the position, and the texts to run again on. */
interface Source extends Partial<Pick<Model, "set" | "save_changes">> {
  get<K extends keyof Page>(name: K): Page[K];
}

class Player extends Playback {
  private readonly source: Source;
  private readonly root: HTMLElement;
  private readonly box: HTMLElement;
  private readonly marks = make("div", "braid-marks");
  private readonly slider = named(make("input"), "position");
  private readonly label: HTMLElement;
  private frames: StepFrame[] = [];
  private shown: StepFrame | undefined;

  /** Without a kernel there are recorded variants instead of rows of one's own. */
  constructor(root: HTMLElement, source: Source) {
    super();
    this.length = EVERY;
    this.root = root;
    this.source = source;
    root.classList.add("braid", "braid-stepper");
    root.tabIndex = 0;
    this.box = add(root, "div", "braid-step");
    const bar = add(root, "div", "braid-controls");
    this.addButtons(bar);
    Object.assign(this.slider, { type: "range", min: "0" });
    add(bar, "div", "braid-track", this.marks, this.slider);
    this.label = add(bar, "span");
    this.slider.oninput = () => this.go(Number(this.slider.value));
    root.addEventListener("keydown", (event) => this.press(event));
    this.load();
  }

  /** Shows the steps of the page, or other ones, from now on. */
  load(frames = this.source.get("frames"), position = this.source.get("position")): void {
    this.frames = frames;
    this.go(position);
  }

  /** Shows the step at which the kernel is. */
  follow(): void {
    const position = this.source.get("position");
    if (this.position !== position) this.go(position);
  }

  protected get last(): number {
    return this.frames.length - 1;
  }

  protected show(): void {
    const { slider, position, last } = this;
    const frame = this.frames[position];
    this.showButtons();
    if (!frame || frame === this.shown) return;
    this.shown = frame;
    Object.assign(slider, { max: String(last), value: String(position) });
    this.label.textContent = `${position + 1} / ${last + 1}`;
    const marks = this.frames.map(({ matches }, k) =>
      make("i", `${matches.length ? "found" : ""} ${k <= position ? "done" : ""}`),
    );
    this.marks.replaceChildren(...marks);
    const glide = this.time === 0 && !still() ? EVERY * 0.8 : 0;
    this.addFork(draw(this.box, frame, this.source.get("algorithm"), glide), frame);
    this.root.dataset.seq = String(position);
    this.send("position", position);
  }

  /** The browser moves what moves in a step. */
  protected paint(): void {}

  private send(name: "position" | "fork", value: unknown): void {
    this.source.set?.(name, value);
    this.source.save_changes?.();
  }

  private press(event: KeyboardEvent): void {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || (event.target as Element).matches("input, select, textarea")) return;
    event.preventDefault();
    event.stopPropagation();
    this.step(by);
  }

  /** Offers to go on with other rows: with those that are typed, or with recorded variants. */
  private addFork(side: Element, frame: StepFrame): void {
    const { texts, variants } = this.source.get("algorithm");
    const hasKernel = this.source.set !== undefined;
    if (!(hasKernel ? texts : Object.keys(variants)).length) return;
    const fork = add(side, "details", "braid-fork");
    add(fork, "summary", "", "↳ Fork here with other rows");
    if (hasKernel) this.askForRows(fork, frame);
    else this.offerVariants(fork, { example: this.source.get("frames"), ...variants });
  }

  private offerVariants(fork: HTMLElement, variants: Record<string, StepFrame[]>): void {
    for (const [name, frames] of Object.entries(variants)) {
      pressed(fork, name, () => this.load(frames, 0));
    }
    add(fork, "p", "", "Rows of your own need a kernel.");
  }

  /** Asks for the rows from this step on; those that have arrived stay. */
  private askForRows(fork: HTMLElement, { arrived }: StepFrame): void {
    const { labels, texts } = this.source.get("algorithm");
    const areas = texts.map((text, k) => {
      const words = k || !arrived ? [] : text.trim().split(/\s+/);
      const fixed = words.splice(0, arrived).join(" ");
      const area = make("textarea");
      Object.assign(area, { value: fixed ? words.join(" ") : text, rows: k ? 5 : 3 });
      add(fork, "label", "", labels[k], fixed ? make("code", "", `${fixed} …`) : undefined, area);
      return () => `${fixed} ${area.value}`;
    });
    const { position } = this;
    pressed(fork, "Run again", () =>
      this.send("fork", { texts: areas.map((read) => read()), position }),
    );
    add(fork, "div", "braid-refusal").role = "alert";
  }
}

onPages<Page>("steps", (root, page) => new Player(root, { get: (name) => page[name] }));

export default {
  initialize: startListening,
  render({ model, el }: View): () => void {
    const root = add(el, "div");
    const player = new Player(root, model);
    const forget = observed(model, {
      frames: () => player.load(),
      position: () => player.follow(),
      refusal: () => root.querySelector(".braid-refusal")?.replaceChildren(model.get("refusal")),
    });
    return () => {
      forget();
      player.stop();
    };
  },
};
