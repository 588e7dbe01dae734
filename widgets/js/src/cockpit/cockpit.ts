// One view for every run: header, map, inspector, time line and drawer.
import type { BatchFrame, CockpitPage } from "../../frames.ts";
import { add, make, named, pressed, spoken, still } from "../base/dom.ts";
import { hit } from "../base/pen.ts";
import { Theme, watchLooks } from "../base/theme.ts";
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
  private readonly pane = make("section", "braid-map");
  private readonly map: MapPane;
  private readonly theme: Theme;
  private readonly drawer: Drawer;
  private readonly play: HTMLButtonElement;
  private readonly where = make("span", "braid-where");
  private readonly why = spoken(make("div", "braid-why"));
  private readonly now: HTMLButtonElement;
  private readonly tracks: Tracks;
  private readonly tip = make("div", "braid-tip");
  private readonly forget: () => void;
  private readonly options: Options;
  private page: CockpitPage;
  private position: number;
  private selected = "";
  private time = 1;
  private timer = 0;
  private playing = false;
  private shown: BatchFrame | undefined;

  constructor(root: HTMLElement, page: CockpitPage, options: Options = {}) {
    this.root = root;
    this.options = options;
    this.page = scaled({ ...page });
    this.position = page.frames.length - 1;
    root.classList.add("braid", "braid-cockpit");
    root.dataset.lmSuppressShortcuts = "true";
    root.tabIndex = 0;
    this.theme = new Theme(root);
    const shell = add(root, "div", "braid-shell");
    this.header = new Header(add(shell, "header", "braid-head"));
    const here = () => this.frame?.batch ?? 0;
    const seek = (batch: number) => this.seek(batch);
    const { ask, act, inspect } = options;
    const measure = (name: string) => this.tracks.choose(name);
    const drawer = add(shell, "section", "braid-drawer");
    this.drawer = new Drawer(drawer, { here, seek, measure, ask, act });
    shell.append(this.pane);
    this.pane.tabIndex = 0;
    this.map = new MapPane(this.pane, this.theme);
    this.inspector = new Inspector(add(shell, "aside", "braid-side"), here, inspect, act);
    const bar = add(shell, "section", "braid-controls");
    const playOrStop = () => (this.timer ? this.go(this.position) : this.start());
    this.play = pressed(bar, "▶ Play", playOrStop, "braid-go");
    const back = pressed(bar, "◀", () => this.step(-1));
    const forward = pressed(bar, "▶", () => this.step(1));
    named(back, "back");
    named(forward, "forward");
    bar.append(this.where, this.why);
    this.now = pressed(bar, "Back to now", () => this.go(this.page.frames.length - 1));
    this.now.title = "show the newest batch, and follow the run";
    this.addButtons(add(bar, "span", "braid-quiet"));
    this.tracks = new Tracks(add(shell, "section", "braid-lines"), this.theme, seek);
    root.append(this.tip);
    this.forget = watchLooks(this.pane, this.theme, () => this.paint());
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
      this.toggleDrawer(moment.drawer);
      this.seek(moment.batch);
    } else if (this.options.plays && !isLive(this.page) && this.page.frames.length > 1) {
      const opening = openingOf(this.page);
      this.go(still() ? opening : Math.max(0, opening - BEFORE));
      if (!still()) this.start();
    }
  }

  private addButtons(box: HTMLElement): void {
    const what = this.options.ask ? "Controls, what if…" : "Decisions";
    pressed(box, what, () => this.toggleDrawer());
    pressed(box, "Present", () => this.toggle("present"));
    pressed(box, "Link to this moment", () => this.link()).hidden = !this.options.alone;
  }

  private link(): void {
    const batch = this.frame?.batch ?? 0;
    const drawer = !this.drawer.element.hidden;
    location.hash = hashOf({ batch, selected: this.selected, drawer });
    navigator.clipboard?.writeText(location.href).catch(() => {});
  }

  private toggleDrawer(on = this.drawer.element.hidden === true): void {
    this.drawer.element.hidden = !on;
    this.root.classList.toggle("braid-open", on);
    this.paint();
  }

  private toggle(what: "present" | "inspect"): void {
    this.root.classList.toggle(`braid-${what}ing`);
    this.paint();
  }

  private seek(batch: number): void {
    this.go(positionOf(this.page.frames, batch));
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
    Object.assign(this, { timer: 0, playing: false, time: 1 });
    this.play.textContent = "▶ Play";
  }

  /** Moves through the batch, and with ``on`` through those after it. */
  private glide(on = false): void {
    cancelAnimationFrame(this.timer);
    this.playing = on;
    this.time = 0;
    let last = performance.now();
    const tick = (now: number) => {
      const quick = this.frame?.state_map.grid?.is_moving ? SLOW : QUICK;
      this.time += (now - last) / (quick * this.drawer.slowness);
      last = now;
      if (this.time >= 1) {
        if (!on || this.position >= this.page.frames.length - 1) {
          this.go(this.position);
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
    const { page, selected } = this;
    this.header.showBatch(frame);
    this.map.answer(frame.state_map, frame.answers);
    this.inspector.show(page, frame, selected);
    this.drawer.mark(frame.batch);
    this.tracks.show(page, frame.batch, selected, frame.title);
    this.where.textContent = frame.title.split(" · ", 1)[0] ?? "";
    this.tellWhy(frame);
    this.now.hidden = !isLive(page) || this.position >= page.frames.length - 1;
    this.root.setAttribute("aria-label", `${frame.title}. ${page.note}`);
    const chosen = this.targets.find(({ name }) => name === selected)?.text;
    this.pane.setAttribute("aria-label", [frame.title, chosen].filter(Boolean).join(". "));
    Object.assign(this.root.dataset, { seq: String(this.position), batch: String(frame.batch) });
  }

  /** The last decision that has a label, and its reason. */
  private tellWhy(frame: BatchFrame): void {
    const taken = this.page.annotations.filter(({ batch }) => batch <= frame.batch);
    const flag = taken.findLast(({ short: label }) => label) ?? taken.at(-1);
    const text = flag?.text ?? "";
    const [, head = "", rest = text] = /^(batch [\d,]+): (.*)$/.exec(text) ?? [];
    this.why.replaceChildren();
    if (head) add(this.why, "b", "", `${capital(head)}. `);
    this.why.append(rest ? reasonOf(rest) : "No decision yet.");
    this.why.title = text;
  }

  /** What can be selected. */
  private get targets() {
    return this.map.targets.flatMap(({ targets }) => targets);
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
    const here = this.frame?.batch ?? 0;
    const batches = this.page.annotations.map(({ batch }) => batch);
    const before = batches.findLast((batch) => batch < here);
    const to = by > 0 ? batches.find((batch) => batch > here) : before;
    if (to !== undefined) this.seek(to);
  }

  /** Selects the next of what can be selected. */
  private walk(by: number): void {
    const names = [...new Set(this.targets.map(({ name }) => name))];
    const next = names.indexOf(this.selected) + by + names.length;
    if (names.length) this.select(names[next % names.length] ?? "");
  }

  private listen(): void {
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
    const found = this.map.targets.find(({ element }) => element.contains(event.target as Node));
    if (!found) return undefined;
    const { left, top } = found.element.getBoundingClientRect();
    return hit(found.targets, event.clientX - left, event.clientY - top);
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

  /** What keys do; the arrows walk over the map once something in it is selected. */
  private readonly keys: Record<string, (onMap: boolean) => void> = {
    ArrowLeft: (onMap) => (onMap && this.selected ? this.walk(-1) : this.step(-1)),
    ArrowRight: (onMap) => (onMap && this.selected ? this.walk(1) : this.step(1)),
    Home: () => this.go(0),
    End: () => this.go(this.page.frames.length - 1),
    " ": () => this.play.click(),
    Enter: (onMap) => onMap && this.walk(1),
    Escape: () => this.select(""),
    f: () => this.flag(1),
    F: () => this.flag(-1),
    c: () => {
      this.toggleDrawer();
      this.drawer.focusFirst();
    },
    l: () => this.toggleDrawer(),
    i: () => this.toggle("inspect"),
    p: () => this.toggle("present"),
    "?": () => {
      this.toggleDrawer(true);
      this.drawer.toggleKeys();
    },
  };

  private press(event: KeyboardEvent): void {
    const { key } = event;
    const target = event.target as Element;
    if (key === "Escape" && this.drawer.element.contains(target)) {
      this.toggleDrawer(false);
      this.pane.focus();
      return;
    }
    const typed = target.matches("select, textarea, input:not([type=range])");
    const pressed = target.matches("button") && (key === " " || key === "Enter");
    const act = this.keys[key];
    if (typed || pressed || !act || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    act(target === this.pane);
  }
}

const capital = (text: string): string => `${text[0]?.toUpperCase()}${text.slice(1)}`;

/** Letters of a reason that are always on screen. */
const REASON = 280;

/** The decisions of a batch and their reasons; those for which there is no room are counted. */
export function reasonOf(text: string): string {
  const parts = text.split("; ");
  let kept = parts.length;
  const short = () => parts.slice(0, kept).join("; ");
  while (kept > 1 && short().length > REASON) kept -= 1;
  const left = parts.length - kept;
  return capital(left ? `${short()}; and ${left} more.` : `${text}.`);
}
