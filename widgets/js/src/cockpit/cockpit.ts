// One view for every run: header, map, inspector, time line and drawer.
import type { BatchFrame, CockpitPage } from "../../frames.ts";
import { add, still } from "../base/dom.ts";
import { hit, watchLooks } from "../base/pen.ts";
import { Theme } from "../base/theme.ts";
import { type Ask, Drawer } from "./drawer.ts";
import { Header, isLive } from "./header.ts";
import { Inspector, type Place } from "./inspector.ts";
import { MapPane } from "./maps.ts";
import { extend, hashOf, type More, momentOf, openingOf, positionOf, scaled } from "./page.ts";
import type { Touched } from "./touches.ts";
import { Tracks } from "./tracks.ts";

/** Milliseconds that a batch is shown, and one in which something moves. */
const [QUICK, SLOW] = [520, 1400];
/** Batches before its largest decision at which a recording begins to play. */
const BEFORE = 3;

export interface Options {
  /** Asks what another placement would do; without it nobody is offered to. */
  ask?: Ask;
  /** Asks about a host, a query or blocks. */
  inspect?: (place: Place) => void;
  /** Asks for a change of the active run. */
  act?: (touched: Touched) => void;
  /** Whether a recording plays from its largest decision on; else it opens at its end. */
  plays?: boolean;
  /** Whether the document is only this cockpit, so that its address names the moment. */
  alone?: boolean;
}

export class Cockpit {
  readonly inspector: Inspector;
  private readonly root: HTMLElement;
  private readonly header: Header;
  private readonly pane: HTMLElement;
  private readonly tip: HTMLElement;
  private readonly map: MapPane;
  private readonly theme: Theme;
  private readonly drawer: Drawer;
  private readonly play: HTMLButtonElement;
  private readonly where: HTMLElement;
  private readonly why: HTMLElement;
  private readonly now: HTMLButtonElement;
  private readonly tracks: Tracks;
  private readonly forget: () => void;
  private readonly options: Options;
  private page: CockpitPage;
  private position: number;
  private selected = "";
  private time = 1;
  private timer = 0;
  private playing = false;
  private last = 0;
  private shown: BatchFrame | undefined;

  constructor(root: HTMLElement, page: CockpitPage, options: Options = {}) {
    this.root = root;
    this.options = options;
    this.page = scaled({ ...page });
    this.position = page.frames.length - 1;
    root.classList.add("braid", "braid-cockpit");
    root.dataset.lmSuppressShortcuts = "true";
    root.tabIndex = 0;
    const theme = new Theme(root);
    this.theme = theme;
    const shell = add(root, "div", "braid-shell");
    this.header = new Header(add(shell, "header", "braid-head"));
    const here = () => this.frame?.batch ?? 0;
    const seek = (batch: number) => this.go(positionOf(this.page.frames, batch));
    const drawer = add(shell, "section", "braid-drawer");
    this.pane = add(shell, "section", "braid-map");
    this.pane.tabIndex = 0;
    this.map = new MapPane(this.pane, theme);
    const { ask, act, inspect } = options;
    this.inspector = new Inspector(add(shell, "aside", "braid-side"), here, inspect, act);
    const bar = add(shell, "section", "braid-controls");
    this.play = button(bar, "▶ Play", "", "braid-go");
    button(bar, "◀", "back").addEventListener("click", () => this.step(-1));
    button(bar, "▶", "forward").addEventListener("click", () => this.step(1));
    this.where = add(bar, "span", "braid-where");
    this.why = add(bar, "div", "braid-why");
    this.why.setAttribute("aria-live", "polite");
    this.now = button(bar, "Back to now");
    const measure = (name: string) => this.tracks.choose(name);
    this.drawer = new Drawer(drawer, { here, seek, measure, ask, act });
    this.addButtons(bar);
    const lines = add(shell, "section", "braid-lines");
    this.tracks = new Tracks(lines, theme, seek);
    this.tip = add(root, "div", "braid-tip");
    this.forget = watchLooks(this.pane, theme, () => this.paint());
    this.listen();
    this.refresh();
    this.open();
  }

