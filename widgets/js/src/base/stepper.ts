// Draws one step of a small example: what is stored where, what waits, what moves, what is found.
import type { Palette, StepChip, StepFrame, StepMove, StepNode } from "../frames.ts";
import { cycled } from "./colors.ts";
import { add, header } from "./dom.ts";

const SENT = [
  { transform: "translateX(-14px)", opacity: 0.2 },
  { transform: "none", opacity: 1 },
];

function drawChip(parent: Element, chip: StepChip, palette: Palette): HTMLElement {
  const node = add(parent, "span", `braid-chip${chip.is_new ? " new" : ""}`, chip.text);
  const own = chip.stream !== null;
  const colour = own ? cycled(palette.streams, chip.stream ?? 0) : "var(--braid-muted)";
  node.style.borderColor = colour;
  if (chip.is_new) node.style.background = colour;
  return node;
}

function drawRow(parent: Element, name: string, chips: StepChip[], palette: Palette): void {
  const row = add(parent, "div", "braid-row");
  if (name) add(row, "b", "", name);
  for (const chip of chips) drawChip(row, chip, palette);
}

function drawNode(parent: Element, node: StepNode, streams: string[], palette: Palette): void {
  const cell = add(parent, "div", `braid-cell${node.is_active ? " here" : ""}`);
  add(cell, "h4", "", node.name);
  node.stored.forEach((chips, stream) => {
    drawRow(cell, streams[stream] ?? "", chips, palette);
  });
  if (node.queued) drawRow(cell, "in", node.queued, palette);
}

function drawMoves(parent: Element, moves: StepMove[], palette: Palette, glide: number): void {
  const box = add(parent, "div");
  add(box, "div", "braid-note", moves.length ? "on its way" : "nothing is on its way");
  for (const { what, source, target } of moves) {
    const row = add(box, "div", "braid-row");
    const sent = drawChip(row, what, palette);
    row.append(` ${source} → ${target}`);
    if (glide) sent.animate(SENT, { duration: 400 });
  }
}

const sameRow = (a: string[], b: string[]): boolean =>
  a.length === b.length && a.every((cell, k) => cell === b[k]);

/** A cell of a table: its text, the text that the step has replaced, and whether it changed. */
export interface ComparedCell {
  text: string;
  was: string;
  change: "" | "new" | "gone";
}

/** The cells of a table after a step, by row; rows that are gone without a successor come last. */
export function compareRows(rows: string[][], before: string[][]): ComparedCell[][] {
  const isIn = (row: string[], all: string[][]) => all.some((other) => sameRow(row, other));
  const gone = before.length ? before.slice(1).filter((row) => !isIn(row, rows)) : [];
  const compared = rows.map((cells, k) => {
    if (!k || !before.length || isIn(cells, before)) return marked(cells, "");
    const at = gone.findIndex((row) => row[0] === cells[0]);
    const old = at < 0 ? [] : (gone.splice(at, 1)[0] ?? []);
    return cells.map((text, c): ComparedCell => {
      const was = old[c] ?? "";
      return text === old[c] ? { text, was: "", change: "" } : { text, was, change: "new" };
    });
  });
  return [...compared, ...gone.map((row) => marked(row, "gone"))];
}

const marked = (row: string[], change: ComparedCell["change"]): ComparedCell[] =>
  row.map((text) => ({ text, was: "", change }));

function drawTable(parent: Element, rows: string[][], before: string[][]): void {
  const box = add(parent, "div");
  if (!rows.length) return;
  const table = add(box, "table", "braid-table");
  compareRows(rows, before).forEach((cells, k) => {
    const row = add(table, "tr");
    for (const { text, was, change } of cells) {
      const node = add(row, k ? "td" : "th");
      if (was) add(node, "s", "", was).after(" ");
      if (change === "") node.append(text);
      else add(node, change === "gone" ? "s" : "b", "", text);
    }
  });
}

export function draw(box: HTMLElement, frame: StepFrame, palette: Palette, glide: number): void {
  box.replaceChildren();
  header(box, frame);
  add(box, "div", "braid-say", frame.text).setAttribute("aria-live", "polite");
  if (frame.places.length) drawRow(box, "parts", frame.places, palette);
  const cells = add(box, "div", "braid-cells");
  for (const node of frame.nodes) drawNode(cells, node, frame.streams, palette);
  const facts = add(box, "div", "braid-facts");
  if (frame.nodes.length) {
    drawMoves(facts, frame.moves, palette, glide);
    const made = add(facts, "div");
    add(made, "div", "braid-note", `results so far: ${frame.results.length}`);
    drawRow(made, "", frame.results, palette);
  }
  drawTable(facts, frame.table, frame.before);
}
