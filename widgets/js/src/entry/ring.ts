import { filmWidget } from "../base/widget.ts";
import type { RingFrame } from "../frames.ts";
import { draw } from "../psp/ring.ts";

export default filmWidget<RingFrame>("ring", draw, 700);