  /** Puts what came since to the page; who looks at an earlier batch stays there. */
  more(more: More): void {
    const follows = this.position >= this.page.frames.length - 1 && !this.playing;
    const batch = this.frame?.batch ?? 0;
    this.page = extend(this.page, more);
    const { frames } = this.page;
    this.position = follows ? frames.length - 1 : positionOf(frames, batch);
    if (follows && this.frame?.batch !== batch && !still()) this.glide();
    this.refresh();
  }

  /** Shows another run. */
  load(page: CockpitPage): void {
    this.stop();
    this.page = scaled({ ...page });
    this.position = page.frames.length - 1;
    this.refresh();
  }

  /** What came of a change of the run. */
  touched(text: string): void {
    this.inspector.touched(text);
    this.drawer.touched(text);
  }

  /** Nobody says any more what is new. */
  lost(): void {
    this.page = { ...this.page, state: "not connected" };
    this.refresh();
  }

  close(): void {
    this.stop();
    this.forget();
    this.header.close();
    this.tracks.close();
  }

  private get frame(): BatchFrame | undefined {
    return this.page.frames[this.position];
  }

  /** Goes to the moment in the address, or to where such a run opens. */
  private open(): void {
    const moment = this.options.alone ? momentOf(location.hash) : undefined;
    if (moment) {
      this.selected = moment.selected;
      this.toggle("drawer", moment.drawer);
      this.go(positionOf(this.page.frames, moment.batch));
    } else if (this.options.plays && !isLive(this.page) && this.page.frames.length > 1) {
      const opening = openingOf(this.page);
      this.go(still() ? opening : Math.max(0, opening - BEFORE));
      if (!still()) this.start();
    }
  }

  private addButtons(bar: HTMLElement): void {
    const quiet = add(bar, "span", "braid-quiet");
    const what = this.options.ask ? "Controls, what if…" : "Decisions";
    button(quiet, what).addEventListener("click", () => this.toggle("drawer"));
    const present = button(quiet, "Present");
    present.addEventListener("click", () => this.toggle("present"));
    const link = button(quiet, "Link to this moment");
    link.hidden = !this.options.alone;
    link.addEventListener("click", () => this.link());
    this.now.title = "show the newest batch, and follow the run";
    this.now.addEventListener("click", () => this.go(this.page.frames.length - 1));
  }

  private link(): void {
    const batch = this.frame?.batch ?? 0;
    const drawer = !this.drawer.element.hidden;
    location.hash = hashOf({ batch, selected: this.selected, drawer });
    navigator.clipboard?.writeText(location.href).catch(() => {});
  }

  private toggle(what: "drawer" | "present" | "inspect", on?: boolean): void {
    if (what === "drawer") {
      this.drawer.element.hidden = on === undefined ? !this.drawer.element.hidden : !on;
      this.root.classList.toggle("braid-open", !this.drawer.element.hidden);
    } else this.root.classList.toggle(`braid-${what}ing`, on);
    this.paint();
  }

  /** Opens the drawer at its first control, or closes it. */
  private toggleControls(): void {
    this.toggle("drawer");
    this.drawer.focusFirst();
  }

  private go(to: number): void {
    this.stop();
    this.position = Math.max(0, Math.min(this.page.frames.length - 1, to));
    this.draw();
  }

  private step(by: number): void {
    this.go(this.position + by);
    if (by > 0 && !still()) this.glide();
  }

  private start(): void {
    if (this.position >= this.page.frames.length - 1) this.position = 0;
    this.play.textContent = "❚❚ Pause";
    this.glide(true);
  }

  private stop(): void {
    cancelAnimationFrame(this.timer);
    this.timer = 0;
    this.playing = false;
    this.time = 1;
    this.play.textContent = "▶ Play";
  }

