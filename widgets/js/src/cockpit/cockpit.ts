// One view for every run: strip, map, hosts over time, time line with its decisions, and why.
import { add } from "../base/dom.ts";
import { ago } from "../base/format.ts";
import { named, Player } from "../base/player.ts";
import type { BatchFrame, BatchRange, CockpitPage, Palette } from "../frames.ts";
import { Inspect, type Place } from "./block_details.ts";
import { strip } from "./key_figures.ts";
import { Lines } from "./lines.ts";
import { MapPane } from "./maps.ts";
import { extend, type More, positionOf, scaled } from "./page.ts";
import { type Ask, WhatIf } from "./what_if.ts";

const SPEEDS = { "1 batch/s": 1000, "2.5 batches/s": 400, "6.7 batches/s": 150 };
const STATES: Record<string, string> = { live: "● live", paused: "❚❚ paused" };

export class Cockpit {
  private readonly root: HTMLElement;
  private readonly title: HTMLElement;
  private readonly note: HTMLElement;
  private readonly state: HTMLElement;
  private readonly left: HTMLElement;
  private readonly lag: HTMLElement;
  private readonly clock: ReturnType<typeof setInterval>;
  private readonly sized: ResizeObserver;
  private readonly facts: HTMLElement;
  private readonly map: MapPane;
  private readonly lines: Lines;
  private readonly film: Player<BatchFrame>;
  private readonly now: HTMLButtonElement;
  private readonly all: HTMLButtonElement;
  private readonly measure: HTMLSelectElement;
  private readonly why: HTMLElement;
  private readonly what: WhatIf;
  /** What was asked about a host, and came back. */
  readonly inspect: Inspect;
  private page: CockpitPage;
  private position: number;
  /** When the page was told what its lag is, in milliseconds. */
  private told = 0;

  /** ``ask`` asks what another placement would do; without it nobody is offered to. */
  constructor(
    root: HTMLElement,
    page: CockpitPage,
    palette: Palette,
    ask?: Ask,
    inspect?: (place: Place) => void,
  ) {
    this.root = root;
    this.page = scaled({ ...page });
    this.position = page.frames.length - 1;
    root.classList.add("braid", "braid-cockpit");
    const head = add(root, "div", "braid-top");
    this.state = add(head, "span", "braid-state");
    this.title = add(head, "span", "braid-title");
    this.left = add(head, "span", "braid-left");
    this.lag = add(head, "span", "braid-left");
    this.lag.title = "seconds since the last batch was committed";
    this.note = add(root, "div", "braid-note");
    this.facts = add(root, "div", "braid-strip");
    const panes = add(root, "div", "braid-panes");
    const map = add(panes, "div", "braid-map");
    this.map = new MapPane(map, palette);
    const seek = (batch: number) => this.film.go(positionOf(this.page.frames, batch));
    const lines = add(panes, "div", "braid-lines");
    this.lines = new Lines(lines, palette, seek, (stretch) => this.zoomed(stretch));
    const painter = {
      draw: (frame: BatchFrame, position: number, glide: number) => {
        this.draw(frame, position, glide);
      },
    };
    const options = { start: this.position, every: 400, speeds: SPEEDS };
    const bar = add(panes, "div", "braid-bar");
    this.why = add(panes, "ol", "braid-why");
    this.now = button(add(root, "span"), "Back to now");
    this.all = button(add(root, "span"), "All batches");
    this.measure = add(root, "select");
    const here = () => this.page.frames[this.position]?.batch ?? 0;
    this.what = new WhatIf(add(panes, "div", "braid-whatif"), here, ask);
    this.inspect = new Inspect(root, here, inspect);
    this.inspect.watch(map);
    this.inspect.watch(lines);
    this.film = new Player(root, page.frames, painter, options, bar);
    this.arrange(bar);
    this.clock = setInterval(() => this.late(), 500);
    this.sized = new ResizeObserver(() => this.mark());
    this.sized.observe(this.why);
    this.refresh();
  }

  /** Puts what came since to the page; who looks at an earlier batch stays there. */
  more(more: More): void {
    const follows = this.position >= this.page.frames.length - 1;
    const batch = this.page.frames[this.position]?.batch ?? 0;
    this.page = extend(this.page, more);
    const { frames } = this.page;
    this.film.load(frames, follows ? frames.length - 1 : positionOf(frames, batch));
    this.refresh();
  }

