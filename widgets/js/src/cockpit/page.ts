// A page of a run, as far as it is: what came since is put to what is there.
import type { Annotation, BatchFrame, CockpitPage } from "../../frames.ts";
import { sameWay } from "../theta/grid.ts";

/** Batches that are kept; older ones are let go, so that a run without end needs no more memory. */
export const KEPT = 400;

export const isLive = ({ state }: CockpitPage): boolean => state === "live" || state === "paused";

/** Puts what came since to a page; what the page has already is left out. */
export function extend(page: CockpitPage, more: CockpitPage): CockpitPage {
  const last = page.frames.at(-1)?.batch ?? 0;
  const frames = [...page.frames, ...more.frames.filter(({ batch }) => batch > last)];
  const { names, batch, values } = more.hosts;
  const known = batch.filter((each) => each <= (page.hosts.batch.at(-1) ?? 0)).length;
  const before = page.hosts.values.map((each) =>
    names.map((name) => each[page.hosts.names.indexOf(name)] ?? each[0]?.map(() => 0) ?? []),
  );
  const hosts = {
    names,
    batch: [...page.hosts.batch, ...batch.slice(known)].slice(-KEPT),
    values: [...before, ...values.slice(known)].slice(-KEPT),
  };
  return scaled({ ...more, frames: frames.slice(-KEPT), hosts });
}

/** Puts all frames of the page on one scale, and turns them the same way round. */
export function scaled(page: CockpitPage): CockpitPage {
  const maps = page.frames.flatMap(({ state_map }): { scale_max?: number }[] =>
    Object.values(state_map),
  );
  const top = Math.max(0, ...maps.map((map) => map.scale_max ?? 0));
  for (const map of maps) if (map.scale_max !== undefined) map.scale_max = top;
  sameWay(page.frames.flatMap(({ state_map: map }) => map.grid ?? []));
  return page;
}

/** The position of the frame that shows a batch: the last one that is not later, else the first. */
export function positionOf(frames: BatchFrame[], batch: number): number {
  const found = frames.findLastIndex((frame) => frame.batch <= batch);
  return Math.max(0, found);
}

/** The position at which a recording opens: at the decision that moves most rows, else at 60 percent of its batches. */
export function openingOf({ frames, annotations }: CockpitPage): number {
  const most = annotations.reduce((a, b) => (b.rows > a.rows ? b : a), { rows: 0, batch: 0 });
  return most.rows ? positionOf(frames, most.batch) : Math.round(0.6 * (frames.length - 1));
}

/** The last decision with a label until a batch, and its reason. */
export function reasonOf(annotations: Annotation[], batch: number): [head: string, text: string] {
  const taken = annotations.filter((flag) => flag.batch <= batch);
  const { text = "" } = taken.findLast(({ short: label }) => label) ?? taken.at(-1) ?? {};
  const [, head = "", reason = "No decision yet"] = /^(.*?batch [\d,]+: )(.*)$/.exec(text) ?? [];
  return [head, `${reason}.`];
}