  /** Moves through the batch, and with ``on`` through those after it. */
  private glide(on = false): void {
    cancelAnimationFrame(this.timer);
    this.playing = on;
    [this.time, this.last] = [0, performance.now()];
    const tick = (now: number) => {
      const quick = this.frame?.state_map.grid?.is_moving ? SLOW : QUICK;
      this.time += (now - this.last) / (quick * this.drawer.slowness);
      this.last = now;
      if (this.time >= 1) {
        if (!on || this.position >= this.page.frames.length - 1) {
          this.stop();
          this.draw();
          return;
        }
        this.position += 1;
        this.time = 0;
      }
      this.draw();
      this.timer = requestAnimationFrame(tick);
    };
    this.timer = requestAnimationFrame(tick);
  }

  /** The parts that all batches share. */
  private refresh(): void {
    this.header.show(this.page);
    this.drawer.show(this.page);
    this.shown = undefined;
    if (!this.frame) this.tracks.show(this.page, 0);
    this.draw();
  }

  private draw(): void {
    const frame = this.frame;
    if (!frame) return;
    if (frame !== this.shown) this.tell(frame);
    this.shown = frame;
    this.paint();
  }

  private paint(): void {
    const frame = this.frame;
    if (!frame) return;
    const before = this.page.frames[this.position - 1]?.state_map;
    const flags = this.page.annotations.filter(({ batch }) => batch === frame.batch);
    this.theme.failed = new Set(flags.flatMap(({ lost }) => lost.map((host) => `host:${host}`)));
    this.theme.pulse = Math.abs(Math.cos(3 * Math.PI * this.time));
    this.map.show(frame.state_map, before, this.time, this.selected);
  }

  /** The parts that change from batch to batch, except for the picture. */
  private tell(frame: BatchFrame): void {
    this.header.showBatch(frame);
    this.map.answer(frame.state_map, frame.answers);
    this.inspector.show(this.page, frame, this.selected);
    this.drawer.mark(frame.batch);
    this.tracks.show(this.page, frame.batch, this.selected, frame.title);
    this.where.textContent = frame.title.split(" · ", 1)[0] ?? "";
    const taken = this.page.annotations.filter(({ batch }) => batch <= frame.batch);
    const flag = taken.findLast(({ short: label }) => label) ?? taken.at(-1);
    const [, head = "", rest = flag?.text ?? ""] =
      /^(batch [\d,]+): (.*)$/.exec(flag?.text ?? "") ?? [];
    this.why.replaceChildren();
    if (head) add(this.why, "b", "", `${head[0]?.toUpperCase()}${head.slice(1)}. `);
    this.why.append(rest ? reasonOf(rest) : "No decision yet.");
    this.why.title = flag?.text ?? "";
    this.now.hidden = !isLive(this.page) || this.position >= this.page.frames.length - 1;
    this.root.setAttribute("aria-label", `${frame.title}. ${this.page.note}`);
    this.pane.setAttribute("aria-label", [frame.title, this.chosen].filter(Boolean).join(". "));
    Object.assign(this.root.dataset, { seq: String(this.position), batch: String(frame.batch) });
  }

  /** The selection in words, as under the pointer. */
  private get chosen(): string {
    const all = this.map.targets.flatMap(({ targets }) => targets);
    return all.find(({ name }) => name === this.selected)?.text ?? "";
  }

  private select(name: string): void {
    this.selected = name;
    this.root.classList.toggle("braid-inspecting", name !== "");
    this.inspector.answer("");
    this.shown = undefined;
    this.draw();
  }

  /** To the next decision, or to the one before. */
  private flag(by: number): void {
    const batch = this.frame?.batch ?? 0;
    const batches = this.page.annotations.map((flag) => flag.batch);
    const to =
      by > 0 ? batches.find((each) => each > batch) : batches.findLast((each) => each < batch);
    if (to !== undefined) this.go(positionOf(this.page.frames, to));
  }

