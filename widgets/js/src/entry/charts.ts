// Draws the figures of charts, each as large as the style sheet makes its place.

const PLOTLY = "application/vnd.plotly.v1+json";

/** A place for a figure; plotly keeps in it what it has drawn. */
interface Place extends Element {
  data?: { name?: string }[];
}

interface Library {
  newPlot(place: Place, data: object[], layout: object, config: object): void;
  restyle(place: Place, change: { visible: boolean }, traces: number[]): void;
  Plots: { resize(place: Place): void };
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
  const places = [...chart.querySelectorAll<Place>(".braid-plot")];
  for (const place of places) {
    const { data, layout } = JSON.parse(place.textContent ?? "");
    place.replaceChildren();
    const fit = () => {
      if (place.data) plotly.Plots.resize(place);
      else plotly.newPlot(place, data, layout, { displaylogo: false });
    };
    new ResizeObserver(() => place.clientWidth && fit()).observe(place);
  }
  for (const key of chart.querySelectorAll<HTMLElement>("[aria-pressed]")) {
    key.onclick = () => {
      const visible = key.ariaPressed !== "true";
      key.ariaPressed = `${visible}`;
      for (const place of places) {
        const names = place.data?.map(({ name }) => name) ?? [];
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
  new MutationObserver(() => look(plotly)).observe(document, { childList: true, subtree: true });
  look(plotly);
}

export default {};
