// The text of a click on a slice or a query of a chain, in the frame that is shown.

import { count } from "../base/format.ts";
import type { Asked } from "../base/query_help.ts";
import type { ChainFrame, ChainSlice, ChainStream } from "../frames.ts";
import { inWords } from "./axis.ts";

const counted = (n: number, what: string): string => `${count(n)} ${what}${n === 1 ? "" : "s"}`;
const rowsOf = (parts: { rows: number }[]): number =>
  parts.reduce((sum, { rows }) => sum + rows, 0);

/** Of a slice, "stream:number", or of a query of a chain; nothing of what is not there. */
export function describeSlice(frame: ChainFrame, asked: Asked): string {
  if ("query" in asked) return chainQuery(frame, asked.query);
  const [index, k = 0] = asked.slice.split(":").map(Number);
  const stream = frame.streams.find((each) => each.index === index);
  const slice = stream?.slices[k];
  if (!stream || !slice) return "";
  return [
    `slice ${k + 1} of ${stream.name} after batch ${frame.batch}, ${ages(stream, slice)}`,
    `  ${counted(slice.rows, "tuple")} held, of ${count(rowsOf(stream.slices))} in all slices`,
    `  in this batch: ${flows(stream, k) || "nothing came or went"}`,
    `  serves ${slice.serves}`,
  ].join("\n");
}

const ages = ({ marks }: ChainStream, { first, last }: ChainSlice): string =>
  `ages ${inWords(marks, first)} to ${inWords(marks, last)}`;

/** The tuples that came to a slice and went from it. */
function flows({ received_tuples: came, aged, trimmed: cut }: ChainStream, k: number): string {
  const parts: [number, string][] = [
    [k === 0 ? came : 0, "came"],
    [rowsOf(aged.filter(({ target }) => target === k)), "aged into it"],
    [rowsOf(aged.filter(({ source }) => source === k)), "aged out of it"],
    [rowsOf(cut.filter(({ slice }) => slice === k)), "cut off before it"],
  ];
  const some = parts.filter(([rows]) => rows);
  return some.map(([rows, what]) => `${count(rows)} ${what}`).join(", ");
}

function chainQuery(frame: ChainFrame, name: string): string {
  const found = frame.streams.flatMap((stream) => {
    const query = stream.queries.find((each) => each.name === name);
    if (!query) return [];
    const { slices, marks } = stream;
    const serve = slices.filter(({ first }) => first < query.window);
    const of = `${serve.length} of ${counted(slices.length, "slice")}`;
    const where = query.selection ? `where ${query.selection}` : "no selection";
    return [
      `${stream.name}: window ${inWords(marks, query.window)}, ${where}; served by ${of}`,
      ...serve.map(
        (slice, k) => `  slice ${k + 1}, ${ages(stream, slice)}: ${counted(slice.rows, "tuple")}`,
      ),
    ];
  });
  return found.length ? [`query ${name} after batch ${frame.batch}`, ...found].join("\n") : "";
}
