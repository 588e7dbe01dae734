// The part of a chart that a reader looks at, which outlives a new drawing.
import type { Layout } from "./narrow_layout.ts";

interface Axis {
  range?: unknown[];
  autorange?: unknown;
}

/**
 * The layout with the parts of axes that were chosen between two others. None of the three is
 * changed.
 *
 * @param layout - as it was given
 * @param drawn - as it was drawn last
 * @param now - as it is seen
 */
export function keepSelection(layout: Layout, drawn: Layout, now: Layout): Layout {
  const made = structuredClone(layout);
  for (const key of Object.keys(now).filter((name) => /^[xy]axis\d*$/.test(name))) {
    made[key] ??= {};
    applySelection(made[key] as Axis, (drawn[key] ?? {}) as Axis, now[key] as Axis);
  }
  return made;
}

function applySelection(axis: Axis, drawn: Axis, now: Axis): void {
  if (now.autorange === true) {
    if (axis.autorange === false) {
      delete axis.range;
      axis.autorange = true;
    }
  } else if (now.range && String(now.range) !== String(drawn.range)) {
    axis.range = [...now.range];
    axis.autorange = false;
  }
}
