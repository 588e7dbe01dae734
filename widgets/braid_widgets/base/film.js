// Goes through frames, forwards and backwards, by buttons, keys, a slider and Play. The file before this one has draw(box, frame, palette, glide)
// and EVERY, milliseconds from one frame to the next.

export function film(root, frames, palette, start, moved = () => {}) {
  root.classList.add("braid");
  root.tabIndex = 0;
  const box = document.createElement("div"), bar = document.createElement("div");
  bar.className = "braid-controls";
  bar.innerHTML = '<button type="button" aria-label="back">◀</button><button type="button" data-play>Play</button>' +
    '<button type="button" aria-label="forward">▶</button><input type="range" min="0" aria-label="position"><span></span>';
  root.append(box, bar);
  const [back, play, forward, slider, label] = bar.children;
  let at = start, timer = null;

  const show = (glide) => {
    slider.max = frames.length - 1;
    slider.value = at;
    label.textContent = `${at + 1} / ${frames.length}`;
    back.disabled = at === 0;
    forward.disabled = at === frames.length - 1;
    const still = !glide || document.hidden || matchMedia("(prefers-reduced-motion: reduce)").matches;
    draw(box, frames[at], palette, still ? 0 : EVERY * 0.8);
    root.dataset.seq = at;
  };
  const go = (to, glide = false) => {
    const next = Math.max(0, Math.min(frames.length - 1, to));
    if (next === at) return;
    at = next;
    show(glide);
    moved(at);
  };
  const stop = () => { clearInterval(timer); timer = null; play.textContent = "Play"; };
  const step = () => (at >= frames.length - 1 ? stop() : go(at + 1, true));
  const toggle = () => {
    if (timer) return stop();
    if (at >= frames.length - 1) go(0);
    timer = setInterval(step, EVERY);
    play.textContent = "Pause";
  };
  back.addEventListener("click", () => { stop(); go(at - 1); });
  forward.addEventListener("click", () => { stop(); go(at + 1, true); });
  play.addEventListener("click", toggle);
  slider.addEventListener("input", () => { stop(); go(+slider.value); });
  root.addEventListener("keydown", (e) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (!by || e.target === slider) return;
    e.preventDefault();
    e.stopPropagation();
    stop();
    go(at + by, by > 0);
  });
  show(false);
  return {
    load: (others, to) => { frames = others; at = Math.min(to, frames.length - 1); show(false); },
    go: (to) => go(to, false),
    stop,
  };
}

function render({ model, el }) {
  const root = document.createElement("div");
  el.append(root);
  const moved = (at) => { model.set("position", at); model.save_changes(); };
  const shown = film(root, model.get("frames"), model.get("palette"), model.get("position"), moved);
  const load = () => shown.load(model.get("frames"), model.get("position")), place = () => shown.go(model.get("position"));
  root.addEventListener("pick", (e) => { model.set("picked", e.detail); model.save_changes(); });
  model.on("change:frames", load);
  model.on("change:position", place);
  return () => { model.off("change:frames", load); model.off("change:position", place); shown.stop(); };
}

export default { render };
