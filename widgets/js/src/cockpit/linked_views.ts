// Runs side by side, in step: one time line, a batch of which is shown of all of them.
import { add } from "../base/dom.ts";
import { Player } from "../base/player.ts";
import type { BatchFrame, CockpitPage, LinkedViewsPage, Palette } from "../frames.ts";
import { strip } from "./key_figures.ts";
import { Lines } from "./lines.ts";
import { MapPane } from "./maps.ts";
import { positionOf, scaled } from "./page.ts";

interface Pane {
  facts: HTMLElement;
  map: MapPane;
  frames: BatchFrame[];
}

/** The frames of the run that goes on longest. */
export const longest = (pages: CockpitPage[]): BatchFrame[] =>
  pages
    .map(({ frames }) => frames)
    .reduce((a, b) => ((b.at(-1)?.batch ?? 0) > (a.at(-1)?.batch ?? 0) ? b : a), []);

export class Abreast {
  private readonly root: HTMLElement;
  private readonly palette: Palette;
  private readonly side: HTMLElement;
  private readonly lines: Lines;
  private readonly film: Player<BatchFrame>;
  private page: LinkedViewsPage;
  private panes: Pane[] = [];

  constructor(root: HTMLElement, page: LinkedViewsPage, palette: Palette) {
    this.root = root;
    this.page = page;
    this.palette = palette;
    root.classList.add("braid", "braid-cockpit", "braid-abreast");
    this.side = add(root, "div", "braid-side");
    const seek = (batch: number) => this.film.go(positionOf(longest(this.page.pages), batch));
    this.lines = new Lines(add(root, "div"), palette, seek, () => {});
    const painter = { draw: this.draw.bind(this) };
    this.arrange();
    const frames = longest(page.pages);
    this.film = new Player(root, frames, painter, { start: frames.length - 1, every: 400 });
  }

  /** Shows other runs, at the batch that is looked at if they have it. */
  load(page: LinkedViewsPage): void {
    this.page = page;
    this.arrange();
    const frames = longest(page.pages);
    this.film.load(frames, frames.length - 1);
  }

  close(): void {
    this.film.stop();
    this.lines.close();
    for (const { map } of this.panes) map.close();
  }

  /** A pane for each run; all are on one scale. */
  private arrange(): void {
    const { names, pages } = this.page;
    for (const { map } of this.panes) map.close();
    this.side.replaceChildren();
    const [first] = pages;
    if (first) scaled({ ...first, frames: pages.flatMap(({ frames }) => frames) });
    this.panes = pages.map(({ frames, note }, k) => {
      const box = add(this.side, "section");
      add(box, "div", "braid-title", names[k]);
      add(box, "div", "braid-note", note);
      const facts = add(box, "div", "braid-strip");
      return { facts, map: new MapPane(add(box, "div", "braid-map"), this.palette), frames };
    });
  }

  private draw({ batch, title }: BatchFrame, position: number, glide: number): void {
    for (const { facts, map, frames } of this.panes) {
      const frame = frames[positionOf(frames, batch)];
      if (!frame) continue;
      strip(facts, frame);
      map.show(frame.state_map, glide);
    }
    this.lines.show(this.page.timeline_page, batch);
    this.root.setAttribute("aria-label", `${this.page.names.join(", ")}: ${title}`);
    this.root.dataset.seq = String(position);
    this.root.dataset.batch = String(batch);
  }
}
