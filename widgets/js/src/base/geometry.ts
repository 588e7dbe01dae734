// Numbers, points and boxes on their way, and boxes in boxes.
import type { Box, Point } from "./pen.ts";

/** Slow at both ends: of a share of the time, the share of the way. */
export const eased = (time: number): number =>
  time <= 0 ? 0 : time >= 1 ? 1 : time * time * (3 - 2 * time);

export const mix = (from: number, to: number, share: number): number => from + (to - from) * share;

export const middle = ({ x, y, wide, tall }: Box): Point => [x + wide / 2, y + tall / 2];

/** The point at a share of the way from one to another. */
export const along = (a: Point, b: Point, share: number): Point => [
  mix(a[0], b[0], share),
  mix(a[1], b[1], share),
];

/** The point at a distance from another, at an angle in radians. */
export const toward = ([x, y]: Point, angle: number, distance: number): Point => [
  x + distance * Math.cos(angle),
  y + distance * Math.sin(angle),
];

/** The square about a point; half a side is so many pixels. */
export const squareAt = ([x, y]: Point, half: number): Box => ({
  x: x - half,
  y: y - half,
  wide: 2 * half,
  tall: 2 * half,
});

/** A box that is larger on all sides by so many pixels. */
export const grown = ({ x, y, wide, tall }: Box, by: number): Box => ({
  x: x - by,
  y: y - by,
  wide: wide + 2 * by,
  tall: tall + 2 * by,
});

/** The lower part of a box, at a share of its height. */
export const risen = (box: Box, share: number): Box => ({
  ...box,
  y: box.y + box.tall * (1 - share),
  tall: box.tall * share,
});

/** A box in shares of an area, in its pixels. */
export const within = (unit: Box, area: Box): Box => ({
  x: area.x + unit.x * area.wide,
  y: area.y + unit.y * area.tall,
  wide: unit.wide * area.wide,
  tall: unit.tall * area.tall,
});

/** The box at a share of the way from one to another. */
export const between = (a: Box, b: Box, share: number): Box => ({
  x: mix(a.x, b.x, share),
  y: mix(a.y, b.y, share),
  wide: mix(a.wide, b.wide, share),
  tall: mix(a.tall, b.tall, share),
});
