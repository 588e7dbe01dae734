import { filmWidget } from "../base/widget.ts";
import type { SharedFrame } from "../frames.ts";
import { describePiece } from "../slices/descriptions.ts";
import { draw } from "../slices/shared_ring.ts";

export default filmWidget<SharedFrame>("shared_ring", draw, 700, describePiece);
