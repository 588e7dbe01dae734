// Draws the ring (see ring.py for the fields of a frame) as SVG: one annulus for each stream, one sector for each node.
const EVERY = 700;
const R0 = 96, R1 = 205;

function draw(box, frame, palette, glide) {
  box.replaceChildren();
  const head = document.createElement("div"), under = document.createElement("div");
  head.className = "braid-title";
  under.className = "braid-note";
  head.textContent = frame.title;
  under.textContent = frame.note;
  box.append(head, under);
  const svg = make(box, "svg", { viewBox: "0 0 860 470", role: "img", "aria-label": `${frame.title}. ${frame.note}` });
  const n = Math.max(1, frame.nodes), m = frame.streams.length, step = 2 * Math.PI / n, gap = n > 1 ? Math.min(0.03, step / 12) : 0.001;
  const depth = (R1 - R0) / m, mid = (node) => (node + 0.5) * step, colour = (s) => palette.streams[s % palette.streams.length];
  const lane = (s) => [R1 - (s + 1) * depth + 3, R1 - s * depth - 3];
  for (let node = 0; node < n; node++) {
    const [x, y] = point(mid(node), R1 + 14);
    make(svg, "text", { x, y: y + 4, "text-anchor": "middle", class: "strong" }, node);
    for (let s = 0; s < m; s++) {
      const [inner, outer] = lane(s);
      make(svg, "path", { d: sector(node * step + gap, (node + 1) * step - gap, inner, outer), class: "rule", "stroke-width": 1 });
    }
  }
  for (const [s, node, rows, share, lasts] of frame.slices) {
    const [inner, outer] = lane(s), d = sector(node * step + gap, (node + 1) * step - gap, inner, inner + Math.max(0.06, share) * (outer - inner));
    const piece = make(svg, "path", { d, fill: colour(s), "fill-opacity": 0.35 + 0.5 * share, "data-slice": `${s}:${node}` });
    note(piece, `${frame.streams[s]} on node ${node}: ${said(rows)} tuples stored${lasts ? `, slice of ${lasts}` : ""}`);
  }
  frame.ends.forEach(([first, last], s) => {
    const [inner, outer] = lane(s), r = (inner + outer) / 2;
    if (last != null) mark(svg, mid(last) + (first === last ? step / 5 : 0), r, "T", colour(s), `tail of ${frame.streams[s]}: node ${last}`);
    if (first != null) mark(svg, mid(first) - (first === last ? step / 5 : 0), r, "H", colour(s), `head of ${frame.streams[s]}: node ${first}`);
  });
  flights(svg, frame, palette, mid, glide);
  moves(svg, frame, colour, mid, lane, step, glide);
  centre(svg, frame);
  bars(svg, frame, palette);
}

function mark(svg, angle, radius, letter, colour, title) {
  const [x, y] = point(angle, radius), g = note(make(svg, "g", {}), title);
  make(g, "circle", { cx: x, cy: y, r: 8.5, fill: letter === "H" ? colour : "var(--braid-bg)", stroke: letter === "H" ? "var(--braid-fg)" : colour, "stroke-width": 2 });
  const text = make(g, "text", { x, y: y + 4, "text-anchor": "middle", class: "strong", style: "font-size:11px" }, letter);
  if (letter === "H") text.style.fill = "#ffffff";
}

// What is in flight: new tuples and intermediate results go round; as many dots as the square root of their number.
function flights(svg, frame, palette, mid, glide) {
  const kinds = [...frame.probes.map((k, s) => [k, palette.streams[s % palette.streams.length], frame.ends[s][0] ?? 0]), [frame.partial, "var(--braid-muted)", 0]];
  kinds.forEach(([count, fill, from], k) => {
    const dots = Math.min(14, Math.ceil(Math.sqrt(count))), radius = R0 - 9 - 7 * k;
    if (!dots || radius < 40) return;
    make(svg, "circle", { cx: C, cy: C, r: radius, class: "rule", "stroke-dasharray": "1 4" });
    const turn = make(svg, "g", {});
    for (let i = 0; i < dots; i++) {
      const [cx, cy] = point(mid(from) + i * 2 * Math.PI / dots, radius);
      make(turn, "circle", { cx, cy, r: 2.6, fill });
    }
    if (glide) turn.animate([{ transform: "rotate(0deg)" }, { transform: "rotate(360deg)" }].map((f) => ({ ...f, transformOrigin: `${C}px ${C}px` })), { duration: glide });
  });
}

