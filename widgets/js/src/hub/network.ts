// The map of a hub: sources, nodes and sites; a link is as wide as its bytes in the batch. Operators
// stand below their node, queries below the site where they are asked.
import type { HubFlow, HubFrame, HubNode } from "../../frames.ts";
import { CanvasMap, type Detail, type Pair } from "../base/canvas_map.ts";
import { earlier, records, sum } from "../base/columns.ts";
import { count, several, shareOf, short } from "../base/format.ts";
import {
  along,
  type Box,
  grown,
  middle,
  mix,
  type Point,
  spreadOut,
  toward,
} from "../base/geometry.ts";
import { hue, type Shade } from "../base/theme.ts";

const KINDS: Record<string, { shade: Shade; text: string }> = {
  new: { shade: "muted", text: "a join of its own" },
  holds: { shade: "good", text: "answered by a running operator" },
  relaxed: { shade: "near", text: "a running operator was widened" },
};

const LABEL = { size: 11, bold: true, align: "center", isMinor: true } as const;

const kindOf = (reuse: string) => KINDS[reuse] ?? { shade: "muted" as const, text: "" };

const bytes = (size: number): string => `${short(size)}B`.replace(/([kMG]?B)$/, " $1");

/** The text about a query, an operator or a node in the inspector. */
export function inspectHub(frame: HubFrame, selected: string): Detail | undefined {
  const operators = records(frame.operators);
  const node = records(frame.nodes).find(({ name }) => selected === `node:${name}`);
  if (node) return inspectNode(frame, node);
  const query = records(frame.queries).find(({ name }) => selected === `query:${name}`);
  const wanted = query ? `operator:${query.operator}` : selected;
  const operator = operators.find(({ id }) => wanted === `operator:${id}`);
  const work: Pair[] = operator
    ? [
        ["it reads", operator.reads.join(", ")],
        ["queries and operators that it serves", count(operator.demands)],
        ["its results so far", count(operator.results)],
        ["rows that it holds", `${count(operator.live)}, ${bytes(operator.live_bytes)}`],
      ]
    : [];
  if (query) {
    const found = operator ? `, answered by operator ${operator.id} at ${operator.node}` : "";
    const considered = query.options.map((option, k): Pair => [option, String(query.costs[k])]);
    const head: Pair = ["considered: bytes in transit, modelled", ""];
    const pairs: Pair[] = [
      [kindOf(query.reuse_kind).text, ""],
      ["text", query.sql],
      head,
      ...considered,
    ];
    const words = `asked at ${query.sink}${found}`;
    return { title: `Query “${query.name}”`, words, pairs: [...pairs, ...work] };
  }
  const words = `${operator?.streams} at ${operator?.node}`;
  return operator && { title: `Operator ${operator.id}`, words, pairs: work };
}

function inspectNode({ operators, flows }: HubFrame, { name, is_down, role }: HubNode): Detail {
  const own = records(operators).filter(({ node }) => node === name);
  const sent = (side: "source" | "target") =>
    bytes(sum(records(flows).map((flow) => (flow[side] === name ? flow.bytes : 0))));
  const pairs: Pair[] = [
    ["operators", own.map(({ id }) => id).join(", ") || "none"],
    ["rows that they hold", count(sum(own.map(({ live }) => live)))],
    ["bytes in, this batch", sent("target")],
    ["bytes out, this batch", sent("source")],
  ];
  return { title: name, words: is_down ? "down" : role, pairs };
}

/** Points at even distances of a way; ``time`` moves them by one distance. */
export function beads([a, b]: [Point, Point], time: number, apart: number): Point[] {
  const long = Math.hypot(b[0] - a[0], b[1] - a[1]);
  const number = Math.max(1, Math.floor(long / apart));
  return Array.from({ length: number }, (_, k) => along(a, b, (k + (time % 1)) / number));
}

/** An operator or a query, which stands below its node; a query has a color. */
interface Guest {
  name: string;
  text: string;
  said: string;
  shade?: Shade;
  isNew?: boolean;
}

