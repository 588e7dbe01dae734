// Run All of a notebook ends at its first picture: JupyterLab would end at the last cell.

/** Milliseconds in which the picture is scrolled back to, unless somebody scrolls. */
const KEPT = 15_000;
const TOUCHES = ["wheel", "pointerdown", "keydown", "touchmove"] as const;

/** Keeps the first picture of a JupyterLab notebook in the window until somebody uses wheel, pointer
 * or key. Elsewhere nothing is done. What it returns ends that. */
export function keepInView(root: HTMLElement): () => void {
  const until = performance.now() + KEPT;
  const ended = new AbortController();
  const leave = () => ended.abort();
  const look = () => {
    if (ended.signal.aborted || performance.now() > until) return leave();
    const notebook = root.closest(".jp-Notebook");
    if (notebook?.querySelector(".braid-live .braid-cockpit") === root) {
      const { top, bottom } = root.getBoundingClientRect();
      const frame = notebook.getBoundingClientRect();
      if (top < frame.top - 1 || top > frame.bottom - 60 || bottom < frame.top) {
        root.scrollIntoView({ block: "start" });
      }
    }
    requestAnimationFrame(look);
  };
  look();
  const options = { capture: true, signal: ended.signal };
  for (const touch of TOUCHES) addEventListener(touch, leave, options);
  return leave;
}
