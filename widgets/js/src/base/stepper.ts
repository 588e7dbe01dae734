// Draws one step of an algorithm: nodes in the place that the mapping gives them, rows in pills,
// what moves along an arc, results as lines, and the lines of the paper.
import type { StepAlgorithm, StepChip, StepFrame, StepNode } from "../../frames.ts";
import { add, make, pressed, spoken } from "./dom.ts";
import { hue } from "./theme.ts";

type Point = [number, number];

/** The path of an arc, to one side of the straight way. */
export function arc([x1, y1]: Point, [x2, y2]: Point): string {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const long = Math.max(1, Math.hypot(dx, dy));
  const bend = Math.min(90, 26 + long * 0.16) / long;
  const [cx, cy] = [(x1 + x2) / 2 - dy * bend, (y1 + y2) / 2 + Math.abs(dx) * bend];
  return `M ${x1} ${y1} Q ${cx} ${cy} ${x2} ${y2}`;
}

/** The rows that a chip stands for. */
const rowsOf = (text: string): string[] => text.replace(/[()*#ᵇᵖ]/gu, " ").split(" ");

function makeChip({ text, stream, outline = "", is_new }: StepChip): HTMLElement {
  const chip = make("span", `braid-chip ${outline} ${is_new ? "new" : ""}`, text);
  chip.style.setProperty("--hue", `var(--ck-${stream === undefined ? "muted" : hue(stream)})`);
  return chip;
}

function addRow(parent: Element, name: string, chips: HTMLElement[]): void {
  if (chips.length) add(parent, "div", "braid-row", make("b", "", name), ...chips);
}

const allIn = (box: Element, kind: string) => [...box.querySelectorAll<HTMLElement>(kind)];

const findChip = (cell: Element, text: string): HTMLElement | undefined =>
  allIn(cell, ".braid-chip").findLast((chip) => chip.textContent === text);

/** Puts an element into a grid, whose rows and columns begin at 1. */
function place(grid: Element, node: HTMLElement, row = 1, column = 1): void {
  node.style.gridArea = `${row} / ${column}`;
  grid.append(node);
}

/** A node. What arrives or leaves for good is in the row of its stream. */
function makeNode(node: StepNode, frame: StepFrame, n: number): HTMLElement {
  const name = make("h4", "", node.name.replace(/[._](?=\w)/gu, "$&\u200b"));
  const cell = make("div", `braid-cell${node.is_active ? " here" : ""}`, name);
  cell.dataset.key = node.name;
  const moves = frame.moves.filter(({ source, target }) => (target ?? source) === n);
  const queued = node.queued ?? [];
  const here = [...node.stored.flat().filter(({ is_new }) => is_new), ...queued];
  const rows = [...node.stored, []].map((chips) => chips.map(makeChip));
  for (const { what, target } of moves) {
    if (here.some(({ text }) => text === what.text)) continue;
    const chip = makeChip({ ...what, is_new: target !== null });
    chip.classList.add("flies");
    (rows[what.stream ?? rows.length] ?? rows.at(-1))?.push(chip);
  }
  for (const chips of rows) addRow(cell, "", chips);
  addRow(cell, "waits", queued.map(makeChip));
  const found = new Set(frame.matches.flat());
  for (const chip of allIn(cell, ".braid-chip")) {
    const text = chip.textContent;
    const source = moves.findLast(({ what }) => what.text === text)?.source;
    chip.dataset.from = frame.nodes[source ?? -1]?.name ?? "";
    chip.dataset.key = `${node.name} ${text}`;
    chip.classList.toggle("met", node.is_active && rowsOf(text).some((row) => found.has(row)));
  }
  return cell;
}

function addPlaces(stage: Element, frame: StepFrame): void {
  if (!frame.nodes.length) return;
  const places = add(stage, "div", "braid-places");
  const most = Math.max(...frame.nodes.map(({ column }) => column));
  places.style.gridTemplateColumns = `auto repeat(${most}, minmax(min-content, 1fr))`;
  const head = (chip: StepChip, kind: string) =>
    makeChip({ ...chip, outline: `braid-heading ${kind}` });
  frame.row_heads.forEach((chip, k) => {
    place(places, head(chip, "braid-upright"), k + 2);
  });
  frame.column_heads.forEach((chip, k) => {
    place(places, head(chip, ""), 1, k + 2);
  });
  frame.nodes.forEach((node, n) => {
    place(places, makeNode(node, frame, n), node.row + 1, node.column + 1);
  });
  new ResizeObserver(() => drawOverlay(places, frame)).observe(places);
}

/** The places by the old mapping, small. */
function addOld(stage: Element, { old, nodes }: StepFrame): void {
  if (!old.length) return;
  const words = make("span", "", "the new mapping; this was the old one");
  const grid = add(add(stage, "div", "braid-old", words), "div");
  old.forEach(([row, column], n) => {
    place(grid, make("i", nodes[n]?.is_active ? "here" : "", nodes[n]?.name), row, column);
  });
}

const spot = ({ offsetLeft, offsetTop, offsetWidth, offsetHeight }: HTMLElement): Point => [
  offsetLeft + offsetWidth / 2,
  offsetTop + offsetHeight / 2,
];

/** The ways of what moves from node to node, and the lines between the members of results. */
function drawOverlay(places: HTMLElement, { moves, matches }: StepFrame): void {
  places.querySelector("svg")?.remove();
  const cells = allIn(places, ".braid-cell");
  const met = allIn(places, ".here .braid-chip, .flies");
  const ways = moves.map(({ what, source, target }) => {
    const [from, to] = [cells[source ?? -1], cells[target ?? -1]];
    if (!from || !to) return "";
    const [start, end] = [from, to].map((cell) => spot(findChip(cell, what.text) ?? cell));
    return `<path class="way" d="${arc(start as Point, end as Point)}"/>`;
  });
  const found = matches.map((group) => {
    const chips = group.map((row) => met.find((chip) => rowsOf(chip.textContent).includes(row)));
    const points = chips.flatMap((chip) => (chip ? [spot(chip)] : []));
    return `<polyline class="found" points="${points.join(" ")}"/>`;
  });
  const lines = [...ways, ...found].join("");
  places.insertAdjacentHTML("beforeend", `<svg aria-hidden="true">${lines}</svg>`);
}

/** Lets everything move from where it was: rows that have arrived, from their node. */
function glideFrom(box: HTMLElement, was: Map<string, DOMRect>, duration: number): void {
  for (const node of allIn(box, "[data-key]")) {
    const { key = "", from = "" } = node.dataset;
    const old = was.get(key) ?? was.get(from);
    const now = node.getBoundingClientRect();
    const [x, y] = old ? [old.left - now.left, old.top - now.top] : [0, -18];
    if (old ? Math.hypot(x, y) < 2 : !node.classList.contains("new")) continue;
    const start = { transform: `translate(${x}px, ${y}px)`, opacity: old ? 1 : 0 };
    node.animate([start, { transform: "none", opacity: 1 }], { duration, easing: "ease" });
  }
}

/** The algorithm in our own words, the lines that are executed lit. */
function drawListing(side: Element, frame: StepFrame, { listings }: StepAlgorithm): void {
  const listing = listings[frame.listing ?? -1];
  if (!listing) return;
  const lines = listing.lines.map((text, k) => {
    const [number, words] = [make("i", "", listing.numbers[k]), make("span", "", text)];
    const isOn = frame.lit.includes(k);
    return Object.assign(make("div", isOn ? "on" : "", number, words), { ariaCurrent: `${isOn}` });
  });
  side.append(make("h3", "", listing.title), make("div", "braid-listing", ...lines));
}

/** A question about the next step; what is answered shows at once whether it is right. */
function drawQuestion(side: Element, { question }: StepFrame): void {
  if (!question) return;
  const { text, options, answer, reply } = question;
  const [row, said] = [make("div"), spoken(make("div"))];
  add(side, "div", "braid-ask", make("b", "", "Predict, then press. "), text, row, said);
  options.forEach((option, k) => {
    const button = pressed(row, option, () => {
      button.className = k === answer ? "right" : "wrong";
      said.textContent = `${k === answer ? "Right" : `No, ${options[answer]}`}: ${reply}`;
    });
  });
}

/** A table; a cell has its text, the text that it replaces, and whether it is new or gone. */
function addTable(stage: Element, { table }: StepFrame): void {
  if (!table.length) return;
  const tags = { new: "b", gone: "s", "": "span" } as const;
  const rows = table.map((cells, k) => {
    const made = cells.map(([text = "", was = "", change = ""]) => {
      const now = make(tags[change as keyof typeof tags], "", text);
      return make(k ? "td" : "th", "", ...(was ? [make("s", "", was), " "] : []), now);
    });
    return make("tr", "", ...made);
  });
  add(stage, "div", "braid-facts", make("table", "braid-table", ...rows));
}

function makeSide(frame: StepFrame, algorithm: StepAlgorithm): HTMLElement {
  const side = make("aside", "braid-side");
  drawListing(side, frame, algorithm);
  const now = spoken(add(side, "div", "braid-say", make("b", "", frame.text)));
  const where = frame.nodes.find(({ is_active }) => is_active)?.name;
  const names = frame.matches.map((row) => `(${row.join(" ")})`).join(", ");
  if (names) add(now, "div", "", `result ${names}: found once${where ? `, at ${where}` : ""}`);
  drawQuestion(side, frame);
  return side;
}

/** Draws a step, and returns where more can stand at its side. */
export function draw(
  box: HTMLElement,
  frame: StepFrame,
  algorithm: StepAlgorithm,
  glide: number,
): HTMLElement {
  const was = new Map<string, DOMRect>();
  for (const node of allIn(box, "[data-key]")) {
    was.set(node.dataset.key ?? "", node.getBoundingClientRect());
  }
  const head = make("header", "", make("b", "", frame.title));
  for (const text of [frame.note, frame.results]) add(head, "span", "", text);
  const stage = make("div", "braid-stage");
  addOld(stage, frame);
  addRow(stage, "parts", frame.parts.map(makeChip));
  addPlaces(stage, frame);
  addTable(stage, frame);
  const side = makeSide(frame, algorithm);
  box.replaceChildren(head, stage, side);
  if (glide) glideFrom(box, was, glide);
  return side;
}
