// The drawer of a run's map, by the name that Python gives it.
import { draw as held } from "../base/block_map.ts";
import { add } from "../base/dom.ts";
import type { Target } from "../base/pen.ts";
import type { Theme } from "../base/theme.ts";
import { SegmentsView } from "../diffusion/segments.ts";
import type { AnswerFlow, MapFrame, Palette } from "../frames.ts";
import { SpreadView } from "../hotkeys/spread.ts";
import { NetworkView } from "../hub/network.ts";
import { CellsView } from "../hypercube/cells.ts";
import { RingView } from "../psp/ring.ts";
import { SharesView } from "../shedding/shares.ts";
import { AgesView } from "../slices/ages.ts";
import { GridView } from "../theta/grid.ts";
import { showWaits } from "./waits.ts";

type Named = { [K in keyof MapFrame]-?: NonNullable<MapFrame[K]> };

/** The selection that an element offers. */
export interface Targets {
  element: Element;
  targets: Target[];
}

interface View<Frame> {
  readonly targets: Targets[];
  /** ``time``: the share of the batch that is over, in which things move from where they were. */
  draw(frame: Frame, before: Frame | undefined, time: number, selected: string): void;
  close(): void;
}

/** What an element of a drawing selects. It is as large as the element, wherever that is. */
const targetOf = ({ dataset: { target = "", text = "" } }: SVGElement): Target => {
  const far = Number.MAX_SAFE_INTEGER;
  return { name: target, text, box: { x: -far, y: -far, wide: 2 * far, tall: 2 * far } };
};

type Draw<Frame> = (box: HTMLElement, frame: Frame, palette: Palette, glide: number) => void;

/** A map that is drawn once for each batch. */
const drawn =
  <Frame>(draw: Draw<Frame>) =>
  (pane: HTMLElement, theme: Theme, palette: Palette): View<Frame> => {
    const box = add(pane, "div", "braid-drawn");
    let shown: Frame | undefined;
    const named = () => [...box.querySelectorAll<SVGElement>("[data-target]")];
    return {
      get targets() {
        return named().map((element) => ({ element, targets: [targetOf(element)] }));
      },
      draw: (frame, _before, time, selected) => {
        if (frame !== shown) draw(box, frame, palette, time < 1 ? 400 : 0);
        shown = frame;
        for (const { dataset, classList } of named()) {
          classList.toggle("here", dataset.target === selected);
          classList.toggle("failed", theme.failed.has(dataset.target ?? ""));
        }
      },
      close: () => box.replaceChildren(),
    };
  };

type Made<Frame> = (box: HTMLElement, theme: Theme, palette: Palette) => View<Frame>;

const MAPS: { [K in keyof Named]: Made<Named[K]> } = {
  blocks: drawn(held),
  grid: (box, theme) => new GridView(box, theme),
  ring: (box, theme) => new RingView(box, theme),
  ages: (box, theme) => new AgesView(box, theme),
  segments: (box, theme) => new SegmentsView(box, theme),
  shedding: (box, theme) => new SharesView(box, theme),
  hotkeys: (box, theme) => new SpreadView(box, theme),
  hypercube: (box, theme) => new CellsView(box, theme),
  hub: (box, theme) => new NetworkView(box, theme),
};

/** Shows the map of each frame; a run of another kind gets another view. */
export class MapPane {
  private readonly box: HTMLElement;
  private readonly theme: Theme;
  private readonly palette: Palette;
  private name: keyof Named | undefined;
  private view: View<never> | undefined;
  private waits: HTMLElement | undefined;
  private most = 0;

  constructor(box: HTMLElement, theme: Theme, palette: Palette) {
    this.box = box;
    this.theme = theme;
    this.palette = palette;
  }

  get targets(): Targets[] {
    return this.view?.targets ?? [];
  }

  show(map: MapFrame, before: MapFrame | undefined, time: number, selected = ""): void {
    this.make(map);
    const [name] = Object.keys(map) as (keyof Named)[];
    if (name === undefined) return;
    this.view?.draw(map[name] as never, before?.[name] as never, time, selected);
  }

  /** Shows the answers after the batch, below the map. */
  answer(map: MapFrame, flows: AnswerFlow[]): void {
    this.make(map);
    this.most = Math.max(this.most, ...flows.map(({ held, waiting }) => Math.max(held, waiting)));
    if (this.waits) showWaits(this.waits, flows, this.most);
  }

  private make(map: MapFrame): void {
    const [name] = Object.keys(map) as (keyof Named)[];
    if (name === undefined || name === this.name) return;
    this.close();
    this.view = MAPS[name](this.box, this.theme, this.palette) as View<never>;
    this.waits = add(this.box, "div", "braid-waits");
    this.waits.hidden = true;
    this.name = name;
  }

  close(): void {
    this.view?.close();
    this.box.replaceChildren();
    this.name = undefined;
    this.most = 0;
  }
}
