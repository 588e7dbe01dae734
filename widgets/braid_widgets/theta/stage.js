// Paints one frame (see stage.py for its fields) on a canvas: join matrix, hosts, time line.
// The same code serves the live widget and the page that replays a recording.

const GLIDE = 600; // milliseconds that blocks in transit take to their new host
const FONT = "12px system-ui, sans-serif", SMALL = "11px system-ui, sans-serif";
const EDGE = 2; // pixels at both sides that stay blank, so that no line or letter is cut

function fingerprint(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}

const channels = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
function luminance(colour) {
  const [r, g, b] = channels(colour).map((v) => v / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
const ink = (colour) => (luminance(colour) > 0.22 ? "#111111" : "#ffffff");
const paler = (colour) => "#" + channels(colour).map((v) => Math.round(0.6 * v + 102).toString(16).padStart(2, "0")).join("");

const count = (n) => (n == null ? "–" : Math.round(n).toLocaleString("en"));
function short(n) {
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (Math.abs(n) >= size) return String(+(n / size).toPrecision(3)) + unit;
  return String(+n.toPrecision(3));
}

class Painter {
  constructor(root, palette) {
    this.root = root;
    this.palette = palette;
    root.classList.add("braid");
    root.setAttribute("role", "img");
    [this.title, this.note, this.canvas, this.tip] = ["div", "div", "canvas", "div"].map((t) => document.createElement(t));
    this.title.className = "braid-title";
    this.note.className = "braid-note";
    this.tip.className = "braid-tip";
    root.append(this.title, this.note, this.canvas, this.tip);
    this.targets = [];
    this.canvas.addEventListener("mousemove", (e) => this.point(e));
    this.canvas.addEventListener("mouseleave", () => (this.tip.style.display = "none"));
    const again = () => this.frame && this.paint(1);
    this.resize = new ResizeObserver(again);
    this.resize.observe(root);
    this.theme = new MutationObserver(again);
    this.theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"] });
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", again);
    this.again = again;
  }

  close() {
    cancelAnimationFrame(this.timer);
    this.resize.disconnect();
    this.theme.disconnect();
    this.scheme.removeEventListener("change", this.again);
  }

  show(frame, seq) {
    cancelAnimationFrame(this.timer);
    this.frame = frame;
    this.title.textContent = frame.title ?? "";
    this.note.textContent = frame.note ?? "";
    this.root.setAttribute("aria-label", `${frame.title}. ${frame.note}`);
    const finish = () => {
      this.paint(1);
      this.root.dataset.hash = fingerprint(JSON.stringify(frame));
      this.root.dataset.seq = seq;
    };
    const moves = frame.matrix && frame.matrix.chips.length;
    if (!moves || document.hidden || matchMedia("(prefers-reduced-motion: reduce)").matches) return finish();
    const began = performance.now();
    const step = (now) => {
      const t = Math.min(1, Math.max(0, (now - began) / GLIDE));
      if (t >= 1) return finish();
      this.paint(t);
      this.timer = requestAnimationFrame(step);
    };
    this.paint(0);
    this.timer = requestAnimationFrame(step);
  }

  host(h) { return this.palette.hosts[h % this.palette.hosts.length]; }

  // Lines and texts on a dark ground are painted paler than on a light one.
  on(colour) { return this.dark ? paler(colour) : colour; }
  shade(name) { return this.on(this.palette[name]); }
  stream(s) { return this.on(this.palette.streams[s % this.palette.streams.length]); }

  paint(t) {
    if (!this.root.isConnected) return; // the observer of its size paints it once it has one
    const width = Math.max(280, this.canvas.clientWidth) - 2 * EDGE, wide = width >= 620;
    const side = Math.floor(Math.min(wide ? (width - 24) / 2 : width, 520));
    const line = this.frame.line ? 250 : 0, rows = wide ? side : 2 * side + 12;
    const height = rows + (line ? line + 18 : 0), ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round((width + 2 * EDGE) * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const css = getComputedStyle(this.root);
    [this.fg, this.muted, this.rule, this.bg] = ["fg", "muted", "line", "bg"].map((n) => css.getPropertyValue(`--braid-${n}`).trim());
    this.dark = css.color.match(/\d+/)[0] > 127;
    const c = (this.c = this.canvas.getContext("2d"));
    c.setTransform(ratio, 0, 0, ratio, EDGE * ratio, 0);
    c.clearRect(-EDGE, 0, width + 2 * EDGE, height);
    this.targets = [];
    if (this.frame.matrix) this.matrix(this.frame.matrix, 0, 0, side, t);
    if (this.frame.grid) wide ? this.grid(this.frame.grid, side + 24, 0, side) : this.grid(this.frame.grid, 0, side + 12, side);
    if (line) this.line(this.frame.line, 0, rows + 18, width, line);
  }

  text(text, x, y, { colour = this.fg, align = "left", base = "middle", font = FONT, turn = 0, max } = {}) {
    const c = this.c;
    c.save();
    c.translate(x, y);
    c.rotate(turn);
    c.fillStyle = colour; c.font = font; c.textAlign = align; c.textBaseline = base;
    max ? c.fillText(text, 0, 0, max) : c.fillText(text, 0, 0);
    c.restore();
  }

  // Two lines at most, broken at a dot.
  remark(text, x, y, max) {
    const c = this.c, lines = [""];
    c.font = SMALL;
    for (const part of text.split(" · ")) {
      const longer = lines.at(-1) ? `${lines.at(-1)} · ${part}` : part;
      c.measureText(longer).width > max && lines.at(-1) && lines.length < 2 ? lines.push(part) : (lines[lines.length - 1] = longer);
    }
    lines.forEach((line, i) => this.text(line, x, y + 14 * i, { colour: this.muted, font: SMALL, max }));
  }

  // Row 0 is on top, column 0 at the left; the key spaces of both streams span the same length, so unit cells are squares.
  matrix(m, x, y, side, t) {
    const c = this.c, x0 = x + 24, y0 = y + 40, size = side - 62;
    this.text(m.title, x, y + 8, { font: "600 " + FONT, max: side });
    this.text(`${m.streams[1]}: ${count(m.rows[1])} tuples  →`, x0, y0 - 10, { colour: this.stream(1) });
    this.text(`←  ${m.streams[0]}: ${count(m.rows[0])} tuples`, x + 10, y0 + size, { colour: this.stream(0), turn: -Math.PI / 2 });
    for (const [top, bottom, left, right, host, percent, moving] of m.cells) {
      const [a, b, w, h] = [x0 + left * size, y0 + top * size, (right - left) * size, (bottom - top) * size];
      const colour = this.host(host);
      c.globalAlpha = 0.2 + 0.8 * percent / 100;
      c.fillStyle = colour;
      c.fillRect(a, b, w, h);
      c.globalAlpha = 1;
      c.strokeStyle = this.bg;
      c.lineWidth = Math.min(1, w / 6, h / 6);
      c.strokeRect(a, b, w, h);
      this.targets.push([a, b, w, h, `host ${host}: ${percent}% of due pairs joined${moving ? ", migrating" : ""}`]);
      const font = Math.min(13, h - 2, (w - 3) / (0.62 * String(host).length));
      if (font >= 7) this.text(host, a + w / 2, b + h / 2, { colour: percent > 50 ? ink(colour) : this.fg, align: "center", font: `${font}px system-ui, sans-serif` });
    }
    for (const [top, bottom, left, right, , , moving] of m.cells) {
      const [w, h] = [(right - left) * size, (bottom - top) * size];
      if (!moving || Math.min(w, h) < 9) continue;
      const inset = Math.min(1.5, w / 4, h / 4);
      c.strokeStyle = this.fg;
      c.lineWidth = Math.min(2, w / 12, h / 12);
      c.setLineDash(Math.min(w, h) < 26 ? [] : [4, 2]);
      c.strokeRect(x0 + left * size + inset, y0 + top * size + inset, w - 2 * inset, h - 2 * inset);
      c.setLineDash([]);
    }
    c.strokeStyle = this.rule;
    c.lineWidth = 1;
    c.strokeRect(x0 - 0.5, y0 - 0.5, size + 1, size + 1);
    if (!m.cells.length) this.text("no pair has met yet", x0 + size / 2, y0 + size / 2, { colour: this.muted, align: "center" });
    const ease = t * t * (3 - 2 * t);
    for (const [ax, ay, bx, by, stream, rows, from, to] of m.chips) {
      const [p, q] = [x0 + ax * size, y0 + ay * size], [px, py] = [p + (bx - ax) * size * ease, q + (by - ay) * size * ease];
      const colour = this.stream(stream), r = m.chips.length > 40 ? 3 : 5;
      c.globalAlpha = 0.55;
      c.strokeStyle = colour;
      c.lineWidth = 1.2;
      c.beginPath(); c.moveTo(p, q); c.lineTo(px, py); c.stroke();
      c.globalAlpha = 1;
      c.fillStyle = this.bg;
      c.lineWidth = 2;
      c.fillRect(px - r, py - r, 2 * r, 2 * r);
      c.strokeRect(px - r, py - r, 2 * r, 2 * r);
      this.targets.push([px - r - 1, py - r - 1, 2 * r + 2, 2 * r + 2, `${count(rows)} tuples of ${m.streams[stream]}: host ${from} → host ${to}`]);
    }
    this.remark(m.note, x0, y0 + size + 11, size);
  }

  // One box for each host, at its row and column in its group's grid; the bar is what it stores, the tick the mean (ILF).
  grid(g, x, y, side) {
    const c = this.c, x0 = x, y0 = y + 40, size = side - 62, gap = g.groups.length > 1 ? 14 : 0;
    this.text(g.title, x, y + 8, { font: "600 " + FONT, max: side });
    this.text(g.scale, x, y0 - 10, { colour: this.muted, max: side });
    const total = g.groups.reduce((sum, group) => sum + Math.sqrt(group.cells.length), 0), room = size - gap * (g.groups.length - 1);
    let top = y0;
    for (const group of g.groups) {
      const tall = room * Math.sqrt(group.cells.length) / total, [w, h] = [side / group.m, tall / group.n];
      for (const [host, row, column] of group.cells) {
        const [a, b, stored] = [x0 + column * w, top + row * h, g.stored[host] ?? 0], pad = Math.min(1, w / 8, h / 8);
        const upright = w <= 2 * h, share = g.top ? stored / g.top : 0, mean = g.top ? g.mean / g.top : 0;
        c.fillStyle = this.host(host);
        upright ? c.fillRect(a + pad, b + h - pad - share * (h - 2 * pad), w - 2 * pad, share * (h - 2 * pad))
                : c.fillRect(a + pad, b + pad, share * (w - 2 * pad), h - 2 * pad);
        c.strokeStyle = this.rule;
        c.lineWidth = Math.min(1, w / 6, h / 6);
        c.strokeRect(a, b, w, h);
        c.strokeStyle = this.shade("bound");
        c.lineWidth = 1.5;
        c.beginPath();
        if (upright) { const v = b + h - pad - mean * (h - 2 * pad); c.moveTo(a, v); c.lineTo(a + w, v); }
        else { const u = a + pad + mean * (w - 2 * pad); c.moveTo(u, b); c.lineTo(u, b + h); }
        c.stroke();
        const font = Math.min(12, h - 2, (w - 3) / (0.62 * String(host).length));
        if (font >= 7) {
          const low = upright ? b + h - pad - font * 0.75 : b + h / 2, left = upright ? a + w / 2 : a + 4;
          const on = upright ? share * h > font : share * w > font * 2;
          this.text(host, left, low, { align: upright ? "center" : "left", colour: on ? ink(this.host(host)) : this.fg, font: `${font}px system-ui, sans-serif` });
        }
        this.targets.push([a, b, w, h, `host ${host}${group.mapping ? `, row ${row}, column ${column}` : ""}: ${count(stored)} tuples stored`]);
      }
      top += tall + gap;
    }
    this.remark(g.note, x, y0 + size + 11, side);
  }

  line(l, x, y, width, height) {
    const c = this.c, left = x + 40, w = width - 40 - 46, first = l.batch[0] ?? 0, last = Math.max(l.batch.at(-1) ?? 0, l.last, first + 1);
    const at = (b) => left + (b - first) / (last - first) * w, tall = (height - 46) / l.panels.length - 22;
    this.text(l.title, x, y + 8, { font: "600 " + FONT, max: width });
    const panels = l.panels.map((p, i) => ({ ...p, top: y + 34 + i * (tall + 22), tall }));
    for (const p of panels) {
      c.fillStyle = this.palette.migration;
      c.globalAlpha = 0.25;
      for (const [a, b] of l.migrations) c.fillRect(Math.max(left, at(a - 0.5)), p.top, Math.min(at(b + 0.5), left + w) - Math.max(left, at(a - 0.5)), p.tall);
      c.globalAlpha = 1;
      c.strokeStyle = this.rule;
      c.lineWidth = 1;
      c.strokeRect(left, p.top, w, p.tall);
      p.curves.forEach((curve, side) => this.curve(curve, side, l.batch, at, p, left, w));
    }
    const bottom = y + height - 23, every = Math.ceil((last - first) / 10);
    for (let b = first; b <= last; b += every) this.text(b, at(b), bottom, { colour: this.muted, align: "center" });
    this.text(l.axis, left + w / 2, bottom + 13, { colour: this.muted, align: "center" });
  }

  curve(curve, side, batches, at, p, left, w) {
    const c = this.c, known = curve.values.filter((v) => v != null), floor = curve.floor ?? 0;
    const peak = Math.min(curve.cap ?? Infinity, Math.max(curve.ceiling ?? 0, ...known)), top = peak + (peak - floor) * 0.06 || 1;
    const to = (v) => p.top + p.tall - (v - floor) / (top - floor) * p.tall;
    const edge = side ? left + w + 4 : left - 4, align = side ? "left" : "right", colour = this.shade(curve.colour);
    if (curve.bound) {
      c.strokeStyle = this.shade("bound");
      c.lineWidth = 1.2;
      c.setLineDash([5, 3]);
      c.beginPath(); c.moveTo(left, to(curve.bound)); c.lineTo(left + w, to(curve.bound)); c.stroke();
      c.setLineDash([]);
      this.text(curve.bound, edge, to(curve.bound), { colour: this.shade("bound"), align });
    }
    this.text(curve.name, side ? left + w : left, p.top - 8, { colour, align: side ? "right" : "left", font: SMALL });
    if (!known.length) return;
    this.text(short(floor), edge, p.top + p.tall - 4, { colour, align });
    if (peak > floor && (!curve.bound || to(curve.bound) - to(peak) > 13)) this.text(short(peak), edge, to(peak) + 2, { colour, align });
    c.save();
    c.beginPath();
    c.rect(left - 2, p.top, w + 4, p.tall);
    c.clip();
    c.strokeStyle = c.fillStyle = colour;
    c.lineWidth = 1.6;
    c.beginPath();
    let pen = false;
    curve.values.forEach((v, i) => {
      if (v == null) { pen = false; return; }
      pen ? c.lineTo(at(batches[i]), to(v)) : c.moveTo(at(batches[i]), to(v));
      pen = true;
    });
    c.stroke();
    if (known.length === 1) c.fillRect(at(batches.at(-1)) - 2, to(known[0]) - 2, 4, 4);
    c.restore();
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left - EDGE, y = event.clientY - box.top;
    const hit = this.targets.findLast(([a, b, w, h]) => x >= a && x <= a + w && y >= b && y <= b + h);
    this.tip.style.display = hit ? "block" : "none";
    if (!hit) return;
    this.tip.textContent = hit[4];
    this.tip.style.left = `${Math.max(0, Math.min(x + 12, box.width - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${this.canvas.offsetTop + y + 16}px`;
  }
}

function render({ model, el }) {
  const root = document.createElement("div");
  el.append(root);
  const painter = new Painter(root, model.get("palette"));
  const show = () => painter.show(model.get("frame"), model.get("seq"));
  model.on("change:seq", show);
  show();
  return () => { model.off("change:seq", show); painter.close(); };
}

// A page without a kernel: frames, a slider, Play and speed.
export function replay(root, frames, palette) {
  const painter = new Painter(root, palette);
  if (frames.length < 2) return painter.show(frames[0], 0);
  const bar = document.createElement("div");
  bar.className = "braid-controls";
  bar.innerHTML = '<button type="button">Play</button><input type="range" min="0" value="0" aria-label="batch"><span></span>' +
    '<select aria-label="speed"><option value="1000">1 batch/s</option><option value="400" selected>2.5 batches/s</option><option value="150">6.7 batches/s</option></select>';
  root.append(bar);
  const [button, slider, label, speed] = bar.children;
  slider.max = slider.value = frames.length - 1; // opens on the end; Play starts from the beginning
  let timer = null;
  const show = () => { label.textContent = `${+slider.value + 1} / ${frames.length}`; painter.show(frames[+slider.value], +slider.value); };
  const stop = () => { clearInterval(timer); timer = null; button.textContent = "Play"; };
  const next = () => { if (+slider.value >= frames.length - 1) return stop(); slider.value = +slider.value + 1; show(); };
  const play = () => { if (+slider.value >= frames.length - 1) slider.value = 0; timer = setInterval(next, +speed.value); button.textContent = "Pause"; show(); };
  button.addEventListener("click", () => (timer ? stop() : play()));
  speed.addEventListener("change", () => { if (timer) { stop(); play(); } });
  slider.addEventListener("input", () => { stop(); show(); });
  show();
}

export default { render };
