import { draw } from "../base/stepper.ts";
import { filmWidget } from "../base/widget.ts";
import type { StepFrame } from "../frames.ts";

export default filmWidget<StepFrame>("steps", draw, 1600);