/** The operators at a node, and the queries that are asked there. */
function guestsOf({ operators, queries }: HubFrame, place: string): Guest[] {
  const here = records(operators).filter(({ node }) => node === place);
  const asked = records(queries).filter(({ sink }) => sink === place);
  return [
    ...here.map(({ id, streams, is_changed: isNew }): Guest => {
      return { name: `operator:${id}`, text: `⋈${id}`, said: `Operator ${id}: ${streams}`, isNew };
    }),
    ...asked.map(({ name: text, reuse_kind }): Guest => {
      const { text: how, shade } = kindOf(reuse_kind);
      return { name: `query:${text}`, text, said: `Query ${text}: ${how}`, shade };
    }),
  ];
}

/** Guests stand in lines that are about as wide as this, in pixels; so far apart, and so tall. */
const [LINE, APART, TALL] = [150, 4, 20];
const NODE = 24;

/** A node and all that stands below it, and the room that they take. */
interface Card extends Box {
  node: HubNode;
  lines: Guest[][];
}

const nameOf = ({ name, is_down }: HubNode): string => (is_down ? `${name}: down` : name);

/** Where the links of a node end. */
const hubOf = ({ x, y, wide }: Box): Point => [x + wide / 2, y + NODE / 2];

export class NetworkView extends CanvasMap<HubFrame> {
  private cards = new Map<string, Card>();

  protected tell(frame: HubFrame): void {
    const queries = several(frame.queries.name.length, "query");
    const by = several(frame.operators.id.length, "operator");
    this.head(`widest link: ${bytes(frame.scale_max)} a batch`, `${queries} answered by ${by}`);
    const kinds = Object.values(KINDS).map((kind) => ({ sign: "○", ...kind, isMinor: true }));
    const streams = frame.streams.map((name, stream) => ({ sign: "●", stream, text: name }));
    const twice = { text: "framed twice: built or moved just now", isMinor: true };
    this.signs([...streams, ...kinds, twice]);
    const moved = records(frame.moves).map(({ operator, source, target, bytes: size }) => {
      return `operator ${operator} moved from ${source} to ${target}, ${bytes(size)}`;
    });
    const saved = frame.saved_share;
    const reuse = saved === null ? "" : `; reuse saves ${Math.round(100 * saved)} % (modelled)`;
    const sent = `${bytes(frame.bytes)} over all links${reuse}`;
    this.foot(sent, moved.length ? ` · ${moved.join(", ")}` : "");
    this.needs(240);
  }

  protected paint(frame: HubFrame): void {
    const { pen } = this;
    const nodes = records(frame.nodes);
    this.cards = this.layOut(frame, nodes);
    const down = nodes.flatMap(({ name, is_down }) => (is_down ? name : []));
    for (const { first, second } of records(frame.links)) {
      const dash = down.includes(first) || down.includes(second) ? [3, 5] : [];
      pen.line([this.at(first), this.at(second)], "rule", 2, dash);
    }
    const linkOf = ({ source, target }: HubFlow) => [source, target].sort().join(" ");
    const flowOf = (flow: HubFlow) => `${flow.source} ${flow.stream} ${linkOf(flow)}`;
    const then = earlier(this.before?.flows, flowOf);
    for (const flows of Map.groupBy(records(frame.flows), linkOf).values()) {
      for (const [k, flow] of flows.entries()) {
        const size = mix(then(flow).bytes, flow.bytes, this.share);
        this.paintFlow(flow, shareOf(size, frame.scale_max), k - (flows.length - 1) / 2);
      }
    }
    for (const { source, target } of records(frame.moves)) {
      pen.line([this.at(source), this.at(target)], "bad", 3, [6, 4]);
    }
    for (const card of this.cards.values()) this.paintCard(card);
  }

  private at(name: string): Point {
    const card = this.cards.get(name);
    return card ? hubOf(card) : [0, 0];
  }

