// The map of a hub: sources, nodes and sites; a link is as wide as its bytes in the batch. Operators
// stand below their node, queries below the site where they are asked.
import type { HubFlow, HubFrame, HubNode, HubRequest } from "../../frames.ts";
import { CanvasMap, type Shown } from "../base/canvas_map.ts";
import { records } from "../base/columns.ts";
import { count, short } from "../base/format.ts";
import { type Box, eased, mix, type Point } from "../base/pen.ts";
import type { Shade } from "../base/theme.ts";
import type { Detail, Pair } from "../cockpit/details.ts";

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
    return {
      title: `Query “${name}”`,
      words: `asked at ${query.sink}${found}`,
      pairs: [...pairs, ...work],
    };
  }
  if (kind === "operator" && operator) {
    return {
      title: `Operator ${id}`,
      words: `${operator.streams} at ${operator.node}`,
      pairs: work,
    };
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
  return Array.from({ length: number }, (_, k): Point => {
    const way = (k + (time % 1)) / number;
    return [mix(a[0], b[0], way), mix(a[1], b[1], way)];
  });
}

export class NetworkView extends CanvasMap<HubFrame> {
  protected tell(frame: HubFrame): void {
    const [queries, operators] = [frame.queries.name.length, frame.operators.id.length];
    const some = (n: number, what: string) => `${n} ${what}${n === 1 ? "" : "s"}`;
    const served = queries === 1 ? "query is" : "queries are";
    this.head(
      `widest link: ${bytes(frame.scale_max)} a batch`,
      `${queries} ${served} answered by ${some(operators, "operator")}`,
    );
    const signs = Object.values(KINDS).map(({ shade, text }) => ({ sign: "○", shade, text }));
    const streams = frame.streams.map((name, stream) => ({ sign: "●", stream, text: name }));
    this.signs([...streams, ...signs, { text: "framed twice: built or moved just now" }]);
    const moved = records(frame.moves).map(({ operator, source, target, bytes: size }) => {
      return `operator ${operator} moved from ${source} to ${target}, ${bytes(size)}`;
    });
    const saved = frame.saved_share;
    const reuse = saved === null ? "" : `; reuse saves ${Math.round(100 * saved)} % (modelled)`;
    this.foot(
      `${bytes(frame.bytes)} over all links${reuse}`,
      moved.length ? ` · ${moved.join(", ")}` : "",
    );
    this.needs(240);
  }

  protected paint({ frame, before, time, selected }: Shown<HubFrame>): void {
    const { pen } = this;
    const nodes = records(frame.nodes);
    const places = new Map(
      nodes.map(({ name, x, y }): [string, Point] => [
        name,
        [mix(46, pen.wide - 46, x), mix(16, pen.tall - 58, y)],
      ]),
    );
    const at = (name: string): Point => places.get(name) ?? [0, 0];
    const down = new Set(nodes.filter(({ is_down }) => is_down).map(({ name }) => name));
    for (const { first, second } of records(frame.links)) {
      const dash = down.has(first) || down.has(second) ? [3, 5] : [];
      pen.line([at(first), at(second)], pen.theme.shade("rule"), 2, dash);
    }
    const flows = records(frame.flows);
    const older = new Map(before ? records(before.flows).map((f) => [keyOf(f), f.bytes]) : []);
    for (const flow of flows) {
      const size = mix(older.get(keyOf(flow)) ?? 0, flow.bytes, eased(time));
      this.paintFlow(flow, size / (frame.scale_max || 1), at, flows, time);
    }
    for (const { source, target } of records(frame.moves)) {
      pen.line([at(source), at(target)], pen.theme.shade("bad"), 3, [6, 4]);
    }
    for (const node of nodes) this.paintNode(node, at(node.name), selected === `node:${node.name}`);
    for (const node of nodes) this.paintGuests(frame, node.name, at(node.name), selected);
  }

  private paintFlow(
    flow: HubFlow,
    share: number,
    at: (name: string) => Point,
    flows: HubFlow[],
    time: number,
  ): void {
    const { pen } = this;
    const [a, b] = [at(flow.source), at(flow.target)];
    const beside = flows.filter(
      ({ source, target }) =>
        (source === flow.source && target === flow.target) ||
        (source === flow.target && target === flow.source),
    );
    const shift = 7 * (beside.indexOf(flow) - (beside.length - 1) / 2);
    const sign = flow.source < flow.target ? 1 : -1;
    const long = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
    const [dx, dy] = [
      (-sign * shift * (b[1] - a[1])) / long,
      (sign * shift * (b[0] - a[0])) / long,
    ];
    const way: [Point, Point] = [
      [a[0] + dx, a[1] + dy],
      [b[0] + dx, b[1] + dy],
    ];
    const colour = flow.stream < 0 ? pen.theme.shade("ink") : pen.theme.stream(flow.stream);
    pen.line(way, colour, 1.5 + 11 * share, [], 0.4);
    for (const bead of beads(way, time, 46)) pen.dot(bead, 2.6, colour);
  }

