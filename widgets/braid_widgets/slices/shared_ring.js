// Draws the ring of a shared join (see shared_ring.py for the fields of a frame) as SVG: one annulus for each stream, one sector for
// each host, in it the pieces of logical slices that the host holds, young to old clockwise; beside it loads, and who is served.
const EVERY = 700;
const R0 = 86, R1 = 208, X = 490;
const HALO = "paint-order: stroke; stroke: var(--braid-bg); stroke-width: 3px";

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function draw(box, frame, palette) {
  box.replaceChildren();
  const head = document.createElement("div"), under = document.createElement("div");
  head.className = "braid-title";
  under.className = "braid-note";
  head.textContent = frame.title;
  under.textContent = frame.note;
  box.append(head, under);
  const n = frame.hosts, rows = frame.queries.length, bar = Math.max(9, Math.min(18, 130 / n)), row = Math.max(11, Math.min(15, 190 / rows));
  const tall = Math.max(476, 110 + 18 * frame.streams.length + bar * n + row * rows);
  const svg = make(box, "svg", { viewBox: `0 0 900 ${tall}`, role: "img", "aria-label": `${frame.title}. ${frame.note}` });
  const colour = (s) => palette.streams[s % palette.streams.length];
  ring(svg, frame, colour);
  const below = loads(svg, frame, palette, colour, bar);
  served(svg, frame, colour, below + 34, row);
}

function ring(svg, frame, colour) {
  const n = frame.hosts, m = frame.streams.length, step = 2 * Math.PI / n, gap = n > 1 ? Math.min(0.025, step / 14) : 0.001;
  const depth = (R1 - R0) / m, lane = (s) => [R1 - (s + 1) * depth + 3, R1 - s * depth - 3], mid = (host) => (host + 0.5) * step;
  for (let host = 0; host < n; host++) {
    const [x, y] = point(mid(host), R1 + 13);
    make(svg, "text", { x, y: y + 4, "text-anchor": "middle", class: "strong" }, host);
  }
  const of = new Map();
  for (const piece of frame.pieces) {
    const key = `${piece[0]}:${piece[1]}`;
    of.set(key, [...(of.get(key) ?? []), piece]);
  }
  for (const pieces of of.values()) {
    const wide = (step - 2 * gap) / pieces.length;
    pieces.forEach(([s, host, ages, rows, share, queries], k) => {
      const [inner, outer] = lane(s), a = host * step + gap + k * wide, b = a + wide;
      const g = note(make(svg, "g", { "data-piece": `${s}:${host}:${k}` }), `${frame.streams[s]} on host ${host}, ages ${ages}: ${said(rows)} tuples; for ${queries.join(", ")}`);
      if (rows) make(g, "path", { d: sector(a, b, inner, inner + Math.max(0.05, share) * (outer - inner)), fill: colour(s), "fill-opacity": 0.3 + 0.5 * share });
      make(g, "path", { d: sector(a, b, inner, outer), class: "rule", "stroke-width": 1, style: "pointer-events: all" });
    });
  }
  for (const [s, host, ages, head] of frame.stretches) {
    const [inner, outer] = lane(s), r = (inner + outer) / 2;
    make(svg, "path", { d: sector(host * step + gap, (host + 1) * step - gap, inner, outer), fill: "none", stroke: colour(s), "stroke-width": 1.3 });
    const [x, y] = point(mid(host), r);
    if (n <= 7) make(svg, "text", { x, y: y + 4, "text-anchor": "middle", style: HALO }, ages);
    if (!head) continue;
    const [hx, hy] = point(host * step + gap + Math.min(9 / r, step / 6), r), g = note(make(svg, "g", {}), `head of ${frame.streams[s]}: host ${host}`);
    make(g, "circle", { cx: hx, cy: hy, r: 8, fill: colour(s), stroke: "var(--braid-fg)", "stroke-width": 1.5 });
    make(g, "text", { x: hx, y: hy + 4, "text-anchor": "middle", style: "font-size:11px;font-weight:600;fill:#fff" }, "H");
  }
  const lines = [[frame.batch, "strong"], [`${said(frame.mean * n)} tuples held`, "muted"], [`${said(frame.probed)} probes`, "muted"], [`${said(frame.sent)} partial sent`, "muted"]];
  lines.forEach(([text, kind], i) => make(svg, "text", { x: C, y: C - 18 + 15 * i, "text-anchor": "middle", class: kind }, text));
  make(svg, "text", { x: 4, y: 470, class: "muted" }, "H head: new tuples come in, and age clockwise from slice to slice · the fullest slice of each stream is drawn full");
}

