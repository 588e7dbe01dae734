// The map of a hub: sources, nodes and sites; a link is as wide as its bytes in the batch. Operators
// stand below their node, queries below the site where they are asked.
import type { HubFlow, HubFrame, HubNode, HubRequest } from "../../frames.ts";
import { CanvasMap, type Detail, type Pair } from "../base/canvas_map.ts";
import { records } from "../base/columns.ts";
import { count, short } from "../base/format.ts";
import { along, type Box, grown, mix, type Point } from "../base/pen.ts";
import { hue, type Shade } from "../base/theme.ts";

const KINDS: Record<string, { shade: Shade; text: string }> = {
  new: { shade: "muted", text: "a join of its own" },
  holds: { shade: "good", text: "answered by a running operator" },
  relaxed: { shade: "near", text: "a running operator was widened" },
};

const kindOf = ({ reuse_kind }: HubRequest) =>
  KINDS[reuse_kind] ?? { shade: "muted" as const, text: "" };

const bytes = (size: number): string => `${short(size)}B`.replace(/([kMG]?B)$/, " $1");

/** The text about a query, an operator or a node in the inspector. */
export function inspectHub(frame: HubFrame, selected: string): Detail | undefined {
  const operators = records(frame.operators);
  const [kind, ...rest] = selected.split(":");
  const name = rest.join(":");
  const query = kind === "query" && records(frame.queries).find((each) => each.name === name);
  const id = query ? query.operator : Number(name);
  const operator = operators.find((each) => each.id === id && kind !== "node");
  const work: Pair[] = operator
    ? [
        ["it reads", operator.reads.join(", ")],
        ["queries and operators that it serves", count(operator.demands)],
        ["its results so far", count(operator.results)],
        ["rows that it holds", `${count(operator.live)}, ${bytes(operator.live_bytes)}`],
      ]
    : [];
  if (query) {
    const found = operator ? `, answered by operator ${id} at ${operator.node}` : "";
    const considered = query.options.map((option, k): Pair => [option, String(query.costs[k])]);
    const head: Pair = ["considered: bytes in transit, modelled", ""];
    const pairs: Pair[] = [[kindOf(query).text, ""], ["text", query.sql], head, ...considered];
    const words = `asked at ${query.sink}${found}`;
    return { title: `Query “${name}”`, words, pairs: [...pairs, ...work] };
  }
  if (kind === "operator" && operator) {
    const words = `${operator.streams} at ${operator.node}`;
    return { title: `Operator ${id}`, words, pairs: work };
  }
  const node = kind === "node" && records(frame.nodes).find((each) => each.name === name);
  if (!node) return undefined;
  const own = operators.filter((each) => each.node === name);
  const flows = records(frame.flows);
  const sum = (side: "source" | "target") =>
    bytes(flows.reduce((total, flow) => total + (flow[side] === name ? flow.bytes : 0), 0));
  const pairs: Pair[] = [
    ["operators", own.map((each) => each.id).join(", ") || "none"],
    ["rows that they hold", count(own.reduce((total, { live }) => total + live, 0))],
    ["bytes in, this batch", sum("target")],
    ["bytes out, this batch", sum("source")],
  ];
  return { title: name, words: node.is_down ? "down" : node.role, pairs };
}

/** Points at even distances of a way; ``time`` moves them by one distance. */
export function beads([a, b]: [Point, Point], time: number, apart: number): Point[] {
  const long = Math.hypot(b[0] - a[0], b[1] - a[1]);
  const number = Math.max(1, Math.floor(long / apart));
  return Array.from({ length: number }, (_, k) => along(a, b, (k + (time % 1)) / number));
}

/** An operator or a query, which stands below its node. */
interface Guest {
  name: string;
  text: string;
  said: string;
  shade: Shade;
  isOperator: boolean;
  isNew: boolean;
}

/** The operators at a node, and the queries that are asked there. */
function guestsOf({ operators, queries }: HubFrame, node: string): Guest[] {
  const here = records(operators).filter((each) => each.node === node);
  const asked = records(queries).filter(({ sink }) => sink === node);
  return [
    ...here.map(({ id, streams, is_changed: isNew }): Guest => {
      const said = `Operator ${id}: ${streams}`;
      return {
        name: `operator:${id}`,
        text: `⋈${id}`,
        said,
        shade: "ink",
        isNew,
        isOperator: true,
      };
    }),
    ...asked.map((query): Guest => {
      const { text: how, shade } = kindOf(query);
      const [name, said] = [`query:${query.name}`, `Query ${query.name}: ${how}`];
      return { name, text: query.name, said, shade, isNew: false, isOperator: false };
    }),
  ];
}

/** Guests in lines that are about as wide as this, in pixels. */
const LINE = 150;

export class NetworkView extends CanvasMap<HubFrame> {
  private places = new Map<string, Point>();

