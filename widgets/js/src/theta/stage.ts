// The stage: join matrix, hosts and time line of a run, painted on one canvas.
import { add, spoken, still } from "../base/dom.ts";
import { fingerprint } from "../base/format.ts";
import type { Palette, StageFrame } from "../frames.ts";
import { paintHosts } from "./hosts.ts";
import { paintMatrix } from "./matrix.ts";
import { EDGE, hit, Painter, type Target } from "./painter.ts";
import { paintLine } from "./timeline.ts";

/** Milliseconds that blocks in transit take to their new host. */
const GLIDE = 600;
const LINE = 250;

/** Where the parts lie, and how tall all is: side by side where there is room for it. */
export function layout(width: number) {
  const beside = width >= 620;
  const side = Math.floor(Math.min(beside ? (width - 24) / 2 : width, 520));
  const hosts = beside ? { x: side + 24, y: 0 } : { x: 0, y: side + 12 };
  const above = hosts.y + side;
  const line = { x: 0, y: above + 18, wide: width, tall: LINE };
  return { side, hosts, line, tall: above + LINE + 18 };
}

/** Of a glide that began then, the share that is over. */
export const progress = (began: number, now: number): number =>
  Math.min(1, Math.max(0, (now - began) / GLIDE));

export class Stage {
  private readonly root: HTMLElement;
  private readonly palette: Palette;
  private readonly title: HTMLElement;
  private readonly note: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly tip: HTMLElement;
  private readonly resize: ResizeObserver;
  private readonly theme: MutationObserver;
  private readonly scheme = matchMedia("(prefers-color-scheme: dark)");
  private frame: StageFrame | undefined;
  private targets: Target[] = [];
  private timer = 0;

  /** ``root`` carries what the picture says; it is painted in ``box``, which is in it. */
  constructor(root: HTMLElement, box: HTMLElement, palette: Palette) {
    this.root = root;
    this.palette = palette;
    root.classList.add("braid");
    root.setAttribute("role", "img");
    this.title = add(box, "div", "braid-title");
    this.note = add(box, "div", "braid-note");
    this.canvas = add(box, "canvas");
    this.tip = add(box, "div", "braid-tip");
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.canvas.addEventListener("mouseleave", () => this.tell(undefined));
    this.resize = new ResizeObserver(this.again);
    this.theme = new MutationObserver(this.again);
    this.watch();
  }

  show(frame: StageFrame, seq: number): void {
    cancelAnimationFrame(this.timer);
    this.frame = frame;
    this.title.textContent = frame.title;
    this.note.textContent = frame.note;
    this.root.setAttribute("aria-label", spoken(frame));
    if (frame.matrix.chips.rows.length && !still()) this.glide(frame, seq);
    else this.finish(frame, seq);
  }

  close(): void {
    cancelAnimationFrame(this.timer);
    this.resize.disconnect();
    this.theme.disconnect();
    this.scheme.removeEventListener("change", this.again);
  }

  private glide(frame: StageFrame, seq: number): void {
    const began = performance.now();
    const step = (now: number) => {
      const time = progress(began, now);
      if (time >= 1) return this.finish(frame, seq);
      this.paint(frame, time);
      this.timer = requestAnimationFrame(step);
    };
    this.paint(frame, 0);
    this.timer = requestAnimationFrame(step);
  }

  private finish(frame: StageFrame, seq: number): void {
    this.paint(frame, 1);
    this.root.dataset.hash = fingerprint(JSON.stringify(frame));
    this.root.dataset.seq = String(seq);
  }

  private readonly again = (): void => {
    if (this.frame) this.paint(this.frame, 1);
  };

  /** Paints anew when the size or the theme changes. */
  private watch(): void {
    this.resize.observe(this.root);
    const attributeFilter = ["data-jp-theme-light", "data-jp-theme-name", "class"];
    this.theme.observe(document.body, { attributes: true, attributeFilter });
    this.scheme.addEventListener("change", this.again);
  }

  private paint(frame: StageFrame, time: number): void {
    const context = this.canvas.getContext("2d");
    // Where it is not in the page yet, the observer of its size paints it once it has one.
    if (!this.root.isConnected || !context) return;
    const width = Math.max(280, this.canvas.clientWidth) - 2 * EDGE;
    const { side, hosts, line, tall } = layout(width);
    this.clear(context, width, tall);
    const painter = new Painter(context, this.palette, getComputedStyle(this.root));
    paintMatrix(painter, frame.matrix, { x: 0, y: 0, size: side }, time);
    paintHosts(painter, frame.grid, hosts.x, hosts.y, side);
    paintLine(painter, frame.line, line);
    this.targets = painter.targets;
  }

  private clear(context: CanvasRenderingContext2D, width: number, tall: number): void {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round((width + 2 * EDGE) * ratio);
    this.canvas.height = Math.round(tall * ratio);
    this.canvas.style.height = `${tall}px`;
    context.setTransform(ratio, 0, 0, ratio, EDGE * ratio, 0);
  }

  /** Says what is under the pointer. */
  private point(event: MouseEvent): void {
    const { left, top, width } = this.canvas.getBoundingClientRect();
    const x = event.clientX - left - EDGE;
    const y = event.clientY - top;
    this.tell(hit(this.targets, x, y));
    this.tip.style.left = `${Math.max(0, Math.min(x + 12, width - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${this.canvas.offsetTop + y + 16}px`;
  }

  private tell(target: Target | undefined): void {
    this.tip.style.display = target ? "block" : "none";
    this.tip.textContent = target?.text ?? "";
  }
}