// What every host holds, by stream; the dashed line is the mean, at which the deployment aims.
function loads(svg, frame, palette, colour, bar) {
  frame.streams.forEach((name, s) => {
    const y = 16 + 17 * s;
    make(svg, "rect", { x: X, y: y - 9, width: 11, height: 11, fill: colour(s) });
    make(svg, "text", { x: X + 18, y }, `${name}: ${said(frame.live[s])} tuples held`);
  });
  const top = 36 + 17 * frame.streams.length, sums = frame.stored.map((by) => by.reduce((a, b) => a + b, 0)), most = Math.max(1, ...sums);
  make(svg, "text", { x: X, y: top, class: "strong" }, "Tuples held by host (counted); dashed: the mean");
  const scale = 290 / most, left = X + 22;
  frame.stored.forEach((by, host) => {
    const y = top + 8 + host * bar;
    let x = left;
    make(svg, "text", { x: X + 16, y: y + bar / 2 + 4, "text-anchor": "end", style: `font-size:${Math.min(12, bar)}px` }, host);
    by.forEach((rows, s) => {
      note(make(svg, "rect", { x, y: y + 1, width: rows * scale, height: bar - 3, fill: colour(s), "data-load": `${host}:${s}` }), `host ${host}: ${said(rows)} tuples of ${frame.streams[s]}`);
      x += rows * scale;
    });
    sums[host] = [x, y, said(sums[host])];
  });
  const bottom = top + 8 + frame.hosts * bar, mean = left + frame.mean * scale;
  make(svg, "line", { x1: mean, x2: mean, y1: top + 6, y2: bottom, class: "edge", "stroke-dasharray": "3 3" });
  sums.forEach(([x, y, text]) => make(svg, "text", { x: x + 5, y: y + bar / 2 + 4, class: "muted", style: HALO }, text));
  return bottom;
}

// A row for each query, a column for each stretch of ages: filled as far as the query's window reaches into it.
function served(svg, frame, colour, top, row) {
  make(svg, "text", { x: X, y: top - 14, class: "strong" }, "Who is served by which ages of which host (Lemma 9)");
  const m = frame.streams.length, left = X + 128, wide = (900 - left - 12) / m, cell = (wide - 8) / frame.hosts;
  frame.streams.forEach((name, s) => make(svg, "text", { x: left + s * wide, y: top, class: "muted" }, `${name}, young to old`));
  frame.queries.forEach((q, i) => {
    const y = top + 5 + i * row, g = note(make(svg, "g", {}), `${q.name}: ${q.windows}${q.where ? `; ${q.where}` : ""}`);
    make(g, "text", { x: left - 6, y: y + row - 3, "text-anchor": "end", style: `font-size:${Math.min(11, row)}px` }, cut(q.name, 20));
    const place = new Map();
    for (const [s, host, used] of q.used) {
      const k = place.get(s) ?? 0, x = left + s * wide + k * cell;
      place.set(s, k + 1);
      make(g, "rect", { x, y: y + 1, width: cell - 2, height: row - 3, fill: "var(--braid-bg)", class: "rule" });
      if (used) make(g, "rect", { x, y: y + 1, width: used * (cell - 2), height: row - 3, fill: colour(s), "fill-opacity": 0.75, "data-used": `${q.name}:${s}:${host}` });
    }
  });
}
