// Rings round one centre: one for each stream, the first outermost; a sector for each host.
// Angles are in radians, clockwise from the top.

export type Point = [number, number];

/** Of both coordinates of the centre. */
export const CENTRE = 230;

export const point = (angle: number, radius: number): Point => [
  CENTRE + radius * Math.sin(angle),
  CENTRE - radius * Math.cos(angle),
];

/** A piece of an annulus between two angles and two radii, as an SVG path. */
export function sector(from: number, to: number, inner: number, outer: number): string {
  const large = to - from > Math.PI ? 1 : 0;
  const at = (angle: number, radius: number) =>
    point(angle, radius)
      .map((value) => value.toFixed(2))
      .join(" ");
  const there = `A${outer} ${outer} 0 ${large} 1 ${at(to, outer)}`;
  const back = `A${inner} ${inner} 0 ${large} 0 ${at(from, inner)}`;
  return `M${at(from, inner)}L${at(from, outer)}${there}L${at(to, inner)}${back}Z`;
}

/** Where streams and hosts lie on the rings. */
export class Annulus {
  readonly hosts: number;
  readonly streams: number;
  readonly inner: number;
  readonly outer: number;
  readonly gap: number;
  readonly step: number;

  constructor(hosts: number, streams: number, inner: number, outer: number, widest: number) {
    this.hosts = Math.max(1, hosts);
    this.streams = streams;
    this.inner = inner;
    this.outer = outer;
    this.step = (2 * Math.PI) / this.hosts;
    this.gap = this.hosts > 1 ? Math.min(widest, this.step / 13) : 0.001;
  }

  /** Inner and outer radius of a stream's ring. */
  lane(stream: number): [number, number] {
    const depth = (this.outer - this.inner) / this.streams;
    return [this.outer - (stream + 1) * depth + 3, this.outer - stream * depth - 3];
  }

  /** The angle in the middle of a host's sector. */
  middle(host: number): number {
    return (host + 0.5) * this.step;
  }

  /** Where a host's sector begins and ends. */
  span(host: number): [number, number] {
    return [host * this.step + this.gap, (host + 1) * this.step - this.gap];
  }

  /** A host's sector of a stream's ring, filled from the inside to a share of its depth. */
  sector(stream: number, host: number, share = 1): string {
    const [inner, outer] = this.lane(stream);
    return sector(...this.span(host), inner, inner + share * (outer - inner));
  }
}