  /** Shows another run. */
  load(page: CockpitPage): void {
    this.page = scaled({ ...page });
    this.lines.zoom();
    this.film.load(page.frames, page.frames.length - 1);
    this.refresh();
  }

  /** Nobody tells what is new any more. */
  lost(): void {
    this.page = { ...this.page, state: "not connected" };
    this.refresh();
  }

  close(): void {
    clearInterval(this.clock);
    this.sized.disconnect();
    this.film.stop();
    this.map.close();
    this.lines.close();
  }

  private arrange(bar: HTMLElement): void {
    const controls = bar.querySelector(".braid-controls") ?? bar;
    controls.append(this.now, this.all, this.measure);
    named(this.measure, "what the hosts' rows show");
    this.measure.addEventListener("change", () => this.lines.choose(this.measure.value));
    this.now.title = "show the newest batch, and follow the run";
    this.now.addEventListener("click", () => this.film.go(this.page.frames.length - 1));
    this.all.addEventListener("click", () => this.lines.zoom());
    this.all.hidden = true;
  }

  private zoomed(stretch: BatchRange | undefined): void {
    this.all.hidden = stretch === undefined;
    if (stretch) this.all.textContent = `All batches (now ${stretch.first} to ${stretch.last})`;
  }

  /** What is the same whatever batch is looked at. */
  private refresh(): void {
    const { state, seconds_left: left, note, annotations: flags, hosts, frames } = this.page;
    this.state.textContent = STATES[state] ?? state;
    this.state.dataset.state = state;
    this.left.textContent = left;
    this.told = performance.now();
    this.late();
    this.note.textContent = note;
    this.what.show(this.page);
    this.measure.hidden = hosts.names.length < 2;
    if (this.measure.options.length !== hosts.names.length) {
      this.measure.replaceChildren();
      for (const name of hosts.names) add(this.measure, "option", "", name).value = name;
    }
    if (!frames.length) {
      this.title.textContent = "no batch yet";
      this.lines.show(this.page, 0);
    }
    if (this.why.children.length !== flags.length) this.tell();
    this.mark();
  }

  /** How long ago the last batch was committed, as long as the run goes on. */
  private late(): void {
    const { seconds_since_commit: lag, state } = this.page;
    const goes = state === "live" || state === "paused";
    const since = (lag ?? 0) + (performance.now() - this.told) / 1000;
    this.lag.textContent = goes && lag !== null ? `lag ${ago(since)}` : "";
  }

  private draw(frame: BatchFrame, position: number, glide: number): void {
    this.position = position;
    this.title.textContent = frame.title;
    strip(this.facts, frame);
    this.map.show(frame.state_map, glide);
    this.lines.show(this.page, frame.batch);
    this.root.setAttribute("aria-label", `${frame.title}. ${this.page.note}`);
    this.root.dataset.seq = String(position);
    this.root.dataset.batch = String(frame.batch);
    this.mark();
  }

  /** The decisions as a list, the newest last. */
  private tell(): void {
    this.why.replaceChildren();
    for (const { batch, text } of this.page.annotations) {
      const item = add(this.why, "li");
      const link = button(item, text);
      link.dataset.batch = String(batch);
      link.addEventListener("click", () => this.film.go(positionOf(this.page.frames, batch)));
    }
  }

  /** Marks the decision that was the last one at the batch that is looked at. */
  private mark(): void {
    if (!this.film) return;
    const batch = this.page.frames[this.position]?.batch ?? 0;
    const links = [...this.why.querySelectorAll<HTMLElement>("button")];
    const here = links.findLast((link) => Number(link.dataset.batch) <= batch);
    for (const link of links) link.classList.toggle("here", link === here);
    const middle = here ? here.offsetTop + here.offsetHeight / 2 : 0;
    this.why.scrollTop = middle - this.why.clientHeight / 2;
    const live = this.page.state === "live" || this.page.state === "paused";
    this.now.hidden = !live || this.position >= this.page.frames.length - 1;
  }
}

function button(parent: Element, text: string): HTMLButtonElement {
  const made = add(parent, "button", "", text);
  made.type = "button";
  return made;
}
