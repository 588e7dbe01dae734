// Colours are #rrggbb.

const channels = (colour: string): number[] =>
  [1, 3, 5].map((start) => Number.parseInt(colour.slice(start, start + 2), 16));

/** Relative luminance from 0 to 1 (WCAG 2). */
export function luminance(colour: string): number {
  const linear = channels(colour)
    .map((value) => value / 255)
    .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  const weights = [0.2126, 0.7152, 0.0722];
  return linear.reduce((sum, value, k) => sum + value * (weights[k] ?? 0), 0);
}

/** Black or white, whichever reads better on the colour. */
export const textColor = (colour: string): string =>
  luminance(colour) > 0.22 ? "#111111" : "#ffffff";

/** The colour for lines and texts on a dark ground. */
export const paler = (colour: string): string =>
  `#${channels(colour)
    .map((value) =>
      Math.round(0.6 * value + 102)
        .toString(16)
        .padStart(2, "0"),
    )
    .join("")}`;

/** The colour for texts on a white ground: darker where letters would be too pale to be read. */
export function darker(colour: string): string {
  let found = colour;
  while (1.05 / (luminance(found) + 0.05) < 4.5) {
    const less = channels(found).map((value) => Math.floor(0.95 * value));
    found = `#${less.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
  }
  return found;
}

/** The colour of a host or stream; more of them than colours begin again. */
export function cycled(colours: string[], index: number): string {
  return colours[index % colours.length] ?? "#868e96";
}
