// One view for every run, and for several side by side: header, maps, inspector, time line, drawer.
import type { CockpitPage } from "../../frames.ts";
import { add, make, pressed, spoken, still } from "../base/dom.ts";
import { hit } from "../base/pen.ts";
import { Playback } from "../base/playback.ts";
import { Theme, watchLooks } from "../base/theme.ts";
import { Drawer, type DrawerEvents } from "./drawer.ts";
import { makeHeader, showFigures } from "./header.ts";
import { Inspector, type Place } from "./inspector.ts";
import { joined, makePanes, type Pane, type Shown } from "./linked_views.ts";
import { MapPane } from "./maps.ts";
import { isLive, openingOf, positionOf, scaled } from "./page.ts";
import { hasActed, makeOffer, type Touched } from "./touches.ts";
import { Tracks } from "./tracks.ts";
import { makeTransport } from "./transport.ts";

/** Milliseconds that a batch is shown, and one in which something moves. */
const [QUICK, SLOW] = [520, 1400];
/** Batches before its largest decision at which a recording begins to play. */
const BEFORE = 3;

/** Requests to a kernel: another placement, a change of the run, and a place. */
interface Questions extends Partial<Pick<DrawerEvents, "ask">> {
  act?: (touched: Touched) => void;
  inspect?: (place: Place) => void;
}

export class Cockpit extends Playback {
  readonly inspector: Inspector;
  readonly drawer: Drawer;
  /** The outcome of the last change of the run. */
  private readonly answer = spoken(make("p", "braid-touched"));
  private asked = 0;
  private readonly root: HTMLElement;
  /** Whether the document is only this cockpit, so that its address names the moment. */
  private readonly isAlone: boolean;
  private readonly header: ReturnType<typeof makeHeader>;
  private readonly pane: HTMLElement;
  private readonly theme: Theme;
  private readonly transport: ReturnType<typeof makeTransport>;
  private readonly tracks: Tracks;
  private readonly forget: () => void;
  private panes: Pane[];
  private page!: CockpitPage;
  private selected = "";
  /** Where the pointer was last. */
  private pointed = new MouseEvent("pointermove");

  constructor(root: HTMLElement, page: Shown, { ask, act, inspect }: Questions = {}) {
    super();
    this.root = root;
    this.isAlone = root.parentElement === document.body;
    root.classList.add("braid", "braid-cockpit");
    root.classList.toggle("braid-linked-views", "pages" in page);
    root.dataset.lmSuppressShortcuts = "true";
    root.tabIndex = 0;
    this.theme = new Theme(root);
    const here = () => this.batch;
    const seek = (batch: number) => this.go(positionOf(this.page.frames, batch));
    const measure = (name: string) => {
      this.tracks.measure = name;
      this.show();
    };
    const shell = add(root, "div", "braid-shell");
    this.header = makeHeader(add(shell, "header", "braid-head"));
    const sheet = (box: HTMLElement, key: string) => {
      pressed(box, "×", () => this.keys[key]?.(false), "braid-close", "close");
      return box;
    };
    const offerIn = (box: HTMLElement) => makeOffer(box, this.answer, act);
    const drawer = sheet(add(shell, "section", "braid-drawer"), "l");
    this.drawer = new Drawer(drawer, { here, seek, measure, ask, offerIn });
    this.pane = add(shell, "section", "braid-map");
    this.pane.tabIndex = 0;
    this.panes = [{ map: new MapPane(this.pane, this.theme) }];
    const side = sheet(add(shell, "aside", "braid-side"), "Escape");
    this.inspector = new Inspector(side, offerIn, inspect);
    const bar = add(shell, "section", "braid-controls");
    this.addButtons(bar);
    const quiet = { l: ask ? "Controls, what if…" : "Decisions", p: "Present" };
    const link = this.isAlone ? { link: "Link to this moment" } : {};
    const press = (key: string) => this.keys[key]?.(false);
    this.transport = makeTransport(bar, press, { ...quiet, ...link });
    this.tracks = new Tracks(add(shell, "section", "braid-lines"), this.theme, seek);
    this.forget = watchLooks(this.pane, this.theme, () => this.paint());
    root.onkeydown = (event) => this.press(event);
    this.pane.onclick = (event) => this.select(this.under(event)?.name ?? "");
    this.pane.onpointermove = (event) => {
      this.pointed = event;
      this.pane.title = this.under(event)?.text ?? "";
    };
    this.load(page);
  }

  /** Shows another run, or others side by side, at their end. */
  load(page: Shown): void {
    if ("pages" in page) this.panes = makePanes(this.pane, this.theme, page);
    this.page = "pages" in page ? joined(page) : scaled(page);
    this.answer.textContent = "";
    this.drawer.show(this.page);
    this.go(this.last);
  }

  /** Shows the run with what came since; who looks at an earlier batch stays there. */
  update(page: CockpitPage): void {
    const { batch } = this;
    const follows = this.position >= this.last && !this.isPlaying;
    this.page = page;
    if (hasActed(this.answer.textContent, this.asked, this.newest)) this.answer.textContent = "";
    this.position = follows ? this.last : positionOf(page.frames, batch);
    this.drawer.show(page);
    if (follows && this.batch !== batch && !still()) this.glide();
    else this.show();
  }

  /** Goes to the moment in the address ("#b=26&s=host:21&d=1": batch, selection, whether the drawer
   * is open), or to where a recording opens, which then plays. */
  open(plays: boolean): void {
    const moment = new URLSearchParams(location.hash.slice(1));
    const batch = Number.parseInt(moment.get("b") ?? "", 10);
    if (this.isAlone && batch >= 0) {
      this.selected = moment.get("s") ?? "";
      this.toggle("open", moment.get("d") === "1");
      this.go(positionOf(this.page.frames, batch));
    } else if (plays && !isLive(this.page) && this.last > 0) {
      this.go(openingOf(this.page) - (still() ? 0 : BEFORE));
      if (!still()) this.glide(true);
    }
  }

