// Runs side by side, in step: all of them show one batch of one time line.
import type { BatchFrame, CockpitPage, LinkedViewsPage } from "../../frames.ts";
import { add, make } from "../base/dom.ts";
import type { Theme } from "../base/theme.ts";
import { MapPane } from "./maps.ts";
import { scaled } from "./page.ts";

/** A run, or several side by side. */
export type Shown = CockpitPage | LinkedViewsPage;

/** A run on the screen: its map, and beside others its page. */
export interface Pane {
  map: MapPane;
  page?: CockpitPage;
}

/** The frames of the run that goes on longest. */
export const longest = (pages: CockpitPage[]): BatchFrame[] =>
  pages
    .map(({ frames }) => frames)
    .reduce((a, b) => ((b.at(-1)?.batch ?? 0) > (a.at(-1)?.batch ?? 0) ? b : a), []);

/** The page of all runs, on one scale: their time line, and the frames of the longest. */
export function joined({ names, pages, timeline_page: page }: LinkedViewsPage): CockpitPage {
  scaled({ ...page, frames: pages.flatMap(({ frames }) => frames) });
  return { ...page, note: names.join(", "), frames: longest(pages) };
}

/** A pane for each run. */
export function makePanes(box: Element, theme: Theme, { names, pages }: LinkedViewsPage): Pane[] {
  box.replaceChildren();
  return pages.map((page, k) => {
    const [facts, map] = [make("div", "braid-strip"), make("div", "braid-map")];
    const heads = [make("div", "braid-title", names[k]), make("div", "braid-note", page.note)];
    add(box, "section", "", ...heads, facts, map);
    return { map: new MapPane(map, theme, facts), page };
  });
}
