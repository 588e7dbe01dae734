// Runs side by side, in step: all of them show one batch of one time line.
import type { BatchFrame, CockpitPage, LinkedViewsPage } from "../../frames.ts";
import { add } from "../base/dom.ts";
import { Player } from "../base/player.ts";
import { Theme, watchLooks } from "../base/theme.ts";
import { showFigures } from "./header.ts";
import { MapPane } from "./maps.ts";
import { positionOf, scaled } from "./page.ts";
import { Tracks } from "./tracks.ts";

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

export class LinkedViews {
  private readonly root: HTMLElement;
  private readonly theme: Theme;
  private readonly side: HTMLElement;
  private readonly tracks: Tracks;
  private readonly film: Player<BatchFrame>;
  private readonly forget: () => void;
  private page: LinkedViewsPage;
  private panes: Pane[] = [];
  private batch = 0;

  constructor(root: HTMLElement, page: LinkedViewsPage) {
    this.root = root;
    this.page = page;
    root.classList.add("braid", "braid-cockpit", "braid-linked-views");
    this.theme = new Theme(root);
    this.side = add(root, "div", "braid-runs");
    const seek = (batch: number) => this.film.go(positionOf(longest(this.page.pages), batch));
    this.tracks = new Tracks(add(root, "div", "braid-lines"), this.theme, seek);
    const painter = { draw: this.draw.bind(this) };
    this.arrange();
    const frames = longest(page.pages);
    this.film = new Player(root, frames, painter, { start: frames.length - 1, every: 520 });
    this.forget = watchLooks(this.side, this.theme, () => this.paint());
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
    this.forget();
    this.tracks.close();
  }

  /** A pane for each run; all are on one scale. */
  private arrange(): void {
    const { names, pages } = this.page;
    this.side.replaceChildren();
    const [first] = pages;
    if (first) scaled({ ...first, frames: pages.flatMap(({ frames }) => frames) });
    this.panes = pages.map(({ frames, note }, k) => {
      const box = add(this.side, "section");
      add(box, "div", "braid-title", names[k]);
      add(box, "div", "braid-note", note);
      const facts = add(box, "div", "braid-strip");
      const map = new MapPane(add(box, "div", "braid-map"), this.theme);
      return { facts, map, frames };
    });
  }

  private draw({ batch, title }: BatchFrame, position: number): void {
    this.batch = batch;
    for (const { facts, frames } of this.panes) {
      const frame = frames[positionOf(frames, batch)];
      if (frame) showFigures(facts, frame);
    }
    this.paint();
    this.tracks.show(this.page.timeline_page, batch);
    this.root.setAttribute("aria-label", `${this.page.names.join(", ")}: ${title}`);
    Object.assign(this.root.dataset, { seq: String(position), batch: String(batch) });
  }

  private paint(): void {
    for (const { map, frames } of this.panes) {
      const frame = frames[positionOf(frames, this.batch)];
      if (frame) map.show(frame.state_map, undefined, 1);
    }
  }
}