  close(): void {
    this.stop();
    this.forget();
    this.header.close();
    this.tracks.close();
  }

  /** Says what came of a change of the run, below what asked for it. */
  touched(text: string): void {
    this.answer.textContent = text;
    this.answer.scrollIntoView({ block: "nearest" });
    this.asked = this.newest;
  }

  private get newest(): number {
    return this.page.frames.at(-1)?.batch ?? 0;
  }

  private get batch(): number {
    return this.page.frames[this.position]?.batch ?? 0;
  }

  protected get last(): number {
    return this.page.frames.length - 1;
  }

  /** The parts that can be selected. */
  private get targets() {
    return this.panes.flatMap(({ map }) => map.targets);
  }

  private toggle(what: "open" | "presenting" | "inspecting", on?: boolean): void {
    this.root.classList.toggle(`braid-${what}`, on);
  }

  /** Each run at the batch: its map, its frame and the one before. */
  private get views() {
    return this.panes.flatMap(({ map, facts, page = this.page }) => {
      const at = positionOf(page.frames, this.batch);
      const [frame, before] = [page.frames[at], page.frames[at - 1]?.state_map];
      return frame ? [{ map, facts, page, frame, before }] : [];
    });
  }

  /** Shows the batch, and all that changes from batch to batch. */
  protected show(): void {
    const { page, selected, position, batch } = this;
    const frame = page.frames[position];
    this.header.show(page, frame);
    this.showButtons();
    this.transport(page, frame);
    this.tracks.show(page, batch, selected, frame?.title);
    if (!frame) return;
    this.length = this.drawer.slowness * (frame.state_map.grid?.is_moving ? SLOW : QUICK);
    for (const { facts, frame: own } of this.views) {
      if (facts) showFigures(facts, own);
    }
    this.paint();
    this.pane.title = this.under(this.pointed)?.text ?? "";
    this.inspector.show(page, frame, selected);
    this.drawer.mark(batch);
    this.root.ariaLabel = `${frame.title}. ${page.note}`;
    const chosen = this.targets.flatMap(({ targets }) => targets).find((t) => t.name === selected);
    this.pane.ariaLabel = [frame.title, chosen?.text].filter(Boolean).join(". ");
    Object.assign(this.root.dataset, { seq: position, batch });
  }

  protected paint(): void {
    this.theme.pulse = Math.abs(Math.cos(3 * Math.PI * this.time));
    for (const { map, page, frame, before } of this.views) {
      const flags = page.annotations.filter(({ batch }) => batch === this.batch);
      this.theme.failed = new Set(flags.flatMap(({ lost }) => lost.map((host) => `host:${host}`)));
      const time = frame.batch < this.batch ? 1 : this.time;
      map.show(frame, before, time, this.selected);
    }
  }

  private select(name: string): void {
    this.selected = name;
    this.root.classList.toggle("braid-inspecting", name !== "");
    this.inspector.answer("");
    this.show();
  }

  /** To the next decision, or to the one before. */
  private flag(by: number): void {
    const places = this.page.annotations.map(({ batch }) => positionOf(this.page.frames, batch));
    const before = places.findLast((place) => place < this.position);
    this.go((by > 0 ? places.find((place) => place > this.position) : before) ?? this.position);
  }

  /** Selects the next of what can be selected. */
  private walk(by: number): void {
    const found = this.targets.flatMap(({ targets }) => targets.map(({ name }) => name));
    const names = [...new Set(found)];
    this.select(names.at((names.indexOf(this.selected) + by) % names.length) ?? "");
  }

  private under(event: MouseEvent) {
    const found = this.targets.find(({ element }) => element.contains(event.target as Node));
    const { left = 0, top = 0 } = found?.element.getBoundingClientRect() ?? {};
    return hit(found?.targets ?? [], event.clientX - left, event.clientY - top);
  }

  /** The actions of keys and buttons; the arrows walk over the map once something in it is selected. */
  private readonly keys: Record<string, (onMap: boolean) => void> = {
    ArrowLeft: (onMap) => (onMap && this.selected ? this.walk(-1) : this.step(-1)),
    ArrowRight: (onMap) => (onMap && this.selected ? this.walk(1) : this.step(1)),
    Home: () => this.go(0),
    End: () => this.go(this.last),
    " ": () => this.playOrStop(),
    Enter: (onMap) => onMap && this.walk(1),
    Escape: () => this.select(""),
    f: () => this.flag(1),
    F: () => this.flag(-1),
    c: () => {
      this.toggle("open");
      this.drawer.focusFirst();
    },
    l: () => this.toggle("open"),
    i: () => this.toggle("inspecting"),
    p: () => this.toggle("presenting"),
    link: () => {
      const isOpen = this.root.classList.contains("braid-open");
      location.hash = `b=${this.batch}&s=${this.selected}&d=${isOpen ? 1 : 0}`;
      navigator.clipboard?.writeText(location.href).catch(() => {});
    },
    "?": () => {
      this.toggle("open", true);
      this.drawer.toggleKeys();
    },
  };

  private press(event: KeyboardEvent): void {
    const { key } = event;
    const target = event.target as Element;
    if (key === "Escape" && this.drawer.element.contains(target)) {
      this.toggle("open", false);
      this.pane.focus();
      return;
    }
    const typed = target.matches("select, textarea, input:not([type=range])");
    const pressed = target.matches("button, summary") && (key === " " || key === "Enter");
    const act = this.keys[key];
    if (typed || pressed || !act || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    act(target === this.pane);
  }
}
