// The names of the lines of a track that are dashed or dotted.
import type { Series } from "../../frames.ts";
import type { Box } from "../base/geometry.ts";
import type { Pen, TextStyle } from "../base/pen.ts";

const NAME: TextStyle = { size: 10, ground: "panel", isMinor: true };

/** Names the dashed lines of a track at its start, and each dotted one at its own end. */
export function nameLines(pen: Pen, area: Box, series: Series[], yOf: (value: number) => number) {
  const baselines = series.filter(({ role }) => role === "baseline").map(({ name }) => name);
  for (const names of baselines.length ? [baselines.join("; "), `${baselines[0]}`] : []) {
    const style: TextStyle = { ...NAME, colour: "bad", room: area.wide - 8 };
    pen.text(`dashed: ${names}`, 2, area.y + 5, style);
  }
  for (const { name, values } of series.filter((each) => each.role === "mean")) {
    if (!values.length) continue;
    const end = Math.min(area.y + area.tall - 6, yOf(values.at(-1) ?? 0));
    const style: TextStyle = { ...NAME, colour: "muted", align: "right" };
    pen.text(name, area.wide - 4, Math.max(area.y + 6, end), style);
  }
}
