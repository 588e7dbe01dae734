// The drawer of a run's map, by the name that Python gives it.
import type { AnswerFlow, MapFrame } from "../../frames.ts";
import { BlocksView } from "../base/block_map.ts";
import { add } from "../base/dom.ts";
import type { Target } from "../base/pen.ts";
import type { Theme } from "../base/theme.ts";
import { SegmentsView } from "../diffusion/segments.ts";
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

type Made<Frame> = new (box: HTMLElement, theme: Theme) => View<Frame>;

const MAPS: { [K in keyof Named]: Made<Named[K]> } = {
  blocks: BlocksView,
  grid: GridView,
  ring: RingView,
  ages: AgesView,
  segments: SegmentsView,
  shedding: SharesView,
  hotkeys: SpreadView,
  hypercube: CellsView,
  hub: NetworkView,
};

/** Shows the map of each frame; a run of another kind gets another view. */
export class MapPane {
  private readonly box: HTMLElement;
  private readonly theme: Theme;
  private name: keyof Named | undefined;
  private view: View<never> | undefined;
  private waits: HTMLElement | undefined;
  private most = 0;

  constructor(box: HTMLElement, theme: Theme) {
    this.box = box;
    this.theme = theme;
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
    this.view = new MAPS[name](this.box, this.theme) as View<never>;
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
