// The stage of a live run, whose model holds one frame, and pages that replay recorded ones.
import { add } from "../base/dom.ts";
import { Film } from "../base/film.ts";
import { observed, onPages, type View } from "../base/widget.ts";
import type { Palette, StageFrame } from "../frames.ts";
import { Stage } from "../theta/stage.ts";

const SPEEDS = { "1 batch/s": 1000, "2.5 batches/s": 400, "6.7 batches/s": 150 };

onPages<StageFrame>("stage", (root, { frames, palette, position }) => {
  const stage = new Stage(root, add(root, "div"), palette);
  const [only] = frames;
  if (only && frames.length === 1) return stage.show(only, 0);
  const painter = { draw: (frame: StageFrame, at: number) => stage.show(frame, at) };
  new Film(root, frames, painter, { start: position, every: 400, speeds: SPEEDS });
});

function render({ model, el }: View): () => void {
  const root = add(el, "div");
  const stage = new Stage(root, add(root, "div"), model.get<Palette>("palette"));
  const show = () => stage.show(model.get<StageFrame>("frame"), model.get<number>("seq"));
  const forget = observed(model, { seq: show });
  show();
  return () => {
    forget();
    stage.close();
  };
}

export default { render };
