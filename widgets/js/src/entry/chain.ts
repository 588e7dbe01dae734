import { filmWidget } from "../base/widget.ts";
import type { ChainFrame } from "../frames.ts";
import { draw } from "../slices/chain.ts";
import { describeSlice } from "../slices/descriptions.ts";

export default filmWidget<ChainFrame>("chain", draw, 700, describeSlice);
