// Ages of a chain on the picture: marks are ages in microseconds with their place from 0 to 1.
import type { ChainMark, ChainQuery, ChainSlice, ChainStream } from "../frames.ts";

export const LEFT = 74;
export const RIGHT = 730;
export const WIDE = 1000;
/** Height of a stream's slices. */
export const TALL = 62;

type Pair = [number, number];

/** Of a value between pairs [from, to] that rise: its image, linear from pair to pair. */
export function between(pairs: Pair[], value: number): number {
  const above = pairs.findIndex(([from]) => from >= value);
  const k = Math.max(1, above);
  const [low, first] = pairs[k - 1] ?? [0, 0];
  const [high, last] = pairs[k] ?? [low, first];
  return high === low ? first : first + ((last - first) * (value - low)) / (high - low);
}

/** The place of an age, in the picture's units. */
export const placed = (marks: ChainMark[], age: number): number =>
  LEFT +
  (RIGHT - LEFT) *
    between(
      marks.map((mark) => [mark.age, mark.place]),
      age,
    );

/** The age at a place: that of a mark inside the slice if one is near, else one of two digits. */
export function ageAt(marks: ChainMark[], { first, last }: ChainSlice, x: number): number {
  const share = (x - LEFT) / (RIGHT - LEFT);
  const inside = marks.filter((mark) => mark.age > first && mark.age < last);
  const near = inside.find((mark) => Math.abs(mark.place - share) < 0.02);
  if (near) return near.age;
  const age = between(
    marks.map((mark) => [mark.place, mark.age]),
    share,
  );
  const rounded = Number(age.toPrecision(2));
  return rounded > first && rounded < last ? rounded : age;
}

/** An age in words. */
export const inWords = (marks: ChainMark[], age: number): string =>
  marks.find((mark) => mark.age === age)?.text ?? `${age / 1e6} s`;

/** The rows that pass each boundary of slices, however far they go. */
export function crossings({ aged }: Pick<ChainStream, "aged">): Map<number, number> {
  const over = new Map<number, number>();
  for (const { source, target, rows } of aged) {
    for (let k = source; k < target; k++) over.set(k, (over.get(k) ?? 0) + rows);
  }
  return over;
}

/** Texts that would overlap one that is there are left out. */
export class Labels {
  private readonly taken: [number, number][] = [];

  /** Whether a text that wide has room round there; if so, the room is taken. */
  fits(x: number, wide: number): boolean {
    const room = this.taken.every(([other, size]) => Math.abs(other - x) >= (wide + size) / 2);
    if (room) this.taken.push([x, wide]);
    return room;
  }
}

export const said = ({ name, selection: where }: ChainQuery): string =>
  where ? `${name}: ${where}` : name;
