// Run All of a notebook ends at its first picture: JupyterLab would end at the last cell.

/** Milliseconds in which the picture is scrolled back to, unless somebody scrolls. */
const KEPT = 15_000;
const TOUCHES = ["wheel", "pointerdown", "keydown", "touchmove"] as const;

/** Keeps the first picture of a JupyterLab notebook in the window until somebody uses wheel, pointer
 * or key. Elsewhere nothing is done. What it returns ends that. */
export function keepInView(root: HTMLElement): () => void {
  const began = performance.now();
  let timer = 0;
  const leave = () => {
    cancelAnimationFrame(timer);
    removeEventListener("scroll", look, true);
    for (const touch of TOUCHES) removeEventListener(touch, leave, true);
  };
  const look = () => {
    const notebook = root.closest(".jp-Notebook");
    if (performance.now() - began > KEPT) leave();
    else if (notebook?.querySelector(".braid-live .braid-cockpit") === root) {
      const { top, bottom } = root.getBoundingClientRect();
      const frame = notebook.getBoundingClientRect();
      if (top < frame.top - 1 || top > frame.bottom - 60 || bottom < frame.top) {
        root.scrollIntoView({ block: "start" });
      }
    }
  };
  const again = () => {
    timer = requestAnimationFrame(again);
    look();
  };
  again();
  addEventListener("scroll", look, true);
  for (const touch of TOUCHES) addEventListener(touch, leave, true);
  return leave;
}
