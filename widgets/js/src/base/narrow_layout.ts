// A chart for a window that is too narrow for it: fewer panels side by side, the others below them,
// the legend below all, the title broken into lines.

interface Axis {
  domain?: [number, number];
  title?: { text?: string };
  showticklabels?: boolean;
  tickangle?: number;
}

interface Note {
  text?: string;
  x?: number;
  y?: number;
  xref?: string;
  yref?: string;
  textangle?: number;
  [name: string]: unknown;
}

/** The part of plotly's layout that is read. */
export interface Layout {
  title?: { text?: string; [name: string]: unknown };
  height?: number;
  meta?: unknown;
  annotations?: Note[];
  coloraxis?: unknown;
  margin?: unknown;
  legend?: unknown;
  xaxis?: unknown;
  [name: string]: unknown;
}

/** The part of a plotly trace that is read. */
export interface Trace {
  name?: string;
  x?: ArrayLike<unknown>;
  xaxis?: string;
  yaxis?: string;
  showlegend?: boolean;
}

interface Panel {
  x: Axis;
  y: Axis;
  wide: [number, number];
  tall: [number, number];
}

const PANEL = 210;
const GAP = 84;
const LINE = 18;
/** Pixels between panels side by side: the ticks and the title of an axis. */
const ASIDE = 76;
/** Pixels of a letter of a title and of a legend, and of one below an axis. */
const [LETTER, SMALL] = [7.4, 6.6];
/** Pixels of a letter of a title that is as it was given, and of what is left blank beside it. */
const [HEADING, MARGIN] = [7.8, 60];
/** Pixels below which a chart is narrow; and those of a panel beside others, at least, and where
 * there are fewer beside each other than were given. */
const [NARROW, BESIDE, ROOMY] = [640, 230, 300];

/** The number of panels side by side in a width in pixels; 0: as many as were given. */
export function columnsIn(layout: Layout, traces: Trace[], width: number): number {
  const panels = panelsOf(layout, traces);
  const tops = panels.map(({ tall }) => Math.round(100 * tall[1]));
  const abreast = Math.max(1, ...tops.map((top) => tops.filter((other) => other === top).length));
  if (width < NARROW) return 1;
  const roomy = Math.max(1, Math.min(abreast, Math.floor(width / ROOMY)));
  if (width < abreast * BESIDE) return roomy;
  const heads = panels.flatMap((panel) => titlesOf(layout.annotations ?? [], panel));
  const above = heads.filter(({ textangle }) => !textangle).map(({ text = "" }) => longest(text));
  if (abreast > 1 && Math.max(0, ...above) * HEADING > (width - MARGIN) / abreast) return roomy;
  return longest(layout.title?.text ?? "") * HEADING > width - MARGIN ? abreast : 0;
}

/** The layout's ``meta`` in charts of braid_widgets; ``Chart`` in Python has it too. */
const OURS = "braid";

/** Whether a chart is one of ours with something in it; the reader's own stay as they are. */
export const ours = (layout: Layout, traces: Trace[]): boolean =>
  layout.meta === OURS && traces.length > 0;

/** The layout for so many pixels and panels side by side; the one given stays as it is. There is a
 * trace at least. */
export function narrow(layout: Layout, traces: Trace[], width: number, columns = 1): Layout {
  const made = structuredClone(layout);
  for (const { xaxis = "x", yaxis = "y" } of traces) {
    made[keyOf(xaxis)] ??= {};
    made[keyOf(yaxis)] ??= {};
  }
  const panels = panelsOf(made, traces);
  const beside = Math.min(columns, panels.length);
  const tall = panels.length > 1 ? PANEL : 290;
  for (const { y } of panels) if (y.title?.text) y.title.text = broken(y.title.text, tall / LETTER);
  const turned = Math.max(1, ...panels.map(({ y }) => linesOf(y.title?.text ?? "")));
  const margin = { l: 44 + LINE * turned, r: made.coloraxis === undefined ? 14 : 76, t: 34, b: 0 };
  const inner = width - margin.l - margin.r;
  const wide = (inner - (beside - 1) * ASIDE) / beside;
  const rows = Math.ceil(panels.length / beside);
  const heads = panels.length > 1 ? headsOf(made, panels, (wide - 4) / LETTER) : [];
  const taller = Math.max(0, ...heads.map(linesOf)) * LINE;
  const slanted = slant(traces, wide);
  for (const { x } of panels) if (x.title?.text) x.title.text = broken(x.title.text, wide / LETTER);
  const told = Math.max(1, ...panels.map(({ x }) => linesOf(x.title?.text ?? "")));
  const gap = GAP + slanted + LINE * (told - 2) + Math.max(taller, LINE);
  if (slanted) for (const { x } of panels) x.tickangle = -45;
  const high = rows * tall + (rows - 1) * gap;
  if (heads.length) {
    const share = { wide: wide / inner, aside: ASIDE / inner, tall: tall / high, gap: gap / high };
    stack(made, panels, heads, beside, share);
  }
  // Plotly begins it at a twentieth of the width.
  const title = broken(made.title?.text ?? "", (0.94 * width - 12) / LETTER);
  margin.t += LINE * linesOf(title) + taller;
  const lowest = Math.max(1, linesOf(panels.at(-1)?.x.title?.text ?? ""));
  margin.b = 44 + slanted + LINE * (lowest + 0.2 + legendLines(traces, width));
  const spot = { y: 1, yanchor: "top", yref: "container", pad: { t: 12 } };
  made.title = { ...made.title, text: title, font: { size: 14 }, ...spot };
  made.margin = margin;
  made.legend = { orientation: "h", x: 0, y: 0, yref: "container", yanchor: "bottom" };
  made.height = high + margin.t + margin.b;
  return made;
}

