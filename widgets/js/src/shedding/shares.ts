// The map of a join that sheds load: for each direction and age the matches that a pair is expected
// to give, filled as far as pairs are compared; beside it the results found for the work spent.
import type { ShedBar, SheddingFrame } from "../../frames.ts";
import { CanvasMap, type Detail, type Pair } from "../base/canvas_map.ts";
import { earlier, records } from "../base/columns.ts";
import { age, count, percent, shareOf, short } from "../base/format.ts";
import { type Box, mix, type Point, risen } from "../base/geometry.ts";
import { SMALL } from "../base/pen.ts";
import { hue } from "../base/theme.ts";

const nameOf = ({ stream, window, age_slice }: ShedBar): string =>
  `item:${stream}:${window}:${age_slice}`;

/** Shares of the results by shares of the work, if the pairs that give most are compared first. */
export function yieldCurve(items: ShedBar[]): Point[] {
  const best = items.toSorted((a, b) => b.matches - a.matches);
  const work = best.reduce((sum, { pairs }) => sum + pairs, 0) || 1;
  const found = best.reduce((sum, { pairs, matches }) => sum + pairs * matches, 0) || 1;
  let [x, y] = [0, 0];
  const points = best.map(({ pairs, matches }): Point => {
    [x, y] = [x + pairs / work, y + (pairs * matches) / found];
    return [x, y];
  });
  return [[0, 0], ...points];
}

/** The share of the results that a curve expects for a share of the work. */
export function expectedFor(work: number, curve: Point[]): number {
  const k = curve.findIndex(([x]) => x >= work);
  const [[x0, y0] = [0, 0], [x1, y1] = [1, 1]] = [curve[k - 1], curve[k]];
  return mix(y0, y1, shareOf(work - x0, x1 - x0));
}

/** The text about an age slice in the inspector. */
export function inspectShares(frame: SheddingFrame, selected: string): Detail | undefined {
  const item = records(frame.items).find((each) => nameOf(each) === selected);
  if (!item) return undefined;
  const [fresh, old] = [frame.streams[item.stream], frame.streams[item.window]];
  const long = frame.lengths[item.window] ?? 0;
  const ages = long ? `, ${age(item.age_slice * long)} to ${age((item.age_slice + 1) * long)}` : "";
  const pairs: Pair[] = [
    ["pairs in this batch", count(item.pairs)],
    ["matches in 1,000 pairs", frame.is_learned ? short(item.matches) : "not learned yet"],
    ["compared", percent(item.share)],
  ];
  const words = `new rows of ${fresh} against old rows of ${old}${ages}`;
  return { title: `Age slice ${item.age_slice + 1}`, words, pairs };
}

export class SharesView extends CanvasMap<SheddingFrame> {
  protected tell(frame: SheddingFrame): void {
    const shares = `${percent(frame.work)} of the work finds ${percent(frame.recall)} of the results`;
    const title = frame.is_learned ? shares : `${percent(frame.work)} of the pairs are compared`;
    this.head("", title, frame.is_learned ? ": the pairs that give most are compared" : "");
    this.signs(
      [],
      ["height: matches that a pair is expected to give", "filled: compared", "outline: left out"],
    );
    const [margin, interval] =
      frame.margin === null ? ["", ""] : [` ± ${count(frame.margin)}`, " (95 %)"];
    const found = `found ${count(frame.results)} · full join estimated ${count(frame.estimated)}`;
    this.foot(`${found}${margin}`, interval);
    this.needs(260);
  }

  protected paint(frame: SheddingFrame): void {
    const { pen } = this;
    const beside = pen.wide >= 560;
    const curve: Box = beside
      ? { x: pen.wide * 0.66, y: 22, wide: pen.wide * 0.33, tall: pen.tall - 62 }
      : { x: 30, y: pen.tall * 0.6 + 18, wide: pen.wide - 60, tall: pen.tall * 0.4 - 56 };
    const [wide, high] = beside ? [pen.wide * 0.6, pen.tall] : [pen.wide, pen.tall * 0.6];
    const ways = Map.groupBy(records(frame.items), ({ stream, window }) => `${stream} ${window}`);
    const tall = high / ways.size;
    for (const [k, items] of [...ways.values()].entries()) {
      this.paintWay(items, { x: 0, y: k * tall, wide, tall });
    }
    this.paintCurve(frame, curve);
  }

