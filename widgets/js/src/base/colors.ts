// Colours are #rrggbb.

/** The color of a host or stream; more of them than colors begin again. */
export function cycled(colours: string[], index: number): string {
  return colours[index % colours.length] ?? "#868e96";
}