  /** Selects the next of what can be selected. */
  private walk(by: number): void {
    const names = [
      ...new Set(this.map.targets.flatMap(({ targets }) => targets.map((t) => t.name))),
    ];
    if (names.length) {
      const at = names.indexOf(this.selected);
      this.select(names[(at + by + names.length) % names.length] ?? "");
    }
  }

  private listen(): void {
    this.play.addEventListener("click", () => {
      if (this.timer) this.go(this.position);
      else this.start();
    });
    this.root.addEventListener("keydown", (event) => this.press(event));
    this.pane.addEventListener("click", (event) => {
      const found = this.under(event);
      if (found) this.select(found.name);
    });
    this.pane.addEventListener("pointermove", (event) => this.point(event));
    this.pane.addEventListener("pointerleave", () => {
      this.tip.style.display = "none";
    });
  }

  private under(event: MouseEvent) {
    for (const { element, targets } of this.map.targets) {
      const { left, top } = element.getBoundingClientRect();
      if (!element.contains(event.target as Node)) continue;
      return hit(targets, event.clientX - left, event.clientY - top);
    }
    return undefined;
  }

  /** Says what is under the pointer. */
  private point(event: MouseEvent): void {
    const found = this.under(event);
    this.tip.style.display = found ? "block" : "none";
    if (!found) return;
    this.tip.textContent = found.text;
    const { left, top, width } = this.root.getBoundingClientRect();
    const x = Math.min(event.clientX - left + 14, width - this.tip.offsetWidth - 6);
    Object.assign(this.tip.style, { left: `${x}px`, top: `${event.clientY - top + 16}px` });
  }

  private press(event: KeyboardEvent): void {
    const { target, key } = event;
    if (key === "Escape" && target !== this.root && this.drawer.element.contains(target as Node)) {
      this.toggle("drawer", false);
      this.pane.focus();
      return;
    }
    const typed =
      target instanceof HTMLElement && target.matches("select, input:not([type=range])");
    if (typed || event.ctrlKey || event.altKey || event.metaKey) return;
    const pressed = target instanceof HTMLButtonElement && (key === " " || key === "Enter");
    const onMap = target === this.pane;
    const does: Record<string, () => void> = {
      ArrowLeft: () => (onMap && this.selected ? this.walk(-1) : this.step(-1)),
      ArrowRight: () => (onMap && this.selected ? this.walk(1) : this.step(1)),
      Home: () => this.go(0),
      End: () => this.go(this.page.frames.length - 1),
      " ": () => this.play.click(),
      Enter: () => (onMap ? this.walk(1) : undefined),
      Escape: () => this.select(""),
      f: () => this.flag(1),
      F: () => this.flag(-1),
      c: () => this.toggleControls(),
      l: () => this.toggle("drawer"),
      i: () => this.toggle("inspect"),
      p: () => this.toggle("present"),
      "?": () => {
        this.toggle("drawer", true);
        this.drawer.toggleKeys();
      },
    };
    if (pressed || !does[key]) return;
    event.preventDefault();
    event.stopPropagation();
    does[key]();
  }
}

/** Letters of a reason that are always on screen. */
const REASON = 280;

/** The decisions of a batch and their reasons; those for which there is no room are counted. */
export function reasonOf(text: string): string {
  const parts = text.split("; ");
  let kept = parts.length;
  const short = () => parts.slice(0, kept).join("; ");
  while (kept > 1 && short().length > REASON) kept -= 1;
  const left = parts.length - kept;
  const whole = left ? `${short()}; and ${left} more` : text;
  return `${whole[0]?.toUpperCase()}${whole.slice(1)}.`;
}

function button(parent: Element, text: string, name = "", kind = ""): HTMLButtonElement {
  const made = add(parent, "button", kind, text);
  made.type = "button";
  if (name) {
    made.setAttribute("aria-label", name);
    made.title = name;
  }
  return made;
}
