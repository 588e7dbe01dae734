// The map of a join that sheds load: for each direction and age the matches that a pair is expected
// to give, filled as far as pairs are compared; beside it the results found for the work spent.
import type { ShedBar, SheddingFrame } from "../../frames.ts";
import { CanvasMap, type Shown } from "../base/canvas_map.ts";
import { records } from "../base/columns.ts";
import { age, count, short } from "../base/format.ts";
import { type Box, eased, mix, type Point } from "../base/pen.ts";
import type { Detail, Pair } from "../cockpit/details.ts";

export const percent = (share: number): string => {
  return `${share > 0 && share < 0.01 ? "<1" : Math.round(100 * share)} %`;
};

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
    ["pairs compared, all slices", count(frame.compared)],
    ["pairs left out, all slices", count(frame.left_out)],
    ["results found", count(frame.results)],
    ["full join, estimated", estimate(frame)],
  ];
  const words = `new rows of ${fresh} against old rows of ${old}${ages}`;
  return { title: `Age slice ${item.age_slice + 1}`, words, pairs };
}

const estimate = ({ estimated, margin }: SheddingFrame): string =>
  `${count(estimated)}${margin === null ? "" : ` ± ${count(margin)}`}`;

export class SharesView extends CanvasMap<SheddingFrame> {
  protected tell(frame: SheddingFrame): void {
    const shares = `${percent(frame.work)} of the work finds ${percent(frame.recall)} of the results`;
    const title = frame.is_learned ? shares : `${percent(frame.work)} of the pairs are compared`;
    this.head("", title, frame.is_learned ? ": the pairs that give most are compared" : "");
    this.signs([{ text: "filled: compared" }, { text: "outline: left out" }]);
    const interval = frame.margin === null ? "" : " (95 %)";
    const found = `found ${count(frame.results)} · full join estimated ${estimate(frame)}`;
    this.foot(found, interval);
    this.needs(260);
  }

  protected paint({ frame, before, time, selected }: Shown<SheddingFrame>): void {
    const { pen } = this;
    const beside = pen.wide >= 560;
    const curve: Box = beside
      ? { x: pen.wide * 0.66, y: 22, wide: pen.wide * 0.33, tall: pen.tall - 62 }
      : { x: 30, y: pen.tall * 0.6 + 18, wide: pen.wide - 60, tall: pen.tall * 0.4 - 56 };
    const room = beside
      ? { wide: pen.wide * 0.6, tall: pen.tall }
      : { wide: pen.wide, tall: pen.tall * 0.6 };
    const ways = Map.groupBy(records(frame.items), ({ stream, window }) => `${stream} ${window}`);
    const older = new Map(before ? records(before.items).map((item) => [nameOf(item), item]) : []);
    [...ways.values()].forEach((items, k) => {
      const tall = room.tall / ways.size;
      const box = { x: 0, y: k * tall, wide: room.wide, tall };
      this.paintWay(frame, items, older, eased(time), box, selected);
    });
    this.paintCurve(frame, curve);
  }

  private paintWay(
    frame: SheddingFrame,
    items: ShedBar[],
    older: Map<string, ShedBar>,
    share: number,
    { x, y, wide, tall }: Box,
    selected: string,
  ): void {
    const { pen } = this;
    const [first] = items;
    if (!first) return;
    const colour = pen.theme.stream(first.stream);
    const title = `new ${frame.streams[first.stream]} meet old ${frame.streams[first.window]}`;
    pen.text(title, x, y + 8, { bold: true, colour });
    const [top, base] = [y + 36, y + tall - 18];
    const column = Math.min(72, wide / items.length);
    const scale = frame.scale_max || Math.max(...items.map(({ matches }) => matches)) || 1;
    const settled = frame.scale_max > 0;
    items.forEach((item, k) => {
      const then = older.get(nameOf(item)) ?? item;
      const worth = settled ? mix(then.matches, item.matches, share) : item.matches;
      const high = Math.max(3, Math.min(1, worth / scale) * (base - top));
      const filled = high * mix(then.share, item.share, share);
      const box = {
        x: x + k * column + 2,
        y: base - high,
        wide: column - 4,
        tall: high,
      };
      const on = nameOf(item) === selected;
      pen.box({ ...box, y: base - filled, tall: filled }, { fill: colour, round: 2 });
      const stroke = on ? pen.theme.shade("accent") : colour;
      pen.box(box, { stroke, width: on ? 2.5 : 1.2, round: 2 });
      const text = percent(item.share);
      if (pen.width(text, 11, true) < column - 3) {
        const middle = box.x + box.wide / 2;
        pen.text(text, middle, box.y - 9, { size: 11, bold: true, align: "center" });
      }
      const whole = { x: box.x, y: y + 18, wide: box.wide, tall: base - y - 18 };
      const pays = frame.is_learned ? `, ${short(item.matches)} matches in 1,000 pairs` : "";
      const said = `Age slice ${item.age_slice + 1}: ${text} of ${count(item.pairs)} pairs compared`;
      pen.target(whole, nameOf(item), `${said}${pays}`);
    });
    const muted = { size: 11, colour: pen.theme.shade("muted") };
    pen.text("youngest", x, y + tall - 8, muted);
    if (items.length * column < 130) return;
    pen.text("oldest", x + items.length * column, y + tall - 8, { ...muted, align: "right" });
  }

  private paintCurve(frame: SheddingFrame, box: Box): void {
    const { pen } = this;
    const { x, y, wide, tall } = box;
    const at = ([a, b]: Point): Point => [x + a * wide, y + (1 - b) * tall];
    pen.text("results found for work spent", x, y - 12, { bold: true });
    pen.box(box, { fill: pen.theme.shade("panel"), stroke: pen.theme.shade("rule") });
    const muted = pen.theme.shade("muted");
    const accent = pen.theme.shade("accent");
    pen.box({ ...box, wide: frame.work * wide }, { fill: accent, alpha: 0.12 });
    pen.line([at([0, 0]), at([1, 1])], muted, 1, [4, 4]);
    pen.line(yieldCurve(records(frame.items)).map(at), accent, 2.5);
    const cut: Point = [frame.work, frame.recall];
    pen.line([at([frame.work, 0]), at([frame.work, 1])], pen.theme.shade("ink"), 1.5);
    pen.dot(at(cut), 6, pen.theme.shade("ink"), pen.theme.shade("panel"), 2);
    const [left, level] = at(cut);
    const found = `${percent(frame.recall)} of results`;
    const right = frame.work < 0.5;
    const beside = { bold: true, align: right ? "left" : "right" } as const;
    const low = Math.min(y + tall - 10, level + 18);
    pen.text(found, left + (right ? 12 : -12), low, beside);
    const spent = `${percent(frame.work)} of pairs compared`;
    pen.text(spent, x, y + tall + 13, { bold: true, colour: accent });
    pen.text("dashed: pairs left out at random", x, y + tall + 29, { size: 11, colour: muted });
  }
}
