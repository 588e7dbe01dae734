// Draws our charts of a document as wide as they are: where one is too narrow for its panels, some
// stand below the others. On pages, and in JupyterLab with a kernel and without.

import { columnsIn, type Layout, narrow, ours, type Trace } from "./narrow_layout.ts";
import { keepSelection } from "./selection.ts";

/** Milliseconds in which a document may change before its charts are looked at. */
const SOON = 150;

interface Plot extends HTMLElement {
  data: Trace[];
  layout: Layout;
}

interface Library {
  react: (plot: Plot, data: Trace[], layout: Layout) => Promise<unknown>;
}

/** A chart as it was given, and as it was drawn: what differs from that the reader has chosen. */
interface Known {
  given: Layout;
  drawn: Layout;
  /** The layout that plotly was given; it holds another once somebody else has drawn. */
  held: Layout;
  /** For so many pixels; 0: as it was given. */
  width: number;
}

const known = new WeakMap<Plot, Known>();

/** Draws a chart as its width asks for. */
function resizeChart(plot: Plot, library: Library): void {
  const width = plot.parentElement?.clientWidth ?? 0;
  if (!width || !plot.layout || !ours(plot.layout, plot.data)) return;
  let last = known.get(plot);
  if (last?.held !== plot.layout) {
    const given = structuredClone(plot.layout);
    last = { given, drawn: given, held: plot.layout, width: 0 };
    known.set(plot, last);
  }
  const columns = columnsIn(last.given, plot.data, width);
  const wanted = columns ? width : 0;
  if (wanted === last.width) return;
  last.width = wanted;
  redraw(plot, library, last, columns);
}

function redraw(plot: Plot, library: Library, last: Known, columns: number): void {
  const mine = keepSelection(last.given, last.drawn, plot.layout);
  const { width } = last;
  const layout = width ? narrow(mine, plot.data, width, columns) : structuredClone(mine);
  Object.assign(last, { given: mine, drawn: structuredClone(layout), held: layout });
  const height = `${layout.height ?? 450}px`;
  plot.style.height = height;
  // On a page plotly's element stands in one of its own, which has the height too.
  if (plot.classList.contains("plotly-graph-div") && plot.parentElement) {
    plot.parentElement.style.height = height;
  }
  void library.react(plot, plot.data, layout);
}

function all(): void {
  const library = (globalThis as { Plotly?: Library }).Plotly;
  if (!library) return;
  for (const plot of document.querySelectorAll<Plot>(".js-plotly-plot")) {
    if (plot.checkVisibility()) resizeChart(plot, library);
  }
}

/** Fits all charts of ours, now and whenever the document changes; once in a document is enough. */
export function fitting(): void {
  const page = document.documentElement;
  if (page.dataset.braidFits) return;
  page.dataset.braidFits = "yes";
  let waits = false;
  const now = () => {
    waits = false;
    all();
  };
  const soon = () => {
    if (!waits) setTimeout(now, SOON);
    waits = true;
  };
  new MutationObserver(soon).observe(document.body, { childList: true, subtree: true });
  window.addEventListener("resize", soon);
  all();
}
