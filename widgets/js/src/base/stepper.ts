// Draws one step of an algorithm: nodes in the place that the mapping gives them, rows in pills,
// what moves along an arc, results as lines, and the lines of the paper.
import type { StepAlgorithm, StepChip, StepFrame, StepNode } from "../../frames.ts";
import { add, pressed } from "./dom.ts";

type Point = [number, number];

/** The path of an arc, to one side of the straight way, and its point at a share of the way. */
export function arc([x1, y1]: Point, [x2, y2]: Point): { path: string; at(share: number): Point } {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const long = Math.max(1, Math.hypot(dx, dy));
  const bend = Math.min(90, 26 + long * 0.16) / long;
  const [cx, cy] = [(x1 + x2) / 2 - dy * bend, (y1 + y2) / 2 + Math.abs(dx) * bend];
  const path = `M ${x1} ${y1} Q ${cx} ${cy} ${x2} ${y2}`;
  const mix = (a: number, c: number, b: number, t: number) =>
    (1 - t) * (1 - t) * a + 2 * t * (1 - t) * c + t * t * b;
  return { path, at: (share) => [mix(x1, cx, x2, share), mix(y1, cy, y2, share)] };
}

function drawChip(parent: Element, chip: StepChip, kind = ""): HTMLElement {
  const { text, stream, outline = "", is_new } = chip;
  const node = add(parent, "span", `braid-chip ${outline} ${is_new ? "new" : ""} ${kind}`, text);
  const hue = stream === undefined ? "muted" : `stream${stream % 6}`;
  node.style.setProperty("--hue", `var(--ck-${hue})`);
  node.dataset.row = text.split(/[ *#ᵇᵖ]/u, 1)[0] ?? "";
  return node;
}

function drawRow(parent: Element, name: string, chips: StepChip[]): void {
  const row = add(parent, "div", "braid-row");
  if (name) add(row, "b", "", name);
  for (const chip of chips) drawChip(row, chip);
}

/** A node, in its place. */
function drawNode(parent: Element, node: StepNode, frame: StepFrame): void {
  const cell = add(parent, "div", `braid-cell${node.is_active ? " here" : ""}`);
  cell.style.gridArea = `${node.row + 1} / ${node.column + 1}`;
  cell.dataset.key = node.name;
  add(cell, "h4", "", node.name);
  for (const chips of node.stored) if (chips.length) drawRow(cell, "", chips);
  if (node.queued?.length) drawRow(cell, "waits", node.queued);
  for (const chip of cell.querySelectorAll<HTMLElement>(".braid-chip")) {
    Object.assign(chip.dataset, { key: `${node.name} ${chip.textContent}`, at: node.name });
    const isMet = node.is_active && frame.matches.flat().includes(chip.dataset.row ?? "");
    chip.classList.toggle("met", isMet);
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
  for (const node of frame.nodes) drawNode(places, node, frame);
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

/** What moves, on arcs from node to node, and the lines between the members of results. */
function drawOverlay(places: HTMLElement, frame: StepFrame, was: Spots): void {
  for (const node of places.querySelectorAll("svg, .flies")) node.remove();
  const { left, top, width, height } = places.getBoundingClientRect();
  const cells = [...places.querySelectorAll<HTMLElement>(".braid-cell")];
  if (!width) return;
  const svg = makeSvg(places, "svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const spot = (node: HTMLElement, down: number): Point => {
    const box = node.getBoundingClientRect();
    return [box.left - left + box.width / 2, box.top - top + box.height * down];
  };
  const shared = new Map<string, number>();
  for (const { what, source, target } of frame.moves) {
    const [from, to] = [cells[source ?? -1], cells[target ?? -1]];
    const way = `${source} ${target}`;
    const before = shared.get(way) ?? 0;
    shared.set(way, before + 1);
    const end: Point = to ? spot(to, from ? 0.92 : 0.1) : [width / 2, height + 10];
    const start: Point = from ? spot(from, 0.92) : [end[0] - 34, 0];
    const { path, at } = arc(start, end);
    if (!before) makeSvg(svg, "path", { d: path, class: "way" });
    const held = to && [...to.querySelectorAll(".new")].map((chip) => chip.textContent);
    if (held?.includes(what.text)) continue;
    const chip = drawChip(places, what, "flies");
    const [x, y] = at(Math.min(0.82, 0.5 + before * 0.16));
    chip.style.translate = `calc(${x}px - 50%) calc(${y}px - 50%)`;
    chip.dataset.key = `${what.text} > ${to?.dataset.key}`;
    if (from && !was.has(chip.dataset.key)) chip.dataset.from = from.dataset.key ?? "";
  }
  for (const group of frame.matches) {
    const met = [...places.querySelectorAll<HTMLElement>(".here .braid-chip, .flies")];
    const members = group.map((row) => met.find((chip) => chip.dataset.row === row));
    const points = members.flatMap((chip) => (chip ? [spot(chip, 0.5)] : [])).join(" ");
    makeSvg(svg, "polyline", { points, class: "found" });
  }
}

/** Lets everything move from where it was: rows that have arrived, from their arc. */
function glideFrom(box: HTMLElement, was: Spots, duration: number): void {
  for (const node of box.querySelectorAll<HTMLElement>("[data-key]")) {
    const { key = "", from = "", at = "" } = node.dataset;
    const old = was.get(key) ?? was.get(`${node.textContent} > ${at}`) ?? was.get(from);
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
  if (frame.nodes.length) add(head, "span", "", `${frame.results} results so far`);
  const stage = add(box, "div", "braid-stage");
  drawOld(stage, frame);
  if (frame.parts.length) drawRow(stage, "parts", frame.parts);
  if (frame.nodes.length) {
    const places = drawPlaces(stage, frame);
    const paint = () => drawOverlay(places, frame, was);
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
