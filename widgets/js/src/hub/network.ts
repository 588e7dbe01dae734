// The map of a hub: sources, nodes and sites; a link is as wide as its bytes in the batch. Operators
// stand below their node, queries below the site where they are asked.
import type { HubFlow, HubFrame, HubNode } from "../../frames.ts";
import { CanvasMap, chosen, type Detail, type Pair, type Sign } from "../base/canvas_map.ts";
import { earlier, records, sum } from "../base/columns.ts";
import { count, percent, several, shareOf, short } from "../base/format.ts";
import type { Box } from "../base/geometry.ts";
import { beside, entryOf, grown, middle, mix, spreadOut, tipOf } from "../base/geometry.ts";
import { hue, type Shade } from "../base/theme.ts";

const KINDS: Record<string, Sign> = {
  new: { sign: "○", shade: "muted", text: "a join of its own", isMinor: true },
  holds: { sign: "○", shade: "good", text: "answered by a running operator", isMinor: true },
  relaxed: { sign: "○", shade: "near", text: "a running operator was widened", isMinor: true },
  changed: { sign: "◎", shade: "ink", text: "built or moved just now", isMinor: true },
};

const bytes = (size: number): string => `${short(size)}B`.replace(/([kMG]?B)$/, " $1");

/** The text about a query, an operator or a node in the inspector. */
export function inspectHub(frame: HubFrame, selected: string): Detail | undefined {
  const node = chosen(frame.nodes, "node", "name", selected);
  if (node) {
    const own = records(frame.operators).filter((operator) => operator.node === node.name);
    const sent = (side: "source" | "target") =>
      bytes(sum(records(frame.flows).map((flow) => (flow[side] === node.name ? flow.bytes : 0))));
    const pairs: Pair[] = [
      ...own.map(({ id, live }): Pair => [`operator ${id} holds`, `${count(live)} rows`]),
      ["bytes in, this batch", sent("target")],
      ["bytes out, this batch", sent("source")],
    ];
    return { title: node.name, words: node.is_down ? "down" : node.role, pairs };
  }
  const operator = chosen(frame.operators, "operator", "id", selected);
  if (operator) {
    const { id, node: place, streams, reads, demands, results, live, live_bytes } = operator;
    const pairs: Pair[] = [
      ["it reads", reads.join(", ")],
      ["queries and operators that it serves", count(demands)],
      ["its results so far", count(results)],
      ["rows that it holds", `${count(live)}, ${bytes(live_bytes)}`],
    ];
    return { title: `Operator ${id}`, words: `${streams} at ${place}`, pairs };
  }
  const query = chosen(frame.queries, "query", "name", selected);
  if (!query) return undefined;
  const served = inspectHub(frame, `operator:${query.operator}`);
  const found = served ? `, answered by operator ${query.operator}: ${served.words}` : "";
  const pairs: Pair[] = [
    [KINDS[query.reuse_kind]?.text ?? "", ""],
    ["text", query.sql],
    ["considered: bytes in transit, modelled", ""],
    ...query.options.map((option, k): Pair => [option, String(query.costs[k])]),
    ...(served?.pairs ?? []),
  ];
  return { title: `Query “${query.name}”`, words: `asked at ${query.sink}${found}`, pairs };
}

/** A node, an operator or a query, as it is painted. */
interface Pill {
  name: string;
  text: string;
  said: string;
  stroke: Shade;
  round: number;
  isNew?: boolean;
}

/** A node, then the operators that run there, then the queries that are asked there. */
function pillsOf({ operators, queries }: HubFrame, node: HubNode): Pill[] {
  const { name: place, role, is_down, streams } = node;
  const said = `${place}: ${is_down ? "down" : role}`;
  const own = streams[0] === undefined ? "muted" : hue(streams[0]);
  const [stroke, round] = [is_down ? "bad" : own, role === "source" ? 12 : 5] as const;
  const here = records(operators).filter((operator) => operator.node === place);
  const asked = records(queries).filter(({ sink }) => sink === place);
  return [
    { name: `node:${place}`, text: is_down ? said : place, said, stroke, round },
    ...here.map(({ id, streams: joined, is_changed: isNew }): Pill => {
      const [name, said] = [`operator:${id}`, `Operator ${id}: ${joined}`];
      return { name, text: `⋈${id}`, said, stroke: "ink", round: 4, isNew };
    }),
    ...asked.map(({ name: text, reuse_kind }): Pill => {
      const { text: how = "", shade: stroke = "muted" } = KINDS[reuse_kind] ?? {};
      return { name: `query:${text}`, text, said: `Query ${text}: ${how}`, stroke, round: 9 };
    }),
  ];
}

