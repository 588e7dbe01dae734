// An algorithm, step by step, by a kernel and on a page without one.
import type { StepAlgorithm, StepFrame } from "../../frames.ts";
import { add, pressed } from "../base/dom.ts";
import { startListening } from "../base/kernel_messages.ts";
import { Player } from "../base/player.ts";
import { draw } from "../base/stepper.ts";
import { observed, onPages, type View } from "../base/widget.ts";

interface Page {
  frames: StepFrame[];
  position: number;
  algorithm: StepAlgorithm;
}

type Run = (texts: string[], position: number) => void;

/** Shows the steps. ``run`` runs again on other texts; without it there are recorded variants. */
function film(root: HTMLElement, page: Page, run?: Run, moved?: (position: number) => void) {
  root.classList.add("braid", "braid-stepper");
  const box = add(root, "div", "braid-step");
  const painter = {
    draw(frame: StepFrame, position: number, glide: number) {
      const side = draw(box, frame, page.algorithm, glide);
      root.dataset.seq = String(position);
      const { texts, variants } = page.algorithm;
      if (!(run ? texts : Object.keys(variants)).length) return;
      const fork = add(side, "div", "braid-fork");
      const opens = pressed(fork, "↳ Fork here with other rows", () => {
        opens.remove();
        if (run) askForRows(fork, page, frame, (own) => run(own, position));
        else offerVariants(fork, page, (frames) => player.load(frames, 0));
      });
    },
  };
  const marked = (frame: StepFrame) => frame.matches.length > 0;
  const options = { start: page.position, every: 1600, marked, moved: moved ?? (() => {}) };
  const player: Player<StepFrame> = new Player(root, page.frames, painter, options);
  return player;
}

/** Asks for the rows from this step on; those that have arrived stay. */
function askForRows(
  box: HTMLElement,
  { algorithm: { labels, texts } }: Page,
  { arrived }: StepFrame,
  run: (texts: string[]) => void,
): void {
  const areas = texts.map((text, k) => {
    const words = k || !arrived ? [] : text.trim().split(/\s+/);
    const fixed = words.splice(0, arrived).join(" ");
    const label = add(box, "label", "", labels[k]);
    if (fixed) add(label, "code", "", `${fixed} …`);
    const area = add(label, "textarea");
    Object.assign(area, { value: fixed ? words.join(" ") : text, rows: k ? 5 : 3 });
    return () => `${fixed} ${area.value}`;
  });
  pressed(box, "Run again", () => run(areas.map((read) => read())));
  add(box, "div", "braid-refusal").setAttribute("role", "alert");
}

function offerVariants(box: HTMLElement, page: Page, show: (frames: StepFrame[]) => void): void {
  const all = { example: page.frames, ...page.algorithm.variants };
  for (const [name, frames] of Object.entries(all)) pressed(box, name, () => show(frames));
  add(box, "p", "", "Rows of your own need a kernel.");
}

onPages<Page>("steps", film);

export default {
  initialize: startListening,
  render({ model, el }: View): () => void {
    const read = (): Page => ({
      frames: model.get("frames"),
      position: model.get("position"),
      algorithm: model.get("algorithm"),
    });
    const set = (name: string, value: unknown) => {
      model.set(name, value);
      model.save_changes();
    };
    const [root, page] = [add(el, "div"), read()];
    const run = (texts: string[], position: number) => set("fork", { texts, position });
    const player = film(root, page, run, (at) => set("position", at));
    const forget = observed(model, {
      frames: () => {
        Object.assign(page, read());
        player.load(page.frames, page.position);
      },
      position: () => player.go(model.get("position")),
      refusal: () => root.querySelector(".braid-refusal")?.replaceChildren(model.get("refusal")),
    });
    return () => {
      forget();
      player.stop();
    };
  },
};