  private paintWay(items: ShedBar[], { y, wide, tall }: Box): void {
    const { pen, frame } = this;
    const [{ stream, window } = { stream: 0, window: 0 }] = items;
    const title = `new ${frame.streams[stream]} meet old ${frame.streams[window]}`;
    pen.text(title, 0, y + 8, { bold: true, colour: hue(stream) });
    const column = Math.min(72, wide / items.length);
    const top = frame.scale_max || Math.max(...items.map(({ matches }) => matches)) || 1;
    const then = earlier(this.before?.items, nameOf);
    items.forEach((item, k) => {
      const room = { x: k * column + 2, y: y + 18, wide: column - 4, tall: tall - 36 };
      this.paintBar(item, then(item), top, room);
    });
    pen.text("youngest", 0, y + tall - 8, SMALL);
    const end = items.length * column;
    if (end >= 130) pen.text("oldest", end, y + tall - 8, { ...SMALL, align: "right" });
  }

  /** The bar of an age slice, in the whole height that there is for it. */
  private paintBar(item: ShedBar, then: ShedBar, top: number, room: Box): void {
    const { pen, frame, share } = this;
    const worth = frame.scale_max ? mix(then.matches, item.matches, share) : item.matches;
    const high = Math.max(3, Math.min(1, worth / top) * (room.tall - 18));
    const [box, stroke] = [risen(room, high / room.tall), hue(item.stream)];
    pen.box(risen(box, mix(then.share, item.share, share)), { fill: stroke, round: 2 });
    pen.box(box, pen.outline(nameOf(item)) ?? { stroke, width: 1.2, round: 2 });
    const [x, text] = [box.x + box.wide / 2, percent(item.share)];
    const style = { size: 11, bold: true, align: "center", room: box.wide + 1 } as const;
    pen.text(text, x, box.y - 9, style);
    const pays = frame.is_learned ? `, ${short(item.matches)} matches in 1,000 pairs` : "";
    const said = `Age slice ${item.age_slice + 1}: ${text} of ${count(item.pairs)} pairs compared`;
    pen.targets.push({ box: room, name: nameOf(item), text: `${said}${pays}` });
  }

  private paintCurve(frame: SheddingFrame, box: Box): void {
    const { pen } = this;
    const { x, y, wide, tall } = box;
    const at = ([a, b]: Point): Point => [x + a * wide, y + (1 - b) * tall];
    pen.text("results found for work spent", x, y - 12, { bold: true });
    pen.box(box, { fill: "panel", stroke: "rule" });
    pen.box({ ...box, wide: frame.work * wide }, { fill: "accent", alpha: 0.12 });
    pen.straight(x, y + tall, x + wide, y, "muted", 1, [4, 4]);
    const curve = yieldCurve(records(frame.items));
    pen.line(curve.map(at), "accent", 2.5);
    const [left, level] = at([frame.work, frame.recall]);
    pen.straight(left, y + tall, left, y, "ink", 1.5);
    pen.dot([left, level], 6, "ink", "panel", 2);
    const right = frame.work < 0.5;
    const beside = { bold: true, align: right ? "left" : "right", ground: "panel" } as const;
    const [edge, low] = [left + (right ? 12 : -12), Math.min(y + tall - 26, level + 18)];
    pen.text(`${percent(frame.recall)} found`, edge, low, beside);
    const expected = `${percent(expectedFor(frame.work, curve))} expected`;
    if (frame.is_learned) pen.text(expected, edge, low + 16, { ...beside, ...SMALL, bold: false });
    const spent = `${percent(frame.work)} of pairs compared`;
    pen.text(spent, x, y + tall + 13, { bold: true, colour: "accent" });
    pen.text("dashed: pairs left out at random", x, y + tall + 29, SMALL);
  }
}
