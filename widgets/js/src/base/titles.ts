// Titles of a notebook's charts and of their panels: where it is narrow they are broken into lines.
import { broken } from "./narrow.ts";

/** Pixels below which a chart is narrow, and those of a letter of its title. */
const [NARROW, LETTER] = [640, 7.4];
/** Pixels of a line of a title, and above a chart where nothing else is said. */
const [LINE, TOP] = [18, 100];
/** Milliseconds in which a page may change before its titles are looked at. */
const SOON = 150;
/** Pixels of the titles of panels in a narrow chart, and of their letters. */
const [SMALL, SMALL_LETTER] = [12, 6.6];

interface Note {
  text?: string;
  x?: number;
  y?: number;
  xref?: string;
  yref?: string;
  textangle?: number;
  showarrow?: boolean;
  yanchor?: string;
  font?: { size?: number };
}

/** A title of a panel as it was given, and as a chart of its width has it. */
interface Fitted {
  given: string;
  made: string;
  size: number | null;
}

interface Plot extends HTMLElement {
  layout?: {
    title?: { text?: string };

    margin?: { t?: number };
    annotations?: Note[];
  };
  _fullLayout?: { _size?: { w: number } };
}

interface Library {
  relayout: (plot: Plot, update: object) => Promise<unknown>;
}

/** The title as it was given, and as a chart of that width has it. */
export function fitting(
  now: string,
  last: { given: string; made: string } | undefined,
  width: number,
) {
  const given = last && now === last.made ? last.given : now;
  return { given, made: width < NARROW ? broken(given, (width - 24) / LETTER) : given };
}

const linesOf = (title: string): number => title.split("<br>").length;

/**
 * The titles of panels that stand side by side, by their place among the notes.
 *
 * @param notes - of the chart, as they are seen
 * @param last - what this has returned before
 * @param inner - pixels of all panels together; 0 for a wide chart, which has its titles as given
 */
export function panelTitles(
  notes: Note[],
  last: Record<string, Fitted>,
  inner: number,
): Record<string, Fitted> {
  const found: Record<string, Fitted> = {};
  notes.forEach((note, k) => {
    const abreast = heads(notes).filter(({ y = 0 }) => Math.abs(y - (note.y ?? 0)) < 0.01);
    if (!abreast.includes(note) || abreast.length < 2) return;
    const [now, had] = [note.text ?? "", last[k]];
    const given = had && now === had.made ? had.given : now;
    const size = had && note.font?.size === SMALL ? had.size : (note.font?.size ?? null);
    const most = (inner / abreast.length - 6) / SMALL_LETTER;
    found[k] = { given, made: inner ? broken(given, most) : given, size };
  });
  return found;
}

const heads = (notes: Note[]): Note[] =>
  notes.filter(
    ({ text, xref, yref, textangle, showarrow, yanchor }) =>
      text &&
      xref === "paper" &&
      yref === "paper" &&
      yanchor === "bottom" &&
      !textangle &&
      !showarrow,
  );

function fit(plot: Plot, library: Library): void {
  const now = plot.layout?.title?.text;
  const width = plot.clientWidth;
  if (!now || !width) return;
  // On the element itself, which several panels of a notebook look at.
  const { given, made: had } = plot.dataset;
  const last = given !== undefined && had !== undefined ? { given, made: had } : undefined;
  const found = fitting(now, last, width);
  const narrow = width < NARROW;
  const notes = plot.layout?.annotations ?? [];
  const inner = narrow ? (plot._fullLayout?._size?.w ?? width) : 0;
  const panels = panelTitles(notes, JSON.parse(plot.dataset.panels ?? "{}"), inner);
  Object.assign(plot.dataset, found, { panels: JSON.stringify(panels) });
  const update: Record<string, unknown> = {};
  for (const [k, { made, size }] of Object.entries(panels)) {
    const [note, wanted] = [notes[Number(k)], narrow ? SMALL : size];
    if (note?.text !== made) update[`annotations[${k}].text`] = made;
    if ((note?.font?.size ?? null) !== wanted) update[`annotations[${k}].font.size`] = wanted;
  }
  const size = narrow ? 14 : 17;
  const same = found.made === now && Number(plot.dataset.size ?? 17) === size;
  if (same && !Object.keys(update).length) return;
  plot.dataset.size = String(size);
  plot.dataset.top ??= String(plot.layout?.margin?.t ?? TOP);
  const all = Object.values(panels);
  const lower = Math.max(0, ...all.map(({ made }) => linesOf(made)));
  const top = Number(plot.dataset.top);
  const own = linesOf(found.made);
  const needed =
    narrow && lower ? 24 + LINE * (own + lower) : top + LINE * (own - linesOf(found.given));
  void library.relayout(plot, {
    ...update,
    ...place(plot, narrow),
    "title.text": found.made,
    "title.font.size": size,
    "margin.t": Math.max(top, needed),
  });
}

/** Where the title begins: in a narrow chart at its top, so that all its lines are off what is below. */
function place(plot: Plot, narrow: boolean): object {
  const title = (plot.layout?.title ?? {}) as { y?: number; yanchor?: string };
  plot.dataset.place ??= JSON.stringify([title.y ?? null, title.yanchor ?? null]);
  const [y, anchor] = narrow ? [1, "top"] : JSON.parse(plot.dataset.place);
  return { "title.y": y, "title.yanchor": anchor, "title.pad.t": narrow ? 12 : 0 };
}

/** Fits the titles of all charts, now and when the page changes; what it returns ends that. */
export function titles(): () => void {
  let waiting: ReturnType<typeof setTimeout> | undefined;
  const all = () => {
    waiting = undefined;
    const library = (globalThis as { Plotly?: Library }).Plotly;
    if (!library) return;
    for (const plot of document.querySelectorAll<Plot>(".jp-Notebook .js-plotly-plot")) {
      fit(plot, library);
    }
  };
  const soon = () => {
    waiting ??= setTimeout(all, SOON);
  };
  const changes = new MutationObserver(soon);
  changes.observe(document.body, { childList: true, subtree: true });
  window.addEventListener("resize", soon);
  soon();
  return () => {
    clearTimeout(waiting);
    changes.disconnect();
    window.removeEventListener("resize", soon);
  };
}
