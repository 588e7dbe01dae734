// A canvas that is painted anew when its size or the theme changes, and says what is under the
// pointer.
import type { Palette } from "../frames.ts";
import { add, still } from "./dom.ts";
import { EDGE, hit, Painter, type Target } from "./painter.ts";

/** Milliseconds that things take to where they belong. */
const GLIDE = 600;

/** Of a glide that began then, the share that is over. */
export const progress = (began: number, now: number): number =>
  Math.min(1, Math.max(0, (now - began) / GLIDE));

/** What is painted: how tall it gets at a width, and the picture at a share of a glide. */
export interface Scene {
  tall(width: number): number;
  paint(painter: Painter, width: number, time: number): void;
}

/** A point of the canvas, in the painter's pixels. */
export interface Pointer {
  x: number;
  y: number;
  width: number;
}

export class Canvas {
  readonly element: HTMLCanvasElement;
  private readonly scene: Scene;
  private readonly palette: Palette;
  private readonly tip: HTMLElement;
  private readonly resize: ResizeObserver;
  private readonly theme: MutationObserver;
  private readonly scheme = matchMedia("(prefers-color-scheme: dark)");
  private targets: Target[] = [];
  private timer = 0;

  constructor(box: HTMLElement, palette: Palette, scene: Scene) {
    this.scene = scene;
    this.palette = palette;
    const frame = add(box, "div", "braid-canvas");
    this.element = add(frame, "canvas");
    this.tip = add(frame, "div", "braid-tip");
    this.element.addEventListener("pointermove", (event) => this.tell(event));
    this.element.addEventListener("pointerleave", () => this.tell(undefined));
    this.element.addEventListener("click", (event) => this.name(event));
    this.resize = new ResizeObserver(this.again);
    this.theme = new MutationObserver(this.soon);
    this.resize.observe(frame);
    const attributeFilter = ["data-jp-theme-light", "data-jp-theme-name", "class"];
    this.theme.observe(document.body, { attributes: true, attributeFilter });
    this.scheme.addEventListener("change", this.soon);
  }

  close(): void {
    cancelAnimationFrame(this.timer);
    this.resize.disconnect();
    this.theme.disconnect();
    this.scheme.removeEventListener("change", this.soon);
  }

  /** Paints; with ``glide`` things move to where they belong. */
  paint(glide = false): void {
    cancelAnimationFrame(this.timer);
    if (!glide || still()) {
      this.draw(1);
      return;
    }
    const began = performance.now();
    const step = (now: number) => {
      const time = progress(began, now);
      this.draw(time);
      if (time < 1) this.timer = requestAnimationFrame(step);
    };
    step(began);
  }

  at(event: MouseEvent): Pointer {
    const { left, top } = this.element.getBoundingClientRect();
    return { x: event.clientX - left - EDGE, y: event.clientY - top, width: this.width() };
  }

  private readonly again = (): void => this.paint();

  /** Paints once the page has its new style: while it changes, a canvas may have no width. */
  private readonly soon = (): void => {
    cancelAnimationFrame(this.timer);
    this.timer = requestAnimationFrame(this.again);
  };

  private width(): number {
    return Math.max(280, this.element.clientWidth) - 2 * EDGE;
  }

  private draw(time: number): void {
    const context = this.element.getContext("2d");
    // Where it is not seen yet, the observer of its size paints it once it has one.
    if (!this.element.clientWidth || !context) return;
    const width = this.width();
    const tall = this.scene.tall(width);
    const ratio = window.devicePixelRatio || 1;
    this.element.width = Math.round((width + 2 * EDGE) * ratio);
    this.element.height = Math.round(tall * ratio);
    this.element.style.height = `${tall}px`;
    context.setTransform(ratio, 0, 0, ratio, EDGE * ratio, 0);
    const painter = new Painter(context, this.palette, getComputedStyle(this.element));
    this.scene.paint(painter, width, time);
    this.targets = painter.targets;
  }

  /** Tells who listens what was clicked. */
  private name(event: MouseEvent): void {
    const { x, y } = this.at(event);
    const detail = hit(this.targets, x, y)?.text;
    if (detail) this.element.dispatchEvent(new CustomEvent("named", { detail, bubbles: true }));
  }

  /** Says what is under the pointer. */
  private tell(event: MouseEvent | undefined): void {
    const found = event && hit(this.targets, this.at(event).x, this.at(event).y);
    this.tip.style.display = found ? "block" : "none";
    if (!event || !found) return;
    this.tip.textContent = found.text;
    const { x, y, width } = this.at(event);
    this.tip.style.left = `${Math.max(0, Math.min(x + 12, width - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${y + 16}px`;
  }
}
