// A page of a run, as far as it is: what came since is put to what is there.
import type { BatchFrame, CockpitPage } from "../../frames.ts";
import { sameWay } from "../theta/grid.ts";

/** Batches that are kept; older ones are let go, so that a run without end needs no more memory. */
export const KEPT = 400;

/** The part of a page since some batch. */
export type More = CockpitPage;

/** Puts what came since to a page; what the page has already is left out. */
export function extend(page: CockpitPage, more: More): CockpitPage {
  const last = page.frames.at(-1)?.batch ?? 0;
  const seen = page.hosts.batch.at(-1) ?? 0;
  const frames = [...page.frames, ...more.frames.filter(({ batch }) => batch > last)];
  const fresh = more.hosts.batch.map((batch) => batch > seen);
  const kept = <T>(values: T[]) => values.filter((_, k) => fresh[k]);
  const { names } = more.hosts;
  const known = page.hosts.names.length === names.length;
  const before = known ? page.hosts : { batch: [], values: [] };
  const hosts = {
    names,
    batch: [...before.batch, ...kept(more.hosts.batch)].slice(-KEPT),
    values: [...before.values, ...kept(more.hosts.values)].slice(-KEPT),
  };
  return scaled({ ...more, frames: frames.slice(-KEPT), hosts });
}

/** Puts all frames of the page on one scale, and turns them the same way round. */
export function scaled(page: CockpitPage): CockpitPage {
  const maps: { scale_max?: number }[] = page.frames.flatMap(({ state_map }) =>
    Object.values(state_map),
  );
  const top = Math.max(0, ...maps.map((map) => map.scale_max ?? 0));
  for (const map of maps) if (map.scale_max !== undefined) map.scale_max = top;
  sameWay(page.frames.flatMap(({ state_map: map }) => map.grid ?? []));
  return page;
}

/** The position at which a recording opens: at the decision that moves most rows, else at 60 percent of its batches. */
export function openingOf({ frames, annotations }: CockpitPage): number {
  const most = annotations.reduce((a, b) => (b.rows > a.rows ? b : a), { rows: 0, batch: 0 });
  return most.rows ? positionOf(frames, most.batch) : Math.round(0.6 * (frames.length - 1));
}

/** A moment as the end of an address has it: "#b=26&s=host:21&d=1". */
export interface Moment {
  batch: number;
  selected: string;
  drawer: boolean;
}

export function momentOf(hash: string): Moment | undefined {
  const found = new URLSearchParams(hash.replace(/^#/, ""));
  const batch = Number(found.get("b") ?? Number.NaN);
  if (Number.isNaN(batch)) return undefined;
  return { batch, selected: found.get("s") ?? "", drawer: found.get("d") === "1" };
}

export function hashOf({ batch, selected, drawer }: Moment): string {
  return `#b=${batch}${selected ? `&s=${selected}` : ""}${drawer ? "&d=1" : ""}`;
}

/** The position of the frame that shows a batch: the last one that is not later, else the first. */
export function positionOf(frames: BatchFrame[], batch: number): number {
  return Math.max(
    0,
    frames.findLastIndex((frame) => frame.batch <= batch),
  );
}
