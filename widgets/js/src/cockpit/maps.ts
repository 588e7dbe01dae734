// What draws the map of a run, by the name that Python gives it.
import { draw as held } from "../base/block_map.ts";
import type { MapFrame, Palette } from "../frames.ts";
import { draw as ring } from "../psp/ring.ts";
import { draw as chain } from "../slices/chain.ts";
import { draw as sharedRing } from "../slices/shared_ring.ts";
import { GridView } from "../theta/grid.ts";

type Named = { [K in keyof MapFrame]-?: NonNullable<MapFrame[K]> };

interface View<Frame> {
  draw(frame: Frame, glide: number): void;
  close(): void;
}

type Draw<Frame> = (box: HTMLElement, frame: Frame, palette: Palette, glide: number) => void;

const drawn =
  <Frame>(draw: Draw<Frame>) =>
  (box: HTMLElement, palette: Palette): View<Frame> => ({
    draw: (frame, glide) => draw(box, frame, palette, glide),
    close: () => box.replaceChildren(),
  });

const MAPS: { [K in keyof Named]: (box: HTMLElement, palette: Palette) => View<Named[K]> } = {
  blocks: drawn(held),
  grid: (box, palette) => new GridView(box, palette),
  ring: drawn(ring),
  chain: drawn(chain),
  shared_ring: drawn(sharedRing),
};

/** Shows the map of each frame; a run of another kind gets another view. */
export class MapPane {
  private readonly box: HTMLElement;
  private readonly palette: Palette;
  private name: keyof Named | undefined;
  private view: View<never> | undefined;

  constructor(box: HTMLElement, palette: Palette) {
    this.box = box;
    this.palette = palette;
  }

  show(map: MapFrame, glide: number): void {
    const [name] = Object.keys(map) as (keyof Named)[];
    if (name === undefined) return;
    if (name !== this.name) {
      this.close();
      this.view = MAPS[name](this.box, this.palette) as View<never>;
      this.name = name;
    }
    this.view?.draw(map[name] as never, glide);
  }

  close(): void {
    this.view?.close();
    this.box.replaceChildren();
    this.name = undefined;
  }
}
