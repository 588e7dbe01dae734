// One view for every run, and for several side by side: header, maps, inspector, time line, drawer.
import type { CockpitPage } from "../../frames.ts";
import { add, make, pressed, still } from "../base/dom.ts";
import { Playback } from "../base/playback.ts";
import { Theme, watchLooks } from "../base/theme.ts";
import { type DrawerEvents, makeDrawer } from "./drawer.ts";
import { makeHeader } from "./header.ts";
import { type Inspect, makeInspector } from "./inspector.ts";
import { joined, makePanes, type Pane, type Shown } from "./linked_views.ts";
import { MapPane } from "./maps.ts";
import { isLive, openingOf, positionOf, scaled } from "./page.ts";
import { makeOffer, makeOutcome, type Touched } from "./touches.ts";
import { makeTracks } from "./tracks.ts";
import { makeTransport } from "./transport.ts";

/** Milliseconds that a batch is shown, and one in which something moves. */
const [QUICK, SLOW] = [520, 1400];
/** Batches before its largest decision at which a recording begins to play. */
const BEFORE = 3;

/** Requests to a kernel: another placement, a change of the run, and a place. */
interface Questions extends Partial<Pick<DrawerEvents, "ask">> {
  act?: (touched: Touched) => void;
  inspect?: Inspect;
}

export class Cockpit extends Playback {
  readonly outcome = makeOutcome(() => this.page.frames.at(-1)?.batch ?? 0);
  readonly inspector: ReturnType<typeof makeInspector>;
  private readonly drawer: ReturnType<typeof makeDrawer>;
  private readonly header: ReturnType<typeof makeHeader>;
  private readonly transport: ReturnType<typeof makeTransport>;
  private readonly tracks: ReturnType<typeof makeTracks>;
  private readonly root: HTMLElement;
  /** Whether the document is only this cockpit, so that its address names the moment. */
  private readonly isAlone: boolean;
  private readonly theme: Theme;
  private readonly forget: () => void;
  private readonly pane = make("section", "braid-map");
  private panes: Pane[];
  private page!: CockpitPage;
  private selected = "";

  constructor(root: HTMLElement, page: Shown, { ask, act, inspect }: Questions = {}) {
    super();
    this.root = root;
    this.isAlone = root.parentElement === document.body;
    root.classList.add("braid", "braid-cockpit");
    root.classList.toggle("braid-linked-views", "pages" in page);
    root.dataset.lmSuppressShortcuts = "true";
    root.tabIndex = this.pane.tabIndex = 0;
    this.theme = new Theme(root);
    const press = (key: string) => this.keys[key]?.(false);
    const [here, redraw] = [() => this.batch, () => this.show()];
    const seek = (batch: number) => this.go(positionOf(this.page.frames, batch));
    const offerIn = (box: HTMLElement) => makeOffer(box, this.outcome.element, act);
    const shell = add(root, "div", "braid-shell");
    const sheet = (tag: "section" | "aside", kind: string, key: string) => {
      const box = add(shell, tag, kind);
      pressed(box, "×", () => press(key), "braid-close", "close");
      return box;
    };
    this.header = makeHeader(add(shell, "header", "braid-head"));
    const drawer = sheet("section", "braid-drawer", "l");
    this.drawer = makeDrawer(drawer, { here, seek, redraw, ask, offerIn });
    shell.append(this.pane);
    this.panes = [{ map: new MapPane(this.pane, this.theme) }];
    this.inspector = makeInspector(sheet("aside", "braid-side", "Escape"), offerIn, inspect);
    const bar = add(shell, "section", "braid-controls");
    this.addButtons(bar);
    const names = { l: ask ? "Controls, what if…" : "Decisions", p: "Present" };
    const link = this.isAlone && { link: "Link to this moment" };
    this.transport = makeTransport(bar, press, { ...names, ...link });
    this.tracks = makeTracks(add(shell, "section", "braid-lines"), this.theme, seek);
    this.forget = watchLooks(this.pane, this.theme, () => this.paint());
    root.onkeydown = (event) => this.press(event);
    this.pane.onclick = (event) => this.select(this.under(event)?.name ?? "");
    this.pane.onpointermove = (event) => {
      this.pane.title = this.under(event)?.text ?? "";
    };
    this.load(page);
  }