  private wideOf = (text: string): number => Math.max(26, this.pen.width(text, 11.5, true) + 13);

  /** Places the nodes where the frame has them, as far as none then covers another. */
  private layOut(frame: HubFrame, nodes: HubNode[]): Map<string, Card> {
    const [{ wide, tall }, whole] = [this.pen, { x: 2, y: 2 }];
    const cards = nodes.map((node): Card => {
      const lines = this.inLines(guestsOf(frame, node.name));
      const size = Math.max(...lines.map(this.lineWide), this.wideOf(nameOf(node)));
      const [x, y] = [mix(46, wide - 46, node.x) - size / 2, mix(4, tall - 70, node.y)];
      return { node, lines, x, y, wide: size, tall: NODE + TALL * lines.length };
    });
    const area = { ...whole, wide: wide - 4, tall: tall - 4 };
    return new Map(spreadOut(cards, area, 5).map((card) => [card.node.name, card]));
  }

  private lineWide = (line: Guest[]): number =>
    sum(line.map(({ text }) => this.wideOf(text) + APART)) - APART;

  private inLines(guests: Guest[]): Guest[][] {
    const lines: Guest[][] = [];
    for (const guest of guests) {
      const line = lines.at(-1);
      if (line && this.lineWide([...line, guest]) <= LINE) line.push(guest);
      else lines.push([guest]);
    }
    return lines;
  }

  /** A flow, some places beside the middle of its link, where several run side by side. */
  private paintFlow({ source, target, stream }: HubFlow, share: number, aside: number): void {
    const { pen } = this;
    const [a, b] = [this.at(source), this.at(target)];
    const turn = Math.atan2(b[1] - a[1], b[0] - a[0]) + Math.PI / 2;
    const shift = (source < target ? 7 : -7) * aside;
    const way: [Point, Point] = [toward(a, turn, shift), toward(b, turn, shift)];
    const colour = stream < 0 ? "ink" : hue(stream);
    pen.line(way, colour, 1.5 + 11 * share, [], 0.4);
    for (const bead of beads(way, this.time, 46)) pen.dot(bead, 2.6, colour);
  }

  private paintCard(card: Card): void {
    const { pen } = this;
    const { node, lines } = card;
    const { streams, is_down, role } = node;
    const [text, [x, y]] = [nameOf(node), hubOf(card)];
    const wide = this.wideOf(text);
    const box = { x: x - wide / 2, y: card.y, wide, tall: NODE };
    const [colour, round] = [is_down ? "bad" : "ink", role === "source" ? 12 : 5] as const;
    const own = streams[0] === undefined ? "muted" : hue(streams[0]);
    const [stroke, width] = [is_down ? "bad" : own, own === "muted" ? 1.2 : 2.5] as const;
    pen.box(box, { fill: "panel", stroke, width, round });
    pen.target(box, `node:${node.name}`, is_down ? `${node.name} is down` : `${text}: ${role}`);
    pen.text(text, x, y, { ...LABEL, size: 12, isMinor: false, colour });
    for (const [row, line] of lines.entries()) {
      let left = x - this.lineWide(line) / 2;
      for (const guest of line) {
        const room = { x: left, y: card.y + NODE + 3 + TALL * row, wide: this.wideOf(guest.text) };
        this.paintGuest(guest, { ...room, tall: TALL - 3 });
        left += room.wide + APART;
      }
    }
  }

  private paintGuest({ name, text, said, shade, isNew }: Guest, box: Box): void {
    const { pen } = this;
    const { colour: stroke } = this.named(name, shade ?? "ink");
    pen.box(box, { fill: shade ? "panel" : stroke, stroke, width: 1.5, round: shade ? 9 : 4 });
    if (isNew) pen.box(grown(box, 2.5), { stroke, width: 1.2, round: 6 });
    pen.target(box, name, said);
    pen.text(text, ...middle(box), { ...LABEL, colour: shade ? "ink" : "panel" });
  }
}