// State that moves from node to node: by age, or because the ring has another length now.
function moves(svg, frame, colour, mid, lane, step, glide) {
  for (const [s, from, to, rows, why] of frame.moves) {
    const [inner, outer] = lane(s), r = (inner + outer) / 2, [x0, y0] = point(mid(from), r), [x1, y1] = point(mid(to), r);
    const turn = ((to - from) * step + 3 * Math.PI) % (2 * Math.PI) - Math.PI; // the short way round
    const bend = Math.abs(turn) < 1.6 ? point(mid(from) + turn / 2, r / Math.cos(turn / 2)) : point(mid(from) + turn / 2, R0 / 3);
    const [mx, my] = bend;
    const d = `M${x0} ${y0}Q${mx} ${my} ${x1} ${y1}`;
    make(svg, "path", { d, fill: "none", stroke: colour(s), "stroke-width": 1.4, "stroke-dasharray": why === "aged" ? "none" : "4 3", opacity: 0.8 });
    const chip = note(make(svg, "rect", { x: -5, y: -5, width: 10, height: 10, fill: "var(--braid-bg)", stroke: colour(s), "stroke-width": 2 }), `${said(rows)} tuples of ${frame.streams[s]}: node ${from} → node ${to}, ${why}`);
    const at = (t) => `translate(${(1 - t) ** 2 * x0 + 2 * t * (1 - t) * mx + t * t * x1}px, ${(1 - t) ** 2 * y0 + 2 * t * (1 - t) * my + t * t * y1}px)`;
    chip.style.transform = at(0.6);
    if (glide) chip.animate([0, 0.2, 0.4, 0.6, 0.8, 1].map((t) => ({ transform: at(t) })), { duration: glide });
  }
}

function centre(svg, frame) {
  const lines = [[frame.batch, "strong"], [`${said(frame.stored)} stored`, "muted"], [`${said(frame.sent)} sent on`, "muted"]];
  lines.forEach(([text, kind], i) => make(svg, "text", { x: C, y: C - 10 + 16 * i, "text-anchor": "middle", class: kind }, text));
}

// At the right: streams with their colours, then what each node does and holds.
function bars(svg, frame, palette) {
  const x = 490, wide = 350, most = Math.max(1, ...frame.loads.map((l) => l.value)), tall = Math.min(22, 310 / Math.max(1, frame.loads.length));
  frame.streams.forEach((name, s) => {
    const y = 20 + 18 * s, length = frame.lengths[s];
    make(svg, "rect", { x, y: y - 9, width: 11, height: 11, fill: palette.streams[s % palette.streams.length] });
    make(svg, "text", { x: x + 18, y }, `${name}: ${said(frame.live[s])} tuples, window ${length}`);
  });
  const top = 36 + 18 * frame.streams.length;
  make(svg, "text", { x, y: top, class: "strong" }, frame.measure);
  frame.loads.forEach(({ node, value, text }, i) => {
    const y = top + 10 + i * tall, g = note(make(svg, "g", {}), `node ${node}: ${text}`);
    make(g, "text", { x: x + 16, y: y + tall / 2 + 4, "text-anchor": "end", style: `font-size:${Math.min(12, tall)}px` }, node);
    make(g, "rect", { x: x + 22, y: y + 2, width: Math.max(0.5, (wide - 90) * value / most), height: Math.max(2, tall - 4), fill: palette.hosts[node % palette.hosts.length] });
    make(g, "text", { x: x + 28 + (wide - 90) * value / most, y: y + tall / 2 + 4, style: `font-size:${Math.min(11, tall)}px`, class: "muted" }, text);
  });
  const words = [
    "H head: new tuples come in · T tail: the oldest leave",
    "dots: tuples (coloured), intermediate results (grey)",
    "squares: state on its way; dashed: the ring was resized",
  ];
  words.forEach((text, i) => make(svg, "text", { x, y: 426 + 16 * i, class: "muted" }, text));
}
