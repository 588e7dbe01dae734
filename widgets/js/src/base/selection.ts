// The changes of a reader to a chart, which outlive a new drawing.
import type { Layout } from "./narrow_layout.ts";

interface Axis {
  title?: { text?: string };
  range?: unknown[];
  autorange?: unknown;
}

interface Menu {
  active?: number;
}

/**
 * The layout with what was changed between two others: the choices of menus and sliders, the titles of
 * chart and axes that go with a choice, and the part of an axis that is looked at. None of the three is changed.
 *
 * @param layout - as it was given
 * @param drawn - as it was drawn last
 * @param now - as it is seen
 */
export function keepSelection(layout: Layout, drawn: Layout, now: Layout): Layout {
  const made = structuredClone(layout);
  for (const kind of ["updatemenus", "sliders"]) {
    menus(made, kind).forEach((menu, k) => {
      const active = menus(now, kind)[k]?.active;
      if (active !== undefined) menu.active = active;
    });
  }
  const title = now.title?.text;
  if (title && title !== drawn.title?.text) made.title = { ...made.title, text: title };
  for (const key of Object.keys(now).filter((name) => /^[xy]axis\d*$/.test(name))) {
    made[key] ??= {};
    applySelection(made[key] as Axis, (drawn[key] ?? {}) as Axis, now[key] as Axis);
  }
  return made;
}

const menus = (layout: Layout, kind: string): Menu[] => (layout[kind] ?? []) as Menu[];

function applySelection(axis: Axis, drawn: Axis, now: Axis): void {
  const text = now.title?.text ?? "";
  if (text !== (drawn.title?.text ?? "")) axis.title = { ...axis.title, text };
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
