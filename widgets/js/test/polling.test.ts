import assert from "node:assert/strict";
import { test } from "node:test";
import type { CockpitPage } from "../frames.ts";
import { follow } from "../src/cockpit/polling.ts";

const hosts = { batch: [], names: [], values: [] };
const page = (state: string, ...batches: number[]): CockpitPage =>
  ({ state, frames: batches.map((batch) => ({ batch, state_map: {} })), hosts }) as never;

/** Follows a run whose server gives these answers, one after the other; a string is an error. */
async function followed(...answers: (CockpitPage | string)[]) {
  const [asked, pauses, shown] = [[], [], []] as [number[], number[], CockpitPage[]];
  let [next, isDone]: [(() => void) | undefined, boolean] = [undefined, false];
  const ask = async (since: number) => {
    asked.push(since);
    const answer = answers[asked.length - 1];
    isDone = asked.length >= answers.length;
    if (typeof answer === "object") return answer;
    throw new TypeError(answer);
  };
  const wait = (call: () => void, pause: number) => {
    pauses.push(pause);
    next = call;
  };
  await follow(page("live", 1), ask, (whole) => shown.push(whole), wait);
  while (next && !isDone) {
    const call: () => void = next;
    next = undefined;
    await call();
  }
  return { asked, pauses, states: shown.map(({ state }) => state), shown, goesOn: !!next };
}

test("a request that fails is made again, after longer and longer pauses", async () => {
  const fails = Array.from({ length: 8 }, () => "Failed to fetch");
  const { asked, pauses, states, goesOn } = await followed(...fails);
  assert.deepEqual(asked, Array(8).fill(1));
  assert.deepEqual(states, Array(8).fill("not connected"));
  assert.deepEqual(pauses, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  assert.ok(goesOn, "it never gives up");
});

test("once the server answers, the run goes on where it was", async () => {
  const answers = [page("live", 2), "gone", "gone", page("paused", 3, 4), page("ended", 5)];
  const { asked, pauses, states, shown, goesOn } = await followed(...answers);
  assert.deepEqual(asked, [1, 2, 2, 2, 4]);
  assert.deepEqual(states, ["live", "not connected", "not connected", "paused", "ended"]);
  assert.deepEqual(pauses, [500, 1000, 2000, 500]);
  const batches = shown.map(({ frames }) => frames.map(({ batch }) => batch).join(" "));
  assert.deepEqual(batches, ["1 2", "1 2", "1 2", "1 2 3 4", "1 2 3 4 5"]);
  assert.equal(goesOn, false, "nothing more is asked after the end");
});

test("an error of what shows the page is not taken for a failed request", async () => {
  const show = () => {
    throw new RangeError("no such batch");
  };
  const answer = async () => page("live", 2);
  await assert.rejects(
    follow(page("live", 1), answer, show, () => {}),
    RangeError,
  );
});
