import { header } from "../base/dom.ts";
import type { Asked } from "../base/query_help.ts";
import { filmWidget } from "../base/widget.ts";
import type { HubFrame } from "../frames.ts";

/** The map of a moment; what it tells about can be clicked. */
function draw(box: HTMLElement, frame: HubFrame): void {
  box.replaceChildren();
  header(box, frame);
  box.insertAdjacentHTML("beforeend", frame.svg);
  for (const text of box.querySelectorAll("text")) {
    const name = text.textContent ?? "";
    if (name in frame.query_texts) text.dataset.query = `:${name}`;
  }
}

/** Its frames have the words. */
const tell = ({ query_texts: told }: HubFrame, what: Asked): string =>
  ("query" in what ? told[what.query] : undefined) ?? "";

export default filmWidget<HubFrame>("hub", draw, 700, tell);
