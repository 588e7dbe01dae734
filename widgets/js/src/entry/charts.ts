// Draws the figures of charts, each as large as the style sheet makes its place.

/** Milliseconds in which a document may change before its charts are looked for. */
const SOON = 150;
const PLOTLY = "application/vnd.plotly.v1+json";

interface Figure {
  data: { name?: string }[];
  layout: object;
}

interface Library {
  newPlot(place: Element, data: Figure["data"], layout: object, config: object): void;
  restyle(place: Element, change: { visible: boolean }, traces: number[]): void;
  Plots: { resize(place: Element): void };
}

/** The part of JupyterLab's extension for plotly that is used. */
interface Extension {
  rendererFactory: {
    createRenderer(options: object): { renderModel(model: object): Promise<void> };
  };
}

interface Page {
  Plotly?: Library;
  _JUPYTERLAB?: Record<string, { get(name: string): Promise<() => Extension> }>;
}

/** Returns plotly, which JupyterLab loads with the first figure; elsewhere the page has it. */
async function load(): Promise<Library | undefined> {
  const page = globalThis as Page;
  if (!page.Plotly) {
    const made = await page._JUPYTERLAB?.["jupyterlab-plotly"]?.get("./mimeExtension");
    const renderer = made?.().rendererFactory.createRenderer({ mimeType: PLOTLY });
    await renderer?.renderModel({ data: { [PLOTLY]: { data: [], layout: {} } } });
  }
  return page.Plotly;
}

/** Draws a chart where it is seen, and again where its places get another size. */
function show(chart: Element, plotly: Library): void {
  const figures = new Map<Element, Figure>();
  const drawn = new Set<Element>();
  const fit = new ResizeObserver((changes) => {
    for (const { target, contentRect } of changes) {
      const figure = figures.get(target);
      if (!figure || !contentRect.width) continue;
      if (drawn.has(target)) plotly.Plots.resize(target);
      else plotly.newPlot(target, figure.data, figure.layout, { displaylogo: false });
      drawn.add(target);
    }
  });
  for (const place of chart.querySelectorAll(".braid-plot")) {
    figures.set(place, JSON.parse(place.textContent ?? "") as Figure);
    place.replaceChildren();
    fit.observe(place);
  }
  for (const key of chart.querySelectorAll<HTMLElement>("[aria-pressed]")) {
    key.onclick = () => {
      const visible = key.ariaPressed !== "true";
      key.ariaPressed = `${visible}`;
      for (const place of drawn) {
        const names = figures.get(place)?.data.map(({ name }) => name) ?? [];
        const traces = [...names.keys()].filter((k) => names[k] === key.dataset.name);
        if (traces.length) plotly.restyle(place, { visible }, traces);
      }
    };
  }
}

/** Draws the charts that came since; without plotly it shows their numbers. */
function look(plotly?: Library): void {
  for (const chart of document.querySelectorAll<HTMLElement>(".braid-chart:not([data-drawn])")) {
    chart.dataset.drawn = "yes";
    const plain = chart.querySelector("noscript");
    if (plotly) show(chart, plotly);
    else if (plain) plain.outerHTML = plain.textContent ?? "";
  }
}

const page = document.documentElement;
if (!page.dataset.braidCharts) {
  page.dataset.braidCharts = "yes";
  const plotly = await load().catch(() => undefined);
  let waits = false;
  const now = () => {
    waits = false;
    look(plotly);
  };
  const soon = () => {
    if (!waits) setTimeout(now, SOON);
    waits = true;
  };
  new MutationObserver(soon).observe(document.body, { childList: true, subtree: true });
  now();
}

export default {};