  private paintNode(node: HubNode, [x, y]: Point, on: boolean): void {
    const { pen } = this;
    const { name, streams, is_down } = node;
    const wide = Math.max(30, pen.width(name, 12, true) + 14);
    const box = { x: x - wide / 2, y: y - 12, wide, tall: 24 };
    const [stream] = streams;
    const own = stream === undefined ? pen.theme.shade("muted") : pen.theme.stream(stream);
    const stroke = on ? pen.theme.shade("accent") : is_down ? pen.theme.shade("bad") : own;
    const round = node.role === "source" ? 12 : 5;
    const fill = pen.theme.shade("panel");
    pen.box(box, { fill, stroke, width: on || is_down || streams.length ? 2.5 : 1.2, round });
    const colour = pen.theme.shade(is_down ? "bad" : "ink");
    pen.text(name, x, y, { bold: true, align: "center", colour });
    pen.target(box, `node:${name}`, is_down ? `${name} is down` : `${name}: ${node.role}`);
    if (is_down) this.label("down", x, y - 20, { shade: "bad" });
  }

  /** The operators at a node and the queries that are asked there, in lines below it. */
  private paintGuests(frame: HubFrame, node: string, [x, y]: Point, selected: string): void {
    const guests = [
      ...records(frame.operators)
        .filter((each) => each.node === node)
        .map(({ id, streams, is_changed }) => ({
          name: `operator:${id}`,
          text: `⋈${id}`,
          said: `Operator ${id}: ${streams}`,
          shade: "ink" as Shade,
          isNew: is_changed,
          solid: true,
        })),
      ...records(frame.queries)
        .filter(({ sink }) => sink === node)
        .map((query) => ({
          name: `query:${query.name}`,
          text: query.name,
          said: `Query ${query.name}: ${kindOf(query).text}`,
          shade: kindOf(query).shade,
          isNew: false,
          solid: false,
        })),
    ];
    const { pen } = this;
    const widths = guests.map(({ text }) => pen.width(text, 11, true) + 12);
    const lines: number[][] = [[]];
    let room = 150;
    widths.forEach((wide, k) => {
      if (wide > room && lines.at(-1)?.length) {
        lines.push([]);
        room = 150;
      }
      lines.at(-1)?.push(k);
      room -= wide + 4;
    });
    lines.forEach((line, row) => {
      const wide = line.reduce((sum, k) => sum + (widths[k] ?? 0) + 4, -4);
      let left = Math.max(0, Math.min(pen.wide - wide, x - wide / 2));
      for (const k of line) {
        const guest = guests[k];
        const box = { x: left, y: y + 15 + 20 * row, wide: widths[k] ?? 0, tall: 17 };
        if (guest) this.paintGuest(guest, box, selected === guest.name);
        left += box.wide + 4;
      }
    });
  }

  private paintGuest(
    { name, text, said, shade, solid, isNew }: Guest,
    box: Box,
    on: boolean,
  ): void {
    const { pen } = this;
    const colour = pen.theme.shade(on ? "accent" : shade);
    const ground = pen.theme.shade("panel");
    pen.box(box, {
      fill: solid ? colour : ground,
      stroke: colour,
      width: on ? 2.5 : 1.5,
      round: solid ? 4 : 9,
    });
    const outer = { x: box.x - 2.5, y: box.y - 2.5, wide: box.wide + 5, tall: box.tall + 5 };
    if (isNew) pen.box(outer, { stroke: colour, width: 1.2, round: 6 });
    pen.target(box, name, said);
    this.label(text, box.x + box.wide / 2, box.y + box.tall / 2, {
      shade: "ink",
      ink: solid ? ground : "",
    });
  }

  /** A text, unless another is there already. */
  private label(
    text: string,
    x: number,
    y: number,
    { shade, ink }: { shade: Shade; ink?: string },
  ): void {
    const { pen } = this;
    const half = pen.width(text, 11, true) / 2;
    if (!pen.isFree({ x: x - half, y: y - 6, wide: 2 * half, tall: 12 })) return;
    pen.text(text, x, y, {
      size: 11,
      bold: true,
      align: "center",
      colour: ink || pen.theme.shade(shade),
    });
  }
}

interface Guest {
  name: string;
  text: string;
  said: string;
  shade: Shade;
  solid: boolean;
  isNew: boolean;
}

const keyOf = ({ source, target, stream }: HubFlow): string => `${source} ${target} ${stream}`;
