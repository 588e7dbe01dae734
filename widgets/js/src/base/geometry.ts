// Points and boxes, in pixels or shares: on their way, and in one another.

export interface Box {
  x: number;
  y: number;
  wide: number;
  tall: number;
}

export type Point = [number, number];

/** Slow at both ends: of a share of the time, the share of the way. */
export const eased = (time: number): number =>
  time <= 0 ? 0 : time >= 1 ? 1 : time * time * (3 - 2 * time);

export const mix = (from: number, to: number, share: number): number => from + (to - from) * share;

export const middle = ({ x, y, wide, tall }: Box): Point => [x + wide / 2, y + tall / 2];

/** The point at a share of the way from one to another. */
export function along([x0, y0]: Point, [x1, y1]: Point, share: number): Point {
  return [mix(x0, x1, share), mix(y0, y1, share)];
}

/** The point at a distance from another, at an angle in radians. */
export function toward([x, y]: Point, angle: number, distance: number): Point {
  return [x + distance * Math.cos(angle), y + distance * Math.sin(angle)];
}

/** The line from a point to another, so many pixels to its right. */
export function beside(a: Point, b: Point, pixels: number): [Point, Point] {
  const right = Math.atan2(b[1] - a[1], b[0] - a[0]) + Math.PI / 2;
  return [toward(a, right, pixels), toward(b, right, pixels)];
}

/** The tip of an arrow from one point to another. */
export function tipOf([x, y]: Point, to: Point, long = 8): Point[] {
  const back = Math.atan2(y - to[1], x - to[0]);
  return [toward(to, back + 0.45, long), to, toward(to, back - 0.45, long)];
}

/** The point at which a line enters the box in which it ends; its start if that is inside too. */
export function entryOf([a, b]: [Point, Point], { x, y, wide, tall }: Box): Point {
  const enter = (from: number, to: number, low: number, high: number) =>
    from === to ? 0 : ((to > from ? low : high) - from) / (to - from);
  const across = enter(a[0], b[0], x, x + wide);
  return along(a, b, Math.max(0, across, enter(a[1], b[1], y, y + tall)));
}

/** The outline of a piece of a ring between two radii and two angles. */
export function sectorOf(centre: Point, radii: [number, number], [from, to]: [number, number]) {
  const [inner = [], outer = []] = radii.map((radius) =>
    Array.from({ length: 33 }, (_, k) => toward(centre, mix(from, to, k / 32), radius)),
  );
  return [...outer, ...inner.toReversed(), ...outer.slice(0, 1)];
}

/** The point of an arc at a share of the way; the arcs there and back bend opposite ways. */
export function arcAt(a: Point, b: Point, way: number): Point {
  const long = Math.hypot(b[0] - a[0], b[1] - a[1]);
  const peak = along(...beside(a, b, Math.min(0.42 * long, 60)), 0.5);
  return along(along(a, peak, way), along(peak, b, way), way);
}

/** Points of an arc between two shares of the way. */
export const arcOf = (a: Point, b: Point, from: number, to: number): Point[] =>
  Array.from({ length: 13 }, (_, k) => arcAt(a, b, mix(from, to, k / 12)));

/** The square about a point; half a side is so many pixels. */
export const squareAt = ([x, y]: Point, half: number): Box =>
  grown({ x, y, wide: 0, tall: 0 }, half);

/** A box with sides of at least some pixels. */
export function atLeast({ x, y, wide, tall }: Box, side: number): Box {
  return { x, y, wide: Math.max(side, wide), tall: Math.max(side, tall) };
}

/** A box that is larger on all sides by so many pixels. */
export function grown({ x, y, wide, tall }: Box, by: number): Box {
  return { x: x - by, y: y - by, wide: wide + 2 * by, tall: tall + 2 * by };
}

/** The lower part of a box, at a share of its height. */
export function risen({ x, y, wide, tall }: Box, share: number): Box {
  return { x, y: y + tall * (1 - share), wide, tall: tall * share };
}

/** A box in shares of an area, in its pixels. */
export function within({ x, y, wide, tall }: Box, area: Box): Box {
  const [left, top] = [area.x + x * area.wide, area.y + y * area.tall];
  return { x: left, y: top, wide: wide * area.wide, tall: tall * area.tall };
}

/** The largest box of two sides, both at one scale, in the middle of an area; a side is never a hair. */
export function fitted(across: number, down: number, { x, y, wide, tall }: Box): Box {
  const least = 1 / 12;
  const [a, d] = [Math.max(across, down * least, 1e-9), Math.max(down, across * least, 1e-9)];
  const scale = Math.min(wide / a, tall / d);
  const [w, h] = [a * scale, d * scale];
  return { x: x + (wide - w) / 2, y: y + (tall - h) / 2, wide: w, tall: h };
}

/** The box at a share of the way from one to another. */
export function between(a: Box, b: Box, share: number): Box {
  const [x, y] = [mix(a.x, b.x, share), mix(a.y, b.y, share)];
  return { x, y, wide: mix(a.wide, b.wide, share), tall: mix(a.tall, b.tall, share) };
}

/** Boxes moved until none is nearer to another than a gap, and all are in the area; where there is
 * no room for that, as far apart as they came. */
export function spreadOut<B extends Box>(boxes: B[], area: Box, gap: number): B[] {
  const placed = boxes.map((box) => ({ ...box }));
  for (let round = 0; round < 80; round++) {
    for (const a of placed) {
      for (const b of placed.filter((box) => box !== a)) {
        const [x, y] = [b.x - a.x + (b.wide - a.wide) / 2, b.y - a.y + (b.tall - a.tall) / 2];
        const across = (a.wide + b.wide) / 2 + gap - Math.abs(x);
        const down = (a.tall + b.tall) / 2 + gap - Math.abs(y);
        if (across <= 0 || down <= 0) continue;
        if (across < down) a.x -= (x > 0 ? across : -across) / 2;
        else a.y -= (y > 0 ? down : -down) / 2;
      }
      a.x = Math.max(area.x, Math.min(area.x + area.wide - a.wide, a.x));
      a.y = Math.max(area.y, Math.min(area.y + area.tall - a.tall, a.y));
    }
  }
  return placed;
}
