// The two ways in which a film is shown: by a kernel (anywidget), and on a page without one.
import type { Palette } from "../frames.ts";
import { add } from "./dom.ts";
import { startListening } from "./kernel_messages.ts";
import { pressable, redrawn, rovingTabIndex, stopsOf } from "./keyboard.ts";
import { Player } from "./player.ts";
import { type Asked, asking } from "./query_help.ts";

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

/** The text of a frame about the clicked part; empty if the frame has no such part. */
export type Tell<Frame> = (frame: Frame, what: Asked) => string;

/** Asks the kernel what serves a query that is clicked; of the rest ``told`` says what there is to
 * tell, ``again`` once the film has gone on. ``end`` ends that. */
function onQuery(
  root: HTMLElement,
  model: Model,
  position: () => number,
  told: (what: Asked) => string,
): { again: () => void; end: () => void } {
  let last: Asked = { query: "" };
  const tell = asking(root, (what) => {
    last = what;
    if ("query" in what) model.send({ query: what.query, position: position() });
    else tell(told(what));
  });
  const show = ({ inspected = "" }: { inspected?: string }) => {
    if ("query" in last) tell(inspected); // else it comes late: a slice was clicked since
  };
  model.on("msg:custom", show);
  const again = () => {
    if ("slice" in last) tell(told(last));
  };
  return { again, end: () => model.off("msg:custom", show) };
}

/** Draws so that keys reach what can be clicked too. */
const askable =
  <Frame>(draw: Draw<Frame>): Draw<Frame> =>
  (box, ...shown) =>
    redrawn(box, () => {
      const stops = stopsOf(box);
      draw(box, ...shown);
      const all = (which: string) => [...box.querySelectorAll<SVGElement>(which)];
      const slices = all("[data-tells]");
      const queries = all("[data-query]");
      for (const part of slices) pressable(part, `slice ${part.dataset.tells}`);
      for (const part of queries) pressable(part, part.dataset.query ?? "");
      for (const parts of [slices, queries]) rovingTabIndex(parts, stops);
    });

/** A film without a kernel. What its frames tell of what was clicked last is shown. */
function staticPage<Frame>(
  root: HTMLElement,
  page: Page<Frame>,
  draw: Draw<Frame>,
  every: number,
  tell?: Tell<Frame>,
): void {
  if (!tell) {
    film(root, page, draw, every);
    return;
  }
  let last: Asked | undefined;
  const told = (at: number) => {
    const frame = page.frames[at];
    show(frame && last ? tell(frame, last) : "");
  };
  film(root, page, askable(draw), every, told);
  const show = asking(root, (what) => {
    last = what;
    told(Number(root.dataset.seq));
  });
}

/** A film as anywidget wants it; pages of the same name are shown at once. ``tell`` is for what can
 * be clicked. */
export function filmWidget<Frame>(
  name: string,
  draw: Draw<Frame>,
  every: number,
  tell?: Tell<Frame>,
) {
  onPages<Page<Frame>>(name, (root, page) => staticPage(root, page, draw, every, tell));
  return {
    initialize: startListening,
    render({ model, el }: View): () => void {
      const root = add(el, "div");
      const frames = () => model.get<Frame[]>("frames");
      const position = () => model.get<number>("position");
      const save = (trait: string, value: unknown) => {
        model.set(trait, value);
        model.save_changes();
      };
      const page = {
        frames: frames(),
        palette: model.get<Palette>("palette"),
        position: position(),
      };
      const shown = film(root, page, askable(draw), every, (at) => save("position", at));
      root.addEventListener("pick", (event) => save("picked", (event as CustomEvent).detail));
      const answered = onQuery(root, model, position, (what) => {
        const frame = frames()[position()];
        return frame && tell ? tell(frame, what) : "";
      });
      const forget = observed(model, {
        frames: () => {
          shown.load(frames(), position());
          answered.again();
        },
        position: () => {
          shown.go(position());
          answered.again();
        },
      });
      return () => {
        forget();
        answered.end();
        shown.stop();
      };
    },
  };
}
