// Colours are #rrggbb.

/** The colour of a host or stream; more of them than colours begin again. */
export function cycled(colours: string[], index: number): string {
  return colours[index % colours.length] ?? "#868e96";
}
