// The names of the lines of a track that are dashed or dotted.
import type { Series } from "../../frames.ts";
import type { Box } from "../base/geometry.ts";
import type { Pen, TextStyle } from "../base/pen.ts";

const NAME: TextStyle = { size: 10, ground: "panel", isMinor: true };

type Place = (value: number) => number;

/** Names the dashed lines of a track at its start, and each dotted one at its own end. */
export function nameLines(pen: Pen, area: Box, series: Series[], xOf: Place, yOf: Place): void {
  const baselines = series.filter(({ role }) => role === "baseline").map(({ name }) => name);
  for (const names of baselines.length ? [baselines.join("; "), `${baselines[0]}`] : []) {
    const style: TextStyle = { ...NAME, colour: "bad", room: area.wide - 8 };
    pen.text(`dashed: ${names}`, 2, area.y + 5, style);
  }
  for (const { name, batch, values } of series.filter((each) => each.role === "mean")) {
    if (!values.length) continue;
    const end = Math.min(area.y + area.tall - 6, yOf(values.at(-1) ?? 0));
    const style: TextStyle = { ...NAME, colour: "muted", align: "right" };
    const after = xOf(batch.at(-1) ?? 0) + pen.width(name, 10) + 8;
    pen.text(name, Math.min(area.wide - 4, after), Math.max(area.y + 6, end), style);
  }
}
