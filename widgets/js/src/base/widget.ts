// The two ways in which a film is shown: by a kernel (anywidget), and on a page without one.
import type { Palette } from "../frames.ts";
import { asking } from "./asking.ts";
import { add } from "./dom.ts";
import { Film } from "./film.ts";
import { pressable, redrawn } from "./pressing.ts";

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

/** What a page without a kernel holds. */
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
): Film<Frame> {
  root.classList.add("braid");
  const box = add(root, "div");
  const painter = {
    draw(frame: Frame, position: number, glide: number) {
      draw(box, frame, page.palette, glide);
      root.dataset.seq = String(position);
    },
  };
  return new Film(root, page.frames, painter, { start: page.position, every, moved });
}

/** Asks the kernel what serves a query that is clicked; what it returns ends that. */
function asked(root: HTMLElement, model: Model, position: () => number): () => void {
  const tell = asking(root, (query) => model.send({ query, position: position() }));
  const show = ({ inspected = "" }: { inspected?: string }) => tell(inspected);
  model.on("msg:custom", show);
  return () => model.off("msg:custom", show);
}

/** Draws so that keys reach the queries too. */
const askable =
  <Frame>(draw: Draw<Frame>): Draw<Frame> =>
  (box, ...shown) =>
    redrawn(box, () => {
      draw(box, ...shown);
      for (const part of box.querySelectorAll<SVGElement>("[data-query]")) {
        pressable(part, part.dataset.query ?? "");
      }
    });

/** What is told of each query in a frame that says so itself. */
const toldIn = (frame: object | undefined): Record<string, string> | undefined =>
  (frame as { told?: Record<string, string> } | undefined)?.told;

/** A film without a kernel. What its frames tell of the query that was clicked last is shown. */
function alone<Frame extends object>(
  root: HTMLElement,
  page: Page<Frame>,
  draw: Draw<Frame>,
  every: number,
): void {
  if (!page.frames.some(toldIn)) {
    film(root, page, draw, every);
    return;
  }
  let query = "";
  const tell = (at: number) => show(toldIn(page.frames[at])?.[query] ?? "");
  film(root, page, askable(draw), every, tell);
  const show = asking(root, (name) => {
    query = name;
    tell(Number(root.dataset.seq));
  });
}

/** A film as anywidget wants it; pages of the same name are shown at once. */
export function filmWidget<Frame extends object>(name: string, draw: Draw<Frame>, every: number) {
  onPages<Page<Frame>>(name, (root, page) => alone(root, page, draw, every));
  return {
    render({ model, el }: View): () => void {
      const root = add(el, "div");
      const frames = () => model.get<Frame[]>("frames");
      const position = () => model.get<number>("position");
      const tell = (trait: string, value: unknown) => {
        model.set(trait, value);
        model.save_changes();
      };
      const page = {
        frames: frames(),
        palette: model.get<Palette>("palette"),
        position: position(),
      };
      const shown = film(root, page, askable(draw), every, (at) => tell("position", at));
      root.addEventListener("pick", (event) => tell("picked", (event as CustomEvent).detail));
      const answered = asked(root, model, position);
      const forget = observed(model, {
        frames: () => shown.load(frames(), position()),
        position: () => shown.go(position()),
      });
      return () => {
        forget();
        answered();
        shown.stop();
      };
    },
  };
}