/** The height of pills, and the distance between them. */
const [TALL, APART] = [21, 4];

export class NetworkView extends CanvasMap<HubFrame> {
  protected tell({ queries, operators, saved_share: saved, ...frame }: HubFrame): void {
    const asked = several(queries.name.length, "query");
    const by = several(operators.id.length, "operator");
    this.head(`widest link: ${bytes(frame.scale_max)} a batch`, `${asked} answered by ${by}`);
    this.signs(frame.streams, Object.values(KINDS), "●");
    const reuse = saved === null ? "" : `; reuse saves ${percent(saved)} (modelled)`;
    this.foot(`${bytes(frame.bytes)} over all links${reuse}`);
    this.needs(240);
  }

  protected paint(frame: HubFrame): void {
    const { pen } = this;
    const area = { x: 2, y: 2, wide: pen.wide - 4, tall: pen.tall - 4 };
    const nodes = records(frame.nodes).map((node) => this.cardOf(node, pillsOf(frame, node)));
    const cards = spreadOut(nodes, area, 6);
    const boxOf = (name: string): Box => cards.find((card) => card.name === name) ?? area;
    const at = (name: string) => middle({ ...boxOf(name), tall: TALL });
    const down = nodes.flatMap(({ name, is_down }) => (is_down ? name : []));
    for (const { first, second } of records(frame.links)) {
      const dash = down.includes(first) || down.includes(second) ? [3, 5] : [];
      pen.line([at(first), at(second)], "rule", 2, dash);
    }
    const linkOf = ({ source, target }: HubFlow) => [source, target].sort().join(" ");
    const then = earlier(this.before?.flows, (flow) => flow.source + flow.stream + linkOf(flow));
    for (const flows of Map.groupBy(records(frame.flows), linkOf).values()) {
      for (const [k, flow] of flows.entries()) {
        const apart = (flow.source < flow.target ? 7 : -7) * (k - (flows.length - 1) / 2);
        const way = beside(at(flow.source), at(flow.target), apart);
        const share = shareOf(mix(then(flow).bytes, flow.bytes, this.share), frame.scale_max);
        const colour = flow.stream < 0 ? "ink" : hue(flow.stream);
        pen.line(way, colour, 1.5 + 11 * share, [], 0.4);
        this.paintBeads(way, colour);
        pen.line(tipOf(way[0], entryOf(way, boxOf(flow.target)), 10), colour, 2.5);
      }
    }
    for (const { source: a, target: b } of records(frame.moves)) {
      this.paintMove(at(a), entryOf([at(a), at(b)], boxOf(b)), "ink", this.share);
    }
    for (const card of cards) this.paintCard(card, pillsOf(frame, card));
  }

  /** A node where the frame has it, and below it two of the others in a line. */
  private cardOf(node: HubNode, pills: Pill[]): HubNode & Box {
    const { pen } = this;
    const column = Math.max(30, ...pills.map(({ text }) => pen.width(text, 12, true) + 14));
    const wide = pills.length > 2 ? 2 * column + APART : column;
    const tall = Math.ceil((pills.length + 1) / 2) * (TALL + APART);
    const [x, y] = [mix(46, pen.wide - 46, node.x), mix(4, pen.tall - 70, node.y)];
    return { ...node, x: x - wide / 2, y, wide, tall };
  }

  private paintCard({ x, y, wide: whole }: Box, pills: Pill[]): void {
    const { pen } = this;
    const wide = pills.length > 2 ? (whole - APART) / 2 : whole;
    pills.forEach(({ name, text, said, stroke: shade, round, isNew }, k) => {
      const isAlone = k === 0 || (k % 2 === 1 && k === pills.length - 1);
      const left = isAlone ? (whole - wide) / 2 : k % 2 ? 0 : wide + APART;
      const box = { x: x + left, y: y + Math.ceil(k / 2) * (TALL + APART), wide, tall: TALL };
      const { colour: stroke } = this.named(name, shade);
      const colour = shade === "ink" ? "panel" : "ink";
      pen.box(box, { fill: colour === "ink" ? "panel" : stroke, stroke, width: 2, round });
      if (isNew) pen.box(grown(box, 2.5), { stroke, width: 1.2, round: 6 });
      pen.target(box, name, said);
      pen.text(text, ...middle(box), { bold: true, align: "center", colour });
    });
  }
}
