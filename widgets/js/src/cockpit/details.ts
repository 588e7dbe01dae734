// The details of a selection, as the map of a run knows them.
import type { MapFrame } from "../../frames.ts";
import { inspectSegments } from "../diffusion/segments.ts";
import { inspectSpread } from "../hotkeys/spread.ts";
import { inspectHub } from "../hub/network.ts";
import { inspectCells } from "../hypercube/cells.ts";
import { inspectRing } from "../psp/ring.ts";
import { inspectShares } from "../shedding/shares.ts";
import { inspectAges } from "../slices/ages.ts";
import { inspectGrid } from "../theta/grid.ts";

export type Pair = [string, string];

/** A selected thing: its name, where it is, and its figures. */
export interface Detail {
  title: string;
  words: string;
  pairs: Pair[];
}

/** Returns what the map says about a selection; undefined if it says nothing. */
export function detailOf(map: MapFrame, selected: string): Detail | undefined {
  const { ages, grid, hotkeys, hub, hypercube, ring, segments, shedding } = map;
  return (
    (ages && inspectAges(ages, selected)) ??
    (grid && inspectGrid(grid, selected)) ??
    (ring && inspectRing(ring, selected)) ??
    (segments && inspectSegments(segments, selected)) ??
    (shedding && inspectShares(shedding, selected)) ??
    (hotkeys && inspectSpread(hotkeys, selected)) ??
    (hypercube && inspectCells(hypercube, selected)) ??
    (hub && inspectHub(hub, selected))
  );
}
