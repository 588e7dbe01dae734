// The map of a hub: sources, nodes and sites; a link is as wide as its bytes in the batch. Operators
// stand below their node, queries below the site where they are asked.
import type { HubFlow, HubFrame, HubNode } from "../../frames.ts";
import { CanvasMap, type Detail, type Pair } from "../base/canvas_map.ts";
import { earlier, records, sum } from "../base/columns.ts";
import { count, several, shareOf, short } from "../base/format.ts";
import { type Box, grown, middle, mix, type Point, spreadOut, toward } from "../base/geometry.ts";
import { hue, type Shade } from "../base/theme.ts";

const KINDS: Record<string, { shade: Shade; text: string }> = {
  new: { shade: "muted", text: "a join of its own" },
  holds: { shade: "good", text: "answered by a running operator" },
  relaxed: { shade: "near", text: "a running operator was widened" },
};

const kindOf = (reuse: string) => KINDS[reuse] ?? { shade: "muted" as const, text: "" };

const bytes = (size: number): string => `${short(size)}B`.replace(/([kMG]?B)$/, " $1");

/** The text about a query, an operator or a node in the inspector. */
export function inspectHub(frame: HubFrame, selected: string): Detail | undefined {
  const node = records(frame.nodes).find(({ name }) => selected === `node:${name}`);
  if (node) return inspectNode(frame, node);
  const query = records(frame.queries).find(({ name }) => selected === `query:${name}`);
  const wanted = query ? `operator:${query.operator}` : selected;
  const operator = records(frame.operators).find(({ id }) => wanted === `operator:${id}`);
  const { id, node: place, streams } = operator ?? {};
  const work: Pair[] = operator
    ? [
        ["it reads", operator.reads.join(", ")],
        ["queries and operators that it serves", count(operator.demands)],
        ["its results so far", count(operator.results)],
        ["rows that it holds", `${count(operator.live)}, ${bytes(operator.live_bytes)}`],
      ]
    : [];
  if (!query) {
    return operator && { title: `Operator ${id}`, words: `${streams} at ${place}`, pairs: work };
  }
  const pairs: Pair[] = [
    [kindOf(query.reuse_kind).text, ""],
    ["text", query.sql],
    ["considered: bytes in transit, modelled", ""],
    ...query.options.map((option, k): Pair => [option, String(query.costs[k])]),
    ...work,
  ];
  const found = operator ? `, answered by operator ${id} at ${place}` : "";
  return { title: `Query “${query.name}”`, words: `asked at ${query.sink}${found}`, pairs };
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

/** A node, an operator or a query, as it is painted. */
interface Pill {
  name: string;
  text: string;
  said: string;
  stroke: Shade;
  round: number;
  isFull?: boolean;
  isNew?: boolean;
}

/** A node, then the operators that run there, then the queries that are asked there. */
function pillsOf({ operators, queries }: HubFrame, node: HubNode): Pill[] {
  const { name: place, role, is_down, streams } = node;
  const here = records(operators).filter((operator) => operator.node === place);
  const asked = records(queries).filter(({ sink }) => sink === place);
  const own = streams[0] === undefined ? "muted" : hue(streams[0]);
  const [text, said] = is_down
    ? [`${place}: down`, `${place} is down`]
    : [place, `${place}: ${role}`];
  const [stroke, round] = [is_down ? "bad" : own, role === "source" ? 12 : 5] as const;
  return [
    { name: `node:${place}`, text, said, stroke, round },
    ...here.map(({ id, streams: joined, is_changed: isNew }): Pill => {
      const [name, said] = [`operator:${id}`, `Operator ${id}: ${joined}`];
      return { name, text: `⋈${id}`, said, stroke: "ink", round: 4, isFull: true, isNew };
    }),
    ...asked.map(({ name: text, reuse_kind }): Pill => {
      const { text: how, shade: stroke } = kindOf(reuse_kind);
      return { name: `query:${text}`, text, said: `Query ${text}: ${how}`, stroke, round: 9 };
    }),
  ];
}

/** The height of pills, and the distance between them. */
const [TALL, APART] = [21, 4];

/** A node with what stands below it, in lines, and the room that it takes. */
interface Card extends Box {
  name: string;
  lines: Pill[][];
}

export class NetworkView extends CanvasMap<HubFrame> {
  /** Where the links of a node end. */
  private places = new Map<string, Point>();

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
    const { wide, tall } = pen;
    const cards = nodes.map((node) => this.cardOf(pillsOf(frame, node), node));
    const area = { x: 2, y: 2, wide: wide - 4, tall: tall - 4 };
    const placed = spreadOut(cards, area, 6);
    this.places = new Map(
      placed.map((card) => [card.name, [card.x + card.wide / 2, card.y + TALL / 2]]),
    );
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
    for (const card of placed) this.paintCard(card);
  }

  private at = (name: string): Point => this.places.get(name) ?? [0, 0];

  private wideOf = ({ text }: { text: string }): number =>
    Math.max(30, this.pen.width(text, 12, true) + 14);

  private lineWide = (line: Pill[]): number =>
    sum(line.map(this.wideOf)) + APART * (line.length - 1);

  /** A node where the frame has it, and two of the others in each line below it. */
  private cardOf(pills: Pill[], node: HubNode): Card {
    const { pen } = this;
    const lines = [...Map.groupBy(pills, (_, k) => Math.ceil(k / 2)).values()];
    const wide = Math.max(...lines.map(this.lineWide));
    const [x, y] = [mix(46, pen.wide - 46, node.x), mix(4, pen.tall - 70, node.y)];
    const [name, tall] = [node.name, (TALL + APART) * lines.length];
    return { name, lines, x: x - wide / 2, y, wide, tall };
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
    this.paintBeads(way, colour);
  }

  private paintCard({ x, y, wide: whole, lines }: Card): void {
    const { pen } = this;
    for (const [row, line] of lines.entries()) {
      let left = x + (whole - this.lineWide(line)) / 2;
      for (const { name, text, said, isFull, isNew, round, ...pill } of line) {
        const wide = this.wideOf({ text });
        const box = { x: left, y: y + row * (TALL + APART), wide, tall: TALL };
        const { colour: stroke } = this.named(name, pill.stroke);
        pen.box(box, { fill: isFull ? stroke : "panel", stroke, width: 2, round });
        if (isNew) pen.box(grown(box, 2.5), { stroke, width: 1.2, round: 6 });
        pen.target(box, name, said);
        const style = { bold: true, align: "center", colour: isFull ? "panel" : "ink" } as const;
        pen.text(text, ...middle(box), style);
        left += wide + APART;
      }
    }
  }
}
