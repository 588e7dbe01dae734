// Draws one step of an algorithm: nodes in the place that the mapping gives them, rows in pills,
// what moves along an arc, results as lines, and the lines of the paper.
import type { StepAlgorithm, StepChip, StepFrame, StepNode } from "../../frames.ts";
import { add, pressed } from "./dom.ts";

type Point = [number, number];

/** The path of an arc, to one side of the straight way. */
export function arc([x1, y1]: Point, [x2, y2]: Point): string {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const long = Math.max(1, Math.hypot(dx, dy));
  const bend = Math.min(90, 26 + long * 0.16) / long;
  const [cx, cy] = [(x1 + x2) / 2 - dy * bend, (y1 + y2) / 2 + Math.abs(dx) * bend];
  return `M ${x1} ${y1} Q ${cx} ${cy} ${x2} ${y2}`;
}

function drawChip(parent: Element, chip: StepChip, kind = ""): HTMLElement {
  const { text, stream, outline = "", is_new } = chip;
  const node = add(parent, "span", `braid-chip ${outline} ${is_new ? "new" : ""} ${kind}`, text);
  const hue = stream === undefined ? "muted" : `stream${stream % 6}`;
  node.style.setProperty("--hue", `var(--ck-${hue})`);
  node.dataset.rows = text.replace(/[()*#ᵇᵖ]/gu, " ");
  return node;
}

function isOf({ dataset: { rows = "" } }: HTMLElement, row: string): boolean {
  return rows.split(" ").includes(row);
}

function drawRow(parent: Element, name: string, chips: StepChip[], coming: StepChip[] = []): void {
  if (!chips.length && !coming.length) return;
  const row = add(parent, "div", "braid-row");
  if (name) add(row, "b", "", name);
  for (const chip of chips) drawChip(row, chip);
  for (const chip of coming) drawChip(row, chip, "flies");
}

function findChip(cell: Element | undefined, text: string): HTMLElement | undefined {
  const same = [...(cell?.querySelectorAll<HTMLElement>(".braid-chip") ?? [])];
  return same.filter((chip) => chip.textContent === text).at(-1);
}

/** A node, in its place. What arrives or leaves for good is in the row of its stream. */
function drawNode(parent: Element, node: StepNode, frame: StepFrame, n: number): void {
  const cell = add(parent, "div", `braid-cell${node.is_active ? " here" : ""}`);
  cell.style.gridArea = `${node.row + 1} / ${node.column + 1}`;
  cell.dataset.key = node.name;
  add(cell, "h4", "", node.name.replace(/[._](?=\w)/gu, "$&\u200b"));
  const moves = frame.moves.filter(({ source, target }) => (target ?? source) === n);
  const here = node.stored.flat().filter(({ is_new }) => is_new);
  const coming = moves.flatMap(({ what, target }) =>
    here.some(({ text }) => text === what.text) ? [] : [{ ...what, is_new: target !== null }],
  );
  const last = node.stored.length;
  [...node.stored, []].forEach((chips, k) => {
    const arrived = coming.filter(({ stream = last }) => Math.min(stream, last) === k);
    drawRow(cell, "", chips, arrived);
  });
  drawRow(cell, "waits", node.queued ?? []);
  for (const { what, source } of moves) {
    findChip(cell, what.text)?.setAttribute("data-from", frame.nodes[source ?? -1]?.name ?? "");
  }
  for (const chip of cell.querySelectorAll<HTMLElement>(".braid-chip")) {
    chip.dataset.key = `${node.name} ${chip.textContent}`;
    const isMet = frame.matches.flat().some((row) => isOf(chip, row));
    chip.classList.toggle("met", node.is_active && isMet);
  }
}

function drawPlaces(stage: Element, frame: StepFrame): HTMLElement {
  const places = add(stage, "div", "braid-places");
  const columns = Math.max(...frame.nodes.map(({ column }) => column));
  places.style.gridTemplateColumns = `auto repeat(${columns}, minmax(0, 1fr))`;
  frame.row_heads.forEach((chip, k) => {
    drawChip(places, chip, "braid-head-row").style.gridArea = `${k + 2} / 1`;
  });
  frame.column_heads.forEach((chip, k) => {
    drawChip(places, chip, "braid-head-column").style.gridArea = `1 / ${k + 2}`;
  });
  frame.nodes.forEach((node, n) => {
    drawNode(places, node, frame, n);
  });
  return places;
}

/** The places by the old mapping, small. */
function drawOld(stage: Element, { old, nodes }: StepFrame): void {
  if (!old.length) return;
  const box = add(stage, "div", "braid-old");
  add(box, "span", "", "the new mapping; this was the old one");
  const grid = add(box, "div");
  old.forEach(([row, column], n) => {
    const cell = add(grid, "i", nodes[n]?.is_active ? "here" : "", nodes[n]?.name);
    cell.style.gridArea = `${row} / ${column}`;
  });
}

function makeSvg(parent: Element, tag: string, attributes: Record<string, string>): Element {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  parent.append(node);
  return node;
}

/** Where the parts of a drawing are, by key. */
type Spots = Map<string, DOMRect>;

function spots(box: HTMLElement): Spots {
  const keyed = [...box.querySelectorAll<HTMLElement>("[data-key]")];
  return new Map(keyed.map((node) => [node.dataset.key ?? "", node.getBoundingClientRect()]));
}

/** The ways of what moves from node to node, and the lines between the members of results. */
function drawOverlay(places: HTMLElement, frame: StepFrame): void {
  places.querySelector("svg")?.remove();
  const { left, top, width, height } = places.getBoundingClientRect();
  const cells = [...places.querySelectorAll<HTMLElement>(".braid-cell")];
  if (!width) return;
  const svg = makeSvg(places, "svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const spot = (node: HTMLElement, down: number): Point => {
    const box = node.getBoundingClientRect();
    return [box.left - left + box.width / 2, box.top - top + box.height * down];
  };
  for (const { what, source, target } of frame.moves) {
    const [from, to] = [cells[source ?? -1], findChip(cells[target ?? -1], what.text)];
    if (!from || !to) continue;
    const d = arc(spot(findChip(from, what.text) ?? from, 0.5), spot(to, 0.5));
    makeSvg(svg, "path", { d, class: "way" });
  }
  for (const group of frame.matches) {
    const met = [...places.querySelectorAll<HTMLElement>(".here .braid-chip, .flies")];
    const members = group.map((row) => met.find((chip) => isOf(chip, row)));
    const points = members.flatMap((chip) => (chip ? [spot(chip, 0.5)] : [])).join(" ");
    makeSvg(svg, "polyline", { points, class: "found" });
  }
}

/** Lets everything move from where it was: rows that have arrived, from their node. */
function glideFrom(box: HTMLElement, was: Spots, duration: number): void {
  for (const node of box.querySelectorAll<HTMLElement>("[data-key]")) {
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
  add(side, "h3", "", listing.title);
  const list = add(side, "div", "braid-listing");
  listing.lines.forEach((text, k) => {
    const isLit = frame.lit.includes(k);
    const line = add(list, "div", isLit ? "on" : "");
    if (isLit) line.setAttribute("aria-current", "step");
    add(line, "i", "", listing.numbers[k]);
    add(line, "span", "", text);
  });
}

/** A question about the next step; what is answered shows at once whether it is right. */
function drawQuestion(side: Element, { question }: StepFrame): void {
  if (!question) return;
  const box = add(side, "div", "braid-ask");
  add(box, "b", "", "Predict, then press. ");
  box.append(question.text);
  const row = add(box, "div");
  const said = add(box, "div");
  said.setAttribute("aria-live", "polite");
  question.options.forEach((option, k) => {
    const button = pressed(row, option, () => {
      const right = k === question.answer;
      button.className = right ? "right" : "wrong";
      const other = right ? "Right" : `No, ${question.options[question.answer]}`;
      said.textContent = `${other}: ${question.reply}`;
    });
  });
}

/** A table; a cell has its text, the text that it replaces, and whether it is new or gone. */
function drawTable(parent: Element, { table }: StepFrame): void {
  if (!table.length) return;
  const body = add(add(parent, "div", "braid-facts"), "table", "braid-table");
  table.forEach((cells, k) => {
    const row = add(body, "tr");
    for (const [text = "", was = "", change = ""] of cells) {
      const node = add(row, k ? "td" : "th");
      if (was) add(node, "s", "", was).after(" ");
      add(node, change === "gone" ? "s" : change === "new" ? "b" : "span", "", text);
    }
  });
}

function drawSide(box: Element, frame: StepFrame, algorithm: StepAlgorithm): HTMLElement {
  const side = add(box, "aside", "braid-side");
  drawListing(side, frame, algorithm);
  const now = add(side, "div", "braid-say");
  now.setAttribute("aria-live", "polite");
  add(now, "b", "", frame.text);
  const where = frame.nodes.find(({ is_active }) => is_active)?.name;
  const names = frame.matches.map((row) => `(${row.join(" ")})`).join(", ");
  if (names) add(now, "div", "", `result ${names}: found once${where ? `, at ${where}` : ""}`);
  drawQuestion(side, frame);
  return side;
}

const watched = new WeakMap<HTMLElement, ResizeObserver>();

/** Draws a step, and returns where more can stand at its side. */
export function draw(
  box: HTMLElement,
  frame: StepFrame,
  algorithm: StepAlgorithm,
  glide: number,
): HTMLElement {
  const was = spots(box);
  watched.get(box)?.disconnect();
  box.replaceChildren();
  const head = add(box, "header");
  add(head, "b", "", frame.title);
  add(head, "span", "", frame.note);
  if (frame.results) add(head, "span", "", frame.results);
  const stage = add(box, "div", "braid-stage");
  drawOld(stage, frame);
  drawRow(stage, "parts", frame.parts);
  if (frame.nodes.length) {
    const places = drawPlaces(stage, frame);
    const paint = () => drawOverlay(places, frame);
    paint();
    const sizes = new ResizeObserver(paint);
    sizes.observe(places);
    watched.set(box, sizes);
  }
  drawTable(stage, frame);
  const side = drawSide(box, frame, algorithm);
  if (glide) glideFrom(box, was, glide);
  return side;
}