  /** Shows another run, or others side by side, at their end. */
  load(page: Shown): void {
    if ("pages" in page) this.panes = makePanes(this.pane, this.theme, page);
    this.page = "pages" in page ? joined(page) : scaled(page);
    this.outcome.show("");
    this.drawer.show(this.page);
    this.go(this.last);
  }

  /** Shows the run with what came since; who looks at an earlier batch stays there. */
  update(page: CockpitPage): void {
    const { batch } = this;
    const follows = this.position >= this.last && !this.isPlaying;
    this.page = page;
    this.outcome.refresh();
    this.position = follows ? this.last : positionOf(this.page.frames, batch);
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

  /** Shows the batch, and all that changes from batch to batch. */
  protected show(): void {
    const { page, selected, position, batch } = this;
    const frame = page.frames[position];
    this.header.show(page, frame);
    this.showButtons();
    this.transport(page, frame);
    const [words, measure] = [frame?.title ?? "", this.drawer.measure()];
    this.tracks.show(page, { batch, words, selected, measure });
    if (!frame) return;
    this.length = this.drawer.slowness() * (frame.state_map.grid?.is_moving ? SLOW : QUICK);
    this.paint();
    this.inspector.show(page, frame, selected);
    this.drawer.mark(batch);
    const chosen = this.targets.find(({ name }) => name === selected);
    this.root.ariaLabel = `${words}. ${page.note}`;
    this.pane.ariaLabel = [words, chosen?.text].filter(Boolean).join(". ");
    this.pane.title = ""; // until the pointer moves over what is there now
    Object.assign(this.root.dataset, { seq: position, batch });
  }

  protected paint(): void {
    this.theme.pulse = Math.abs(Math.cos(3 * Math.PI * this.time));
    for (const { map, page = this.page } of this.panes) {
      const at = positionOf(page.frames, this.batch);
      const [before, frame] = [page.frames[at - 1], page.frames[at]];
      if (!frame) continue;
      const flags = page.annotations.filter(({ batch }) => batch === this.batch);
      this.theme.failed = new Set(flags.flatMap(({ lost }) => lost.map((host) => `host:${host}`)));
      const time = frame.batch < this.batch ? 1 : this.time;
      map.show(frame, before?.state_map, time, this.selected);
    }
  }

  private select(name: string): void {
    this.selected = name;
    this.toggle("inspecting", name !== "");
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
    const names = [...new Set(this.targets.map(({ name }) => name))];
    this.select(names.at((names.indexOf(this.selected) + by) % names.length) ?? "");
  }

  private under(event: MouseEvent) {
    return this.panes.map(({ map }) => map.under(event)).find(Boolean);
  }

  /** The actions of keys and buttons; the arrows walk over the map once something in it is selected. */
  private readonly keys: Record<string, (onMap: boolean) => void> = {
    ArrowLeft: (onMap) => (onMap && this.selected ? this.walk(-1) : this.step(-1)),
    ArrowRight: (onMap) => (onMap && this.selected ? this.walk(1) : this.step(1)),
    Home: () => this.go(0),
    End: () => this.go(this.last),
    " ": () => this.playOrStop(),
    Enter: (onMap) => onMap && this.walk(1),
    Escape: () => {
      this.toggle("presenting", false);
      this.select("");
    },
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
    const presses = key === " " || key === "Enter" ? "button, summary, " : "";
    const isTaken = target.matches(`${presses}select, textarea, input:not([type=range])`);
    const act = this.keys[key];
    if (isTaken || !act || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    act(target === this.pane);
  }
}
