// Draws one step of an algorithm: nodes in the place that the mapping gives them, rows in pills,
// what moves along an arc, results as lines, and the lines of the paper.
import type { StepAlgorithm, StepChip, StepFrame, StepNode } from "../../frames.ts";
import { add, make, pressed, spoken } from "./dom.ts";

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

function makeChip({ text, stream, outline = "", is_new }: StepChip, kind = ""): HTMLElement {
  const node = make("span", `braid-chip ${outline} ${is_new ? "new" : ""} ${kind}`, text);
  const hue = stream === undefined ? "muted" : `stream${stream % 6}`;
  node.style.setProperty("--hue", `var(--ck-${hue})`);
  return node;
}

function addRow(parent: Element, name: string, chips: StepChip[], coming: StepChip[] = []): void {
  const made = [
    ...chips.map((chip) => makeChip(chip)),
    ...coming.map((chip) => makeChip(chip, "flies")),
  ];
  if (made.length) add(parent, "div", "braid-row", name ? make("b", "", name) : undefined, ...made);
}

const chipsIn = (cell?: Element): HTMLElement[] => [
  ...(cell?.querySelectorAll<HTMLElement>(".braid-chip") ?? []),
];

const findChip = (cell: Element | undefined, text: string): HTMLElement | undefined =>
  chipsIn(cell).findLast((chip) => chip.textContent === text);

function placed(node: HTMLElement, row: number, column: number): HTMLElement {
  node.style.gridArea = `${row} / ${column}`;
  return node;
}

/** A node. What arrives or leaves for good is in the row of its stream. */
function makeNode(node: StepNode, frame: StepFrame, n: number): HTMLElement {
  const name = make("h4", "", node.name.replace(/[._](?=\w)/gu, "$&\u200b"));
  const cell = make("div", `braid-cell${node.is_active ? " here" : ""}`, name);
  cell.dataset.key = node.name;
  const moves = frame.moves.filter(({ source, target }) => (target ?? source) === n);
  const here = [...node.stored.flat().filter(({ is_new }) => is_new), ...(node.queued ?? [])];
  const coming = moves
    .filter(({ what }) => !here.some(({ text }) => text === what.text))
    .map(({ what, target }) => ({ ...what, is_new: target !== null }));
  const last = node.stored.length;
  [...node.stored, []].forEach((chips, k) => {
    const arrived = coming.filter(({ stream = last }) => Math.min(stream, last) === k);
    addRow(cell, "", chips, arrived);
  });
  addRow(cell, "waits", node.queued ?? []);
  for (const { what, source } of moves) {
    findChip(cell, what.text)?.setAttribute("data-from", frame.nodes[source ?? -1]?.name ?? "");
  }
  const found = new Set(frame.matches.flat());
  for (const chip of chipsIn(cell)) {
    const text = chip.textContent;
    chip.dataset.key = `${node.name} ${text}`;
    chip.classList.toggle("met", node.is_active && rowsOf(text).some((row) => found.has(row)));
  }
  return cell;
}

function fillPlaces(places: HTMLElement, frame: StepFrame): void {
  const { row_heads: rows, column_heads: columns, nodes } = frame;
  const most = Math.max(...nodes.map(({ column }) => column));
  places.style.gridTemplateColumns = `auto repeat(${most}, minmax(0, 1fr))`;
  places.append(
    ...rows.map((chip, k) => placed(makeChip(chip, "braid-head-row"), k + 2, 1)),
    ...columns.map((chip, k) => placed(makeChip(chip, "braid-head-column"), 1, k + 2)),
    ...nodes.map((node, n) => placed(makeNode(node, frame, n), node.row + 1, node.column + 1)),
  );
  new ResizeObserver(() => drawOverlay(places, frame)).observe(places);
}

/** The places by the old mapping, small. */
function makeOld({ old, nodes }: StepFrame): HTMLElement {
  const cells = old.map(([row = 1, column = 1], n) =>
    placed(make("i", nodes[n]?.is_active ? "here" : "", nodes[n]?.name), row, column),
  );
  const words = make("span", "", "the new mapping; this was the old one");
  return make("div", "braid-old", words, make("div", "", ...cells));
}

const spot = ({ offsetLeft, offsetTop, offsetWidth, offsetHeight }: HTMLElement): Point => [
  offsetLeft + offsetWidth / 2,
  offsetTop + offsetHeight / 2,
];

/** The ways of what moves from node to node, and the lines between the members of results; they are
 * drawn anew only in another size, as spots are other ones while something moves. */
function drawOverlay(places: HTMLElement, { moves, matches }: StepFrame): void {
  const size = `0 0 ${places.clientWidth} ${places.clientHeight}`;
  if (places.querySelector(`svg[viewBox="${size}"]`)) return;
  places.querySelector("svg")?.remove();
  const cells = [...places.querySelectorAll<HTMLElement>(".braid-cell")];
  const met = [...places.querySelectorAll<HTMLElement>(".here .braid-chip, .flies")];
  const ways = moves.map(({ what, source, target }) => {
    const [from, to] = [cells[source ?? -1], findChip(cells[target ?? -1], what.text)];
    if (!from || !to) return "";
    return `<path class="way" d="${arc(spot(findChip(from, what.text) ?? from), spot(to))}"/>`;
  });
  const found = matches.map((group) => {
    const chips = group.map((row) => met.find((chip) => rowsOf(chip.textContent).includes(row)));
    const points = chips.flatMap((chip) => (chip ? [spot(chip)] : []));
    return `<polyline class="found" points="${points.join(" ")}"/>`;
  });
  const lines = [...ways, ...found].join("");
  const svg = `<svg viewBox="${size}" aria-hidden="true">${lines}</svg>`;
  places.insertAdjacentHTML("beforeend", svg);
}

/** Where the parts of a drawing are, by key. */
type Spots = Map<string, DOMRect>;

const keyed = (box: HTMLElement) => [...box.querySelectorAll<HTMLElement>("[data-key]")];

/** Lets everything move from where it was: rows that have arrived, from their node. */
function glideFrom(box: HTMLElement, was: Spots, duration: number): void {
  for (const node of keyed(box)) {
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
    const line = make("div", frame.lit.includes(k) ? "on" : "", number, words);
    if (line.className) line.setAttribute("aria-current", "step");
    return line;
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
function makeTable({ table }: StepFrame): HTMLElement {
  const rows = table.map((cells, k) => {
    const made = cells.map(([text = "", was = "", change = ""]) => {
      const now = make(change === "gone" ? "s" : change === "new" ? "b" : "span", "", text);
      return make(k ? "td" : "th", "", ...(was ? [make("s", "", was), " "] : []), now);
    });
    return make("tr", "", ...made);
  });
  return make("div", "braid-facts", make("table", "braid-table", ...rows));
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
  const was = new Map(
    keyed(box).map((node) => [node.dataset.key ?? "", node.getBoundingClientRect()]),
  );
  const { title, note, results } = frame;
  const head = make("header", "", make("b", "", title), make("span", "", note));
  if (results) add(head, "span", "", results);
  const stage = make("div", "braid-stage", frame.old.length ? makeOld(frame) : undefined);
  addRow(stage, "parts", frame.parts);
  const places = frame.nodes.length ? add(stage, "div", "braid-places") : undefined;
  if (places) fillPlaces(places, frame);
  if (frame.table.length) stage.append(makeTable(frame));
  const side = makeSide(frame, algorithm);
  box.replaceChildren(head, stage, side);
  if (places) drawOverlay(places, frame);
  if (glide) glideFrom(box, was, glide);
  return side;
}
