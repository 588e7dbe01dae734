// A chart for a narrow window: panels one below another, the legend below them, the title broken
// into lines.

interface Axis {
  domain?: [number, number];
  title?: { text?: string };
  showticklabels?: boolean;
  overlaying?: string;
  scaleanchor?: string;
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

/** What of plotly's layout is looked at. */
export interface Layout {
  title?: { text?: string; [name: string]: unknown };
  height?: number;
  annotations?: Note[];
  coloraxis?: unknown;
  margin?: unknown;
  legend?: unknown;
  xaxis?: unknown;
  [name: string]: unknown;
}

/** What of a plotly trace is looked at. */
export interface Trace {
  type?: string;
  name?: string;
  xaxis?: string;
  yaxis?: string;
  showlegend?: boolean;
  showscale?: boolean;
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
/** Pixels of a letter of a title, and of a legend. */
const LETTER = 7.4;

/** The layout for so many pixels; the one given stays as it is. */
export function narrow(layout: Layout, traces: Trace[], width: number): Layout {
  const made = structuredClone(layout);
  const panels = panelsOf(made, traces);
  const square = panels.some(({ y }) => y.scaleanchor);
  const tall = square ? width - 80 : panels.length > 1 ? PANEL : 290;
  const high = panels.length * tall + (panels.length - 1) * GAP;
  if (panels.length > 1) stack(made, panels, tall / high, GAP / high);
  const title = broken(made.title?.text ?? "", (width - 24) / LETTER);
  const lines = title.split("<br>").length;
  const margin = { l: 62, r: scaled(made, traces) ? 76 : 14, t: 34 + LINE * lines, b: 0 };
  if (panels.length > 1) margin.t += LINE;
  margin.b = 44 + LINE * (legendLines(traces, width) + lowest(panels));
  made.title = {
    ...made.title,
    text: title,
    font: { size: 14 },
    y: 1,
    yanchor: "top",
    yref: "container",
    pad: { t: 12 },
  };
  made.margin = margin;
  made.legend = { orientation: "h", x: 0, y: 0, yref: "container", yanchor: "bottom" };
  made.height = high + margin.t + margin.b;
  return made;
}

/** A text in lines of at most so many letters; what stands in tags is not counted. */
export function broken(text: string, most: number): string {
  return text
    .split(/<br\s*\/?>/)
    .map((line) => {
      const lines: string[] = [];
      for (const word of line.split(" ")) {
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

/** The panels of a chart as they are read: row by row. Axes that lie over others have none. */
function panelsOf(layout: Layout, traces: Trace[]): Panel[] {
  const found = new Map<string, Panel>();
  for (const { xaxis = "x", yaxis = "y" } of traces) {
    const [x, y] = [axisOf(layout, xaxis), axisOf(layout, yaxis)];
    if (y.overlaying) continue;
    const at: Panel = { x, y, wide: x.domain ?? [0, 1], tall: y.domain ?? [0, 1] };
    found.set(`${xaxis}${yaxis}`, at);
  }
  return [...found.values()].sort(
    (a, b) => Math.round(100 * (b.tall[1] - a.tall[1])) || a.wide[0] - b.wide[0],
  );
}

function axisOf(layout: Layout, name: string): Axis {
  const key = `${name[0]}axis${name.slice(1)}`;
  layout[key] ??= {};
  return layout[key] as Axis;
}

function stack(layout: Layout, panels: Panel[], tall: number, gap: number): void {
  const notes = layout.annotations ?? [];
  const titles = new Set<Note>();
  const added = panels.map((panel, k): Note => {
    const top = 1 - k * (tall + gap);
    const mine = titlesOf(notes, panel);
    for (const note of mine) titles.add(note);
    const text = mine.map((note) => note.text).join(" · ");
    const spot = { xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom" };
    return { ...spot, text, x: 0, y: top, showarrow: false, font: { size: 13 } };
  });
  const shared = panels.map(({ x, y, wide, tall: at }) => ({
    x: x.title?.text ?? named(panels, (p) => near(p.wide, wide) && p.x.title?.text),
    y: y.title?.text ?? named(panels, (p) => near(p.tall, at) && p.y.title?.text),
  }));
  panels.forEach(({ x, y }, k) => {
    const top = 1 - k * (tall + gap);
    x.domain = [0, 1];
    y.domain = [Math.max(0, top - tall), top];
    x.showticklabels = y.showticklabels = true;
    x.title = { ...x.title, text: shared[k]?.x || "" };
    y.title = { ...y.title, text: shared[k]?.y || "" };
  });
  const kept = notes.filter((note) => !titles.has(note));
  layout.annotations = [...kept, ...added.filter(({ text }) => text)];
}

/** The notes that stand above a panel, or beside its row. */
function titlesOf(notes: Note[], { wide, tall }: Panel): Note[] {
  const paper = notes.filter(({ xref, yref }) => xref === "paper" && yref === "paper");
  const middle = (wide[0] + wide[1]) / 2;
  const above = paper
    .filter(({ x = 0, y = 0, textangle }) => {
      return !textangle && Math.abs(x - middle) < 0.02 && y >= tall[1] - 0.01;
    })
    .sort((a, b) => (a.y ?? 0) - (b.y ?? 0));
  const beside = paper.filter(({ y = 0, textangle }) => {
    return textangle && y >= tall[0] && y <= tall[1];
  });
  return [...above.slice(0, 1), ...beside.slice(0, 1)];
}

const near = (a: [number, number], b: [number, number]): boolean =>
  Math.abs(a[0] - b[0]) < 0.01 && Math.abs(a[1] - b[1]) < 0.01;

function named(panels: Panel[], of: (panel: Panel) => string | undefined | false): string {
  for (const panel of panels) {
    const text = of(panel);
    if (text) return text;
  }
  return "";
}

/** Whether a bar of colours stands on the right. */
const scaled = (layout: Layout, traces: Trace[]): boolean =>
  layout.coloraxis !== undefined ||
  traces.some(({ type, showscale }) => type === "heatmap" && showscale !== false);

/** Lines that the title of the lowest axis takes, beside its first. */
function lowest(panels: Panel[]): number {
  return 1.2 + (panels.at(-1)?.x.title?.text ?? "").split("<br>").length - 1;
}

function legendLines(traces: Trace[], width: number): number {
  const names = traces.filter(({ name, showlegend }) => name && showlegend !== false);
  const each = new Set(names.map(({ name }) => name ?? ""));
  const longest = Math.max(0, ...[...each].map((name) => name.length));
  const columns = Math.max(1, Math.floor((width - 20) / (46 + LETTER * longest)));
  return each.size > 1 || names.some(({ showlegend }) => showlegend)
    ? Math.ceil(each.size / columns)
    : 0;
}
