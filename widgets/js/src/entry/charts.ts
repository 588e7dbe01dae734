// The charts of a page without a kernel: in a narrow window their panels stand below each other.
import { chosen } from "../base/chosen.ts";
import { broken, type Layout, narrow, type Trace } from "../base/narrow.ts";

/** Pixels below which a chart is narrow. */
const NARROW = 640;

interface Plot extends HTMLElement {
  data: Trace[];
  layout: Layout & { sliders?: unknown[] };
}

interface Library {
  react: (plot: Plot, data: Trace[], layout: Layout) => Promise<unknown>;
  relayout: (plot: Plot, update: object) => Promise<unknown>;
}

const given = new WeakMap<Plot, Layout>();
/** What was drawn last; what differs from it is what the reader has chosen. */
const drawn = new WeakMap<Plot, Layout>();
const fitted = new WeakMap<Plot, number>();

/** Draws a chart as its width asks for. */
function fit(plot: Plot, library: Library): void {
  if (!given.has(plot)) given.set(plot, structuredClone(plot.layout));
  const whole = given.get(plot) as Layout;
  const width = plot.parentElement?.clientWidth ?? NARROW;
  const wanted = width < NARROW ? width : 0;
  if (wanted === (fitted.get(plot) ?? 0)) return;
  fitted.set(plot, wanted);
  if (plot.layout.sliders?.length) {
    const title = whole.title?.text ?? "";
    const text = wanted ? broken(title, width / 9) : title;
    void library.relayout(plot, { "title.text": text, "title.font.size": wanted ? 14 : 17 });
  } else {
    const mine = chosen(whole, drawn.get(plot) ?? whole, plot.layout);
    const layout = wanted ? narrow(mine, plot.data, width) : structuredClone(mine);
    given.set(plot, mine);
    drawn.set(plot, structuredClone(layout));
    const height = `${layout.height ?? 450}px`;
    plot.style.height = height;
    if (plot.parentElement) plot.parentElement.style.height = height;
    void library.react(plot, plot.data, layout);
  }
}

function all(): void {
  const library = (globalThis as { Plotly?: Library }).Plotly;
  if (!library) return;
  for (const plot of document.querySelectorAll<Plot>(".js-plotly-plot")) fit(plot, library);
}

window.addEventListener("resize", all);
all();

export default { all };
