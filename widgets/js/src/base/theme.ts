// The colors of the cockpit, as the style sheet has them, read once a theme.

/** Steps of the ramp from no load to the greatest. */
const STEPS = 64;

export type Rgb = [number, number, number];

/** The channels of "rgb(1, 2, 3)". */
export function channels(colour: string): Rgb {
  const [r = 0, g = 0, b = 0] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  return [r, g, b];
}

/** A color between two, at a share of the way. */
export const blend = (from: Rgb, to: Rgb, share: number): Colour =>
  `rgb(${from.map((value, k) => Math.round(value + ((to[k] ?? 0) - value) * share)).join(", ")})`;

export type Shade =
  | "bg"
  | "panel"
  | "ink"
  | "muted"
  | "faint"
  | "rule"
  | "accent"
  | "good"
  | "near"
  | "bad"
  | "phase-source"
  | "phase-planning"
  | "phase-transfer"
  | "phase-kernels"
  | "phase-commit"
  | "ramp0"
  | "ramp1"
  | `stream${number}`;

/** A color by its name in the style sheet, or by its channels. */
export type Colour = Shade | `rgb(${string})`;

/** The color of a stream; there are six, then they begin again. */
export const hue = (stream: number): Shade => `stream${stream % 6}`;

export class Theme {
  /** What can be selected and has failed in the batch, and how visible its outline is. */
  failed = new Set<string>();
  pulse = 1;
  private readonly probe: HTMLElement;
  private colours = new Map<string, string>();
  private loads: Colour[] = [];

  constructor(root: HTMLElement) {
    this.probe = document.createElement("i");
    this.probe.hidden = true;
    root.append(this.probe);
  }

  /** Reads all colors anew, as after a change of the theme. */
  forget(): void {
    this.colours.clear();
    this.loads = [];
  }

  /** A color as a canvas takes it. */
  shade(name: Colour): string {
    const known = name.startsWith("rgb(") ? name : this.colours.get(name);
    if (known !== undefined) return known;
    this.probe.style.color = `var(--ck-${name})`;
    const read = getComputedStyle(this.probe).color;
    this.colours.set(name, read);
    return read;
  }

  /** The color of a load, as a share of the greatest of the run. */
  load(share: number): Colour {
    if (!this.loads.length) {
      const [low, high] = [channels(this.shade("ramp0")), channels(this.shade("ramp1"))];
      this.loads = Array.from({ length: STEPS + 1 }, (_, k) => blend(low, high, k / STEPS));
    }
    return this.loads[Math.round(STEPS * Math.max(0, Math.min(1, share)))] ?? "ramp0";
  }
}

/** Calls back when a box gets another size, or the page another theme; what it returns ends that. */
export function watchLooks(box: Element, theme: Theme, changed: () => void): () => void {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const again = () => {
    theme.forget();
    requestAnimationFrame(changed); // once the page has its new style
  };
  const resize = new ResizeObserver(changed);
  const themes = new MutationObserver(again);
  const attributeFilter = ["data-jp-theme-light", "data-jp-theme-name", "class"];
  resize.observe(box);
  themes.observe(document.body, { attributes: true, attributeFilter });
  scheme.addEventListener("change", again);
  return () => {
    resize.disconnect();
    themes.disconnect();
    scheme.removeEventListener("change", again);
  };
}
