// Thumbs for the number boxes of the panel that this widget is in.

import { makeSliders } from "../base/sliders.ts";
import type { View } from "../base/widget.ts";

/** Milliseconds between two looks for the panel, which is there when all its parts are. */
const EVERY = 50;

function render({ el }: View): () => void {
  el.hidden = true;
  let watching: MutationObserver | undefined;
  const look = setInterval(() => {
    const controls = el.closest(".braid-panel")?.querySelector(".widget-gridbox");
    if (!controls) return;
    clearInterval(look);
    makeSliders(controls);
    watching = new MutationObserver(() => makeSliders(controls));
    watching.observe(controls, { childList: true });
  }, EVERY);
  return () => {
    clearInterval(look);
    watching?.disconnect();
  };
}

export default { render };