  protected tell(frame: HubFrame): void {
    const [queries, operators] = [frame.queries.name.length, frame.operators.id.length];
    const served = queries === 1 ? "query is" : "queries are";
    const by = `${operators} operator${operators === 1 ? "" : "s"}`;
    const widest = `widest link: ${bytes(frame.scale_max)} a batch`;
    this.head(widest, `${queries} ${served} answered by ${by}`);
    const signs = Object.values(KINDS).map(({ shade, text }) => ({ sign: "○", shade, text }));
    const streams = frame.streams.map((name, stream) => ({ sign: "●", stream, text: name }));
    this.signs([...streams, ...signs, { text: "framed twice: built or moved just now" }]);
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
    const { pen, before } = this;
    const nodes = records(frame.nodes);
    const place = (x: number, y: number): Point => [
      mix(46, pen.wide - 46, x),
      mix(16, pen.tall - 58, y),
    ];
    this.places = new Map(nodes.map(({ name, x, y }) => [name, place(x, y)]));
    const down = new Set(nodes.filter(({ is_down }) => is_down).map(({ name }) => name));
    for (const { first, second } of records(frame.links)) {
      const dash = down.has(first) || down.has(second) ? [3, 5] : [];
      pen.line([this.at(first), this.at(second)], "rule", 2, dash);
    }
    const flows = records(frame.flows);
    const older = new Map(before ? records(before.flows).map((f) => [keyOf(f), f.bytes]) : []);
    for (const flow of flows) {
      const size = mix(older.get(keyOf(flow)) ?? 0, flow.bytes, this.share);
      this.paintFlow(flow, size / (frame.scale_max || 1), flows);
    }
    for (const { source, target } of records(frame.moves)) {
      pen.line([this.at(source), this.at(target)], "bad", 3, [6, 4]);
    }
    for (const node of nodes) this.paintNode(node);
    for (const { name } of nodes) this.paintGuests(guestsOf(frame, name), this.at(name));
  }

  private at(name: string): Point {
    return this.places.get(name) ?? [0, 0];
  }

  private paintFlow({ source, target, stream }: HubFlow, share: number, flows: HubFlow[]): void {
    const { pen } = this;
    const [a, b] = [this.at(source), this.at(target)];
    const ends = [source, target].sort().join(" ");
    const beside = flows.filter((each) => [each.source, each.target].sort().join(" ") === ends);
    const place = beside.findIndex((each) => each.source === source && each.stream === stream);
    const long = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
    const aside = ((source < target ? 7 : -7) * (place - (beside.length - 1) / 2)) / long;
    const [dx, dy] = [-aside * (b[1] - a[1]), aside * (b[0] - a[0])];
    const way: [Point, Point] = [
      [a[0] + dx, a[1] + dy],
      [b[0] + dx, b[1] + dy],
    ];
    const colour = stream < 0 ? "ink" : hue(stream);
    pen.line(way, colour, 1.5 + 11 * share, [], 0.4);
    for (const bead of beads(way, this.time, 46)) pen.dot(bead, 2.6, colour);
  }

  private paintNode({ name, streams: [stream], is_down, role }: HubNode): void {
    const { pen } = this;
    const [x, y] = this.at(name);
    const on = this.selected === `node:${name}`;
    const wide = Math.max(30, pen.width(name, 12, true) + 14);
    const box = { x: x - wide / 2, y: y - 12, wide, tall: 24 };
    const own = stream === undefined ? "muted" : hue(stream);
    const stroke = on ? "accent" : is_down ? "bad" : own;
    const width = on || is_down || stream !== undefined ? 2.5 : 1.2;
    pen.box(box, { fill: "panel", stroke, width, round: role === "source" ? 12 : 5 });
    pen.text(name, x, y, { bold: true, align: "center", colour: is_down ? "bad" : "ink" });
    pen.target(box, `node:${name}`, is_down ? `${name} is down` : `${name}: ${role}`);
    if (is_down) this.label("down", x, y - 20, "bad");
  }

  /** Guests in lines below their node. */
  private paintGuests(guests: Guest[], [x, y]: Point): void {
    const { pen } = this;
    const sized = guests.map((guest) => ({ guest, wide: pen.width(guest.text, 11, true) + 12 }));
    const lines: (typeof sized)[] = [];
    let room = 0;
    for (const each of sized) {
      if (each.wide > room) lines.push([]);
      room = (lines.at(-1)?.length ? room : LINE) - each.wide - 4;
      lines.at(-1)?.push(each);
    }
    lines.forEach((line, row) => {
      const whole = line.reduce((sum, { wide }) => sum + wide + 4, -4);
      let left = Math.max(0, Math.min(pen.wide - whole, x - whole / 2));
      for (const { guest, wide } of line) {
        this.paintGuest(guest, { x: left, y: y + 15 + 20 * row, wide, tall: 17 });
        left += wide + 4;
      }
    });
  }

  private paintGuest({ name, text, said, shade, isOperator, isNew }: Guest, box: Box): void {
    const { pen } = this;
    const on = this.selected === name;
    const stroke = on ? "accent" : shade;
    const fill = isOperator ? stroke : "panel";
    pen.box(box, { fill, stroke, width: on ? 2.5 : 1.5, round: isOperator ? 4 : 9 });
    if (isNew) pen.box(grown(box, 2.5), { stroke, width: 1.2, round: 6 });
    pen.target(box, name, said);
    const ink = isOperator ? "panel" : "ink";
    this.label(text, box.x + box.wide / 2, box.y + box.tall / 2, ink);
  }

  /** A text, unless another is there already. */
  private label(text: string, x: number, y: number, colour: Shade): void {
    const { pen } = this;
    const wide = pen.width(text, 11, true);
    if (!pen.isFree({ x: x - wide / 2, y: y - 6, wide, tall: 12 })) return;
    pen.text(text, x, y, { size: 11, bold: true, align: "center", colour });
  }
}

const keyOf = ({ source, target, stream }: HubFlow): string => `${source} ${target} ${stream}`;
