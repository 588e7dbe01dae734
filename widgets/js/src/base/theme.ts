// The colors of the cockpit, as the style sheet has them, read once a theme.

type Ground = "bg" | "panel" | "rule";
type Ink = "ink" | "muted" | "faint" | "accent";
type Tone = "good" | "near" | "bad";

export type Shade = Ground | Ink | Tone | `phase-${string}` | `stream${number}`;

/** A color by its name in the style sheet, or that of a load, in percent. */
export type Colour = Shade | `load${number}`;

/** The color of a stream; there are six, then they begin again. */
export const hue = (stream: number): Shade => `stream${stream % 6}`;

export class Theme {
  /** The selectable parts that have failed in the batch, and how visible its outline is. */
  failed = new Set<string>();
  pulse = 1;
  private readonly probe: HTMLElement;
  private readonly known = new Map<string, string>();

  constructor(root: HTMLElement) {
    this.probe = document.createElement("i");
    this.probe.hidden = true;
    root.append(this.probe);
  }

  /** Reads all colors anew, as after a change of the theme. */
  forget(): void {
    this.known.clear();
  }

  /** A color as a canvas takes it. */
  shade(name: Colour): string {
    const known = this.known.get(name);
    if (known !== undefined) return known;
    const load = `color-mix(in srgb, var(--ck-ramp1) ${name.slice(4)}%, var(--ck-ramp0))`;
    this.probe.style.color = name.startsWith("load") ? load : `var(--ck-${name})`;
    const read = getComputedStyle(this.probe).color;
    this.known.set(name, read);
    return read;
  }

  /** The color of a load, as a share of the greatest of the run. */
  load(share: number): Colour {
    return `load${Math.round(100 * Math.max(0, Math.min(1, share)))}`;
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