/** Letters of a text's longest line. */
const longest = (text: string): number =>
  Math.max(...text.split(/<br\s*\/?>/).map((line) => line.replace(/<[^>]*>/g, "").length));

const linesOf = (text: string): number => (text ? text.split("<br>").length : 0);

/** A text in lines of at most so many letters; what stands in tags is not counted. */
export function broken(text: string, most: number): string {
  return text
    .split(/<br\s*\/?>/)
    .map((line) => {
      const lines: string[] = [];
      for (const word of line.split(/ (?![^<]*>)/)) {
        const last = lines.at(-1);
        const longer = `${last} ${word}`;
        if (last !== undefined && longer.replace(/<[^>]*>/g, "").length <= most)
          lines[lines.length - 1] = longer;
        else lines.push(word);
      }
      return lines.join("<br>");
    })
    .join("<br>");
}

/** The panels of a chart as they are read: row by row. */
export function panelsOf(layout: Layout, traces: Trace[]): Panel[] {
  const found = new Map<string, Panel>();
  for (const { xaxis = "x", yaxis = "y" } of traces) {
    const [x, y] = [axisOf(layout, xaxis), axisOf(layout, yaxis)];
    const at: Panel = { x, y, wide: x.domain ?? [0, 1], tall: y.domain ?? [0, 1] };
    found.set(`${xaxis}${yaxis}`, at);
  }
  return [...found.values()].sort(
    (a, b) => Math.round(100 * (b.tall[1] - a.tall[1])) || a.wide[0] - b.wide[0],
  );
}

/** An axis of a layout, which stays as it is; an empty one where the layout has none. */
const axisOf = (layout: Layout, name: string): Axis => (layout[keyOf(name)] ?? {}) as Axis;

const keyOf = (name: string): string => `${name[0]}axis${name.slice(1)}`;

/** The titles of panels, in lines; the notes that they stood in go. */
function headsOf(layout: Layout, panels: Panel[], most: number): string[] {
  const notes = layout.annotations ?? [];
  const mine = panels.map((panel) => titlesOf(notes, panel));
  const gone = new Set(mine.flat());
  layout.annotations = notes.filter((note) => !gone.has(note));
  return mine.map((titles) => broken(titles.map(({ text }) => text).join(" · "), most));
}

/** Parts of the whole: of a panel, and of what is between two. */
type Share = Record<"wide" | "aside" | "tall" | "gap", number>;

function stack(layout: Layout, panels: Panel[], heads: string[], beside: number, share: Share) {
  const shared = panels.map(({ x, y, wide, tall: at }) => ({
    x: x.title?.text ?? named(panels, (p) => near(p.wide, wide) && p.x.title?.text),
    y: y.title?.text ?? named(panels, (p) => near(p.tall, at) && p.y.title?.text),
  }));
  const spot = { xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom" };
  panels.forEach(({ x, y }, k) => {
    const top = 1 - Math.floor(k / beside) * (share.tall + share.gap);
    const left = (k % beside) * (share.wide + share.aside);
    x.domain = [left, Math.min(1, left + share.wide)];
    y.domain = [Math.max(0, top - share.tall), top];
    x.showticklabels = y.showticklabels = true;
    x.title = { ...x.title, text: shared[k]?.x || "" };
    y.title = { ...y.title, text: shared[k]?.y || "" };
    const text = heads[k] ?? "";
    const head = { ...spot, text, x: left, y: top, showarrow: false, font: { size: 13 } };
    if (text) layout.annotations?.push({ ...head, align: "left" });
  });
}

/** The additional height of slanted names below an axis; 0: they have room. */
function slant(traces: Trace[], wide: number): number {
  const names = new Set(traces.flatMap(({ x = [] }) => Array.from(x, nameOf)));
  names.delete("");
  const longest = Math.max(0, ...[...names].map((name) => name.length));
  return names.size * (longest + 1) * SMALL > wide ? Math.round(0.7 * SMALL * longest) : 0;
}

/** A name on an axis; nothing of a number or a time. */
const nameOf = (value: unknown): string =>
  typeof value === "string" && /[^-\d.,:TZ +]/.test(value) ? value : "";

/** The notes that stand above a panel, or beside its row. */
function titlesOf(notes: Note[], { wide, tall }: Panel): Note[] {
  const paper = notes.filter(({ xref, yref }) => xref === "paper" && yref === "paper");
  const middle = (wide[0] + wide[1]) / 2;
  const mine = paper.filter(({ x = 0, y = 0, textangle }) =>
    textangle ? y >= tall[0] && y <= tall[1] : Math.abs(x - middle) < 0.02 && y >= tall[1] - 0.01,
  );
  const above = mine.filter(({ textangle }) => !textangle).sort((a, b) => (a.y ?? 0) - (b.y ?? 0));
  return [...above.slice(0, 1), ...mine.filter(({ textangle }) => textangle).slice(0, 1)];
}

const near = (a: [number, number], b: [number, number]): boolean =>
  Math.abs(a[0] - b[0]) < 0.01 && Math.abs(a[1] - b[1]) < 0.01;

const named = (panels: Panel[], of: (panel: Panel) => string | undefined | false): string =>
  panels.map(of).find(Boolean) || "";

function legendLines(traces: Trace[], width: number): number {
  const names = traces.filter(({ name, showlegend }) => name && showlegend !== false);
  const each = new Set(names.map(({ name }) => name ?? ""));
  const longest = Math.max(0, ...[...each].map((name) => name.length));
  const columns = Math.max(1, Math.floor((width - 20) / (46 + LETTER * longest)));
  return each.size > 1 || names.some(({ showlegend }) => showlegend)
    ? Math.ceil(each.size / columns)
    : 0;
}
