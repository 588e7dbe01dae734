// The drawer of a run's map, and what it says about a selection, by the name that Python gives it.
import type { BatchFrame, MapFrame } from "../../frames.ts";
import { BlocksView } from "../base/block_map.ts";
import type { CanvasMap, Detail, Held } from "../base/canvas_map.ts";
import { make } from "../base/dom.ts";
import { hit, type Target } from "../base/pen.ts";
import type { Theme } from "../base/theme.ts";
import { inspectSegments, SegmentsView } from "../diffusion/segments.ts";
import { inspectSpread, SpreadView } from "../hotkeys/spread.ts";
import { inspectHub, NetworkView } from "../hub/network.ts";
import { CellsView, inspectCells } from "../hypercube/cells.ts";
import { inspectRing, RingView } from "../psp/ring.ts";
import { inspectShares, SharesView } from "../shedding/shares.ts";
import { AgesView, inspectAges } from "../slices/ages.ts";
import { GridView, inspectGrid } from "../theta/grid.ts";
import { showFigures } from "./header.ts";
import { showWaits } from "./waits.ts";

type Named = { [K in keyof MapFrame]-?: NonNullable<MapFrame[K]> };

interface Kind<Frame extends Held> {
  view: new (box: HTMLElement, theme: Theme) => CanvasMap<Frame>;
  inspect: (frame: Frame, selected: string) => Detail | undefined;
}

const MAPS: { [K in keyof Named]: Kind<Named[K]> } = {
  blocks: { view: BlocksView, inspect: () => undefined },
  grid: { view: GridView, inspect: inspectGrid },
  ring: { view: RingView, inspect: inspectRing },
  ages: { view: AgesView, inspect: inspectAges },
  segments: { view: SegmentsView, inspect: inspectSegments },
  shedding: { view: SharesView, inspect: inspectShares },
  hotkeys: { view: SpreadView, inspect: inspectSpread },
  hypercube: { view: CellsView, inspect: inspectCells },
  hub: { view: NetworkView, inspect: inspectHub },
};

const nameOf = (map: MapFrame): keyof Named | undefined => (Object.keys(map) as (keyof Named)[])[0];

/** Returns what the map says about a selection; undefined if it says nothing. */
export function detailOf(map: MapFrame, selected: string): Detail | undefined {
  const name = nameOf(map);
  return name && MAPS[name].inspect(map[name] as never, selected);
}

/** Shows the map of each frame; a run of another kind gets another view. Beside other runs there is
 * a box of its figures. */
export class MapPane {
  private readonly box: HTMLElement;
  private readonly theme: Theme;
  private readonly facts: HTMLElement | undefined;
  private readonly waits = make("div", "braid-waits");
  /** The rows of the parts that can be selected, for who does not see them. */
  private readonly parts = make("table");
  private name: keyof Named | undefined;
  private view: CanvasMap<never> | undefined;
  private frame: BatchFrame | undefined;
  private described: BatchFrame | undefined;
  private most = 0;

  constructor(box: HTMLElement, theme: Theme, facts?: HTMLElement) {
    this.box = box;
    this.theme = theme;
    this.facts = facts;
  }

  /** The parts that can be selected. */
  get targets(): Target[] {
    return (this.view?.targets ?? []).flatMap(({ targets }) => targets);
  }

  /** The part at the pointer. */
  under(event: MouseEvent): Target | undefined {
    const at = this.view?.targets.find(({ element }) => element.contains(event.target as Node));
    const { left = 0, top = 0 } = at?.element.getBoundingClientRect() ?? {};
    return hit(at?.targets ?? [], event.clientX - left, event.clientY - top);
  }

  /** Shows the map of a frame, and the answers after its batch below it. */
  show(frame: BatchFrame, before?: MapFrame, time = 1, selected = ""): void {
    const { state_map: map, answers } = frame;
    const name = nameOf(map);
    if (name === undefined) return;
    if (name !== this.name) {
      this.box.replaceChildren();
      this.view = new MAPS[name].view(this.box, this.theme) as CanvasMap<never>;
      this.box.append(this.waits, make("div", "braid-heard", this.parts));
      Object.assign(this, { name, most: 0 });
    }
    this.most = Math.max(this.most, ...answers.flatMap(({ held, waiting }) => [held, waiting]));
    showWaits(this.waits, answers, this.most);
    if (this.facts && frame !== this.frame) showFigures(this.facts, frame);
    this.frame = frame;
    this.view?.draw(map[name] as never, before?.[name] as never, time, selected);
    if (time === 1 && frame !== this.described && this.targets.length) this.describe();
  }

  /** Describes the picture at rest for who does not see it: each canvas by its title, each part in
   * a row. */
  private describe(): void {
    this.described = this.frame;
    this.parts.ariaLabel = `parts of the picture, batch ${this.frame?.batch}`;
    for (const canvas of this.box.querySelectorAll("canvas")) {
      const title = canvas.closest("section, .braid-map")?.querySelector("b")?.textContent ?? "";
      Object.assign(canvas, { role: "img", ariaLabel: title });
    }
    const parts = [...Map.groupBy(this.targets, ({ name }) => name).values()];
    const rows = parts.map(([part]) => make("tr", "", make("td", "", part?.text)));
    this.parts.replaceChildren(...rows);
  }
}
