// Follows a run on a page that asks a server for what is new.
import type { CockpitPage } from "../../frames.ts";
import { extend, isLive } from "./page.ts";

/** Milliseconds until the next request: after an answer, and at most after a failure. */
const [EVERY, LONGEST] = [500, 30_000];

/** Calls back later, as ``setTimeout`` does. */
type Wait = (call: () => void, milliseconds: number) => void;

/** Asks for what is new until the run has ended. Each request that fails doubles the pause before
 * the next one; the page is shown as not connected until an answer comes. */
export async function follow(
  page: CockpitPage,
  ask: (since: number) => Promise<CockpitPage>,
  show: (page: CockpitPage) => void,
  wait: Wait = setTimeout,
  pause = EVERY,
): Promise<void> {
  const more = await ask(page.frames.at(-1)?.batch ?? 0).catch(() => undefined);
  const whole = more ? extend(page, more) : page;
  show(more ? whole : { ...page, state: "not connected" });
  const next = more ? EVERY : Math.min(LONGEST, 2 * pause);
  if (!more || isLive(whole)) wait(() => follow(whole, ask, show, wait, next), next);
}
