// The two ways in which a film is shown: by a kernel (anywidget), and on a page without one.
import type { Palette } from "../frames.ts";
import { add } from "./dom.ts";
import { startListening } from "./kernel_messages.ts";
import { Player } from "./player.ts";

/** The side of a widget's model that is used here. */
export interface Model {
  get<T>(name: string): T;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(content: unknown): void;
  on<T>(event: string, callback: (message: T) => void): void;
  off<T>(event: string, callback: (message: T) => void): void;
}

export interface View {
  model: Model;
  el: HTMLElement;
}

/** The data of a page without a kernel. */
export interface Page<Frame> {
  frames: Frame[];
  palette: Palette;
  position: number;
}

/** Draws a frame into an empty or drawn box. */
export type Draw<Frame> = (box: HTMLElement, frame: Frame, palette: Palette, glide: number) => void;

/** Calls back when traits change; what it returns ends that. */
export function observed(model: Model, changes: Record<string, () => void>): () => void {
  for (const [name, call] of Object.entries(changes)) model.on(`change:${name}`, call);
  return () => {
    for (const [name, call] of Object.entries(changes)) model.off(`change:${name}`, call);
  };
}

/** Shows the pages of this name that stand in the document and are not shown yet. */
export function onPages<Held>(name: string, show: (root: HTMLElement, page: Held) => void): void {
  for (const root of document.querySelectorAll<HTMLElement>(`[data-film="${name}"]`)) {
    const text = root.querySelector("script")?.textContent;
    delete root.dataset.film;
    root.replaceChildren();
    if (text) show(root, JSON.parse(text) as Held);
  }
}

function film<Frame>(
  root: HTMLElement,
  page: Page<Frame>,
  draw: Draw<Frame>,
  every: number,
  moved: (position: number) => void = () => {},
): Player<Frame> {
  root.classList.add("braid");
  const box = add(root, "div");
  const painter = {
    draw(frame: Frame, position: number, glide: number) {
      draw(box, frame, page.palette, glide);
      root.dataset.seq = String(position);
    },
  };
  return new Player(root, page.frames, painter, { start: page.position, every, moved });
}

/** A film as anywidget wants it; pages of the same name are shown at once. */
export function filmWidget<Frame>(name: string, draw: Draw<Frame>, every: number) {
  onPages<Page<Frame>>(name, (root, page) => film(root, page, draw, every));
  return {
    initialize: startListening,
    render({ model, el }: View): () => void {
      const root = add(el, "div");
      const frames = () => model.get<Frame[]>("frames");
      const position = () => model.get<number>("position");
      const save = (at: number) => {
        model.set("position", at);
        model.save_changes();
      };
      const palette = model.get<Palette>("palette");
      const shown = film(
        root,
        { frames: frames(), palette, position: position() },
        draw,
        every,
        save,
      );
      const forget = observed(model, {
        frames: () => shown.load(frames(), position()),
        position: () => shown.go(position()),
      });
      return () => {
        forget();
        shown.stop();
      };
    },
  };
}
