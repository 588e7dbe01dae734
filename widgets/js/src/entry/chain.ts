import { filmWidget } from "../base/widget.ts";
import type { ChainFrame } from "../frames.ts";
import { draw } from "../slices/chain.ts";
import { ofChain } from "../slices/telling.ts";

export default filmWidget<ChainFrame>("chain", draw, 700, ofChain);
