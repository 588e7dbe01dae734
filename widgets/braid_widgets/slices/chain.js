// Draws the chain of a shared run (see chain.py for the fields of a frame) as SVG: for each stream its slices by age, and under them
// the windows of the queries that they serve.
const EVERY = 700;
const LEFT = 74, RIGHT = 730, WIDE = 1000, TALL = 62, CUT = "#e03131";

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// Places of ages, and ages of places, between marks.
function between(pairs, value) {
  const k = Math.max(1, pairs.findIndex(([from]) => from >= value)), [a, x] = pairs[k - 1], [b, y] = pairs[k] ?? pairs[k - 1];
  return b === a ? x : x + (y - x) * (value - a) / (b - a);
}

function draw(box, frame, palette, glide) {
  box.replaceChildren();
  const head = document.createElement("div"), under = document.createElement("div");
  head.className = "braid-title";
  under.className = "braid-note";
  head.textContent = frame.title;
  under.textContent = frame.note;
  box.append(head, under);
  const most = Math.max(...frame.streams.map((s) => s.queries.length)), lane = most > 16 ? 8 : 15;
  const tops = [];
  let y = 24;
  for (const s of frame.streams) {
    tops.push(y);
    y += TALL + 34 + lane * s.queries.length + 34;
  }
  const svg = make(box, "svg", { viewBox: `0 0 ${WIDE} ${y + (frame.pick ? 20 : 4)}`, role: "group", "aria-label": `${frame.title}. ${frame.note}` });
  frame.streams.forEach((s, k) => stream(svg, s, tops[k], lane, frame.pick, palette.streams[s.index % palette.streams.length], glide, box));
  const words = ["fill: tuples held · n →: aged into the next slice since the batch before", "✂: cut off, no later query wants them · bars: windows of the queries"];
  make(svg, "text", { x: LEFT, y: y - 4, class: "muted" }, words.join(" · "));
  if (frame.pick) make(svg, "text", { x: LEFT, y: y + 12, class: "muted" }, "Click the boundary of two slices to merge them, or inside a slice to split it there (live runs).");
}

function stream(svg, s, top, lane, pick, colour, glide, box) {
  const at = (age) => LEFT + (RIGHT - LEFT) * between(s.marks.map(([a, , x]) => [a, x]), age);
  const held = s.slices.reduce((sum, [, , rows]) => sum + rows, 0), bottom = top + TALL, foot = bottom + 24 + lane * s.queries.length;
  make(svg, "text", { x: 4, y: top + 22, class: "strong", style: "font-size:15px" }, s.name);
  make(svg, "text", { x: 4, y: top + 38, class: "muted" }, `${said(held)} held`);
  if (s.came) make(svg, "text", { x: LEFT - 6, y: top - 7, "text-anchor": "end" }, `${said(s.came)} →`);
  s.slices.forEach(([from, to, rows, share, serves], k) => {
    const x = at(from), width = at(to) - x, full = Math.max(rows ? 2 : 0, share * (TALL - 4));
    const g = note(make(svg, "g", { "data-slice": `${s.index}:${k}` }), `slice ${k + 1} of ${s.name}, ages ${age(s, from)} to ${age(s, to)}: ${said(rows)} tuples\nserves ${serves}`);
    make(g, "rect", { x, y: bottom - 2 - full, width, height: full, fill: colour, "fill-opacity": 0.55 });
    const cell = make(g, "rect", { x, y: top, width, height: TALL, class: "edge", "stroke-width": 1.2, "pointer-events": "all" });
    if (width > 9 + 7 * said(rows).length) make(g, "text", { x: x + width / 2, y: top + TALL / 2 + 4, "text-anchor": "middle", class: "strong" }, said(rows));
    if (pick) split(svg, cell, s, from, to, box);
  });
  axis(svg, s, at, bottom, foot);
  flows(svg, s, at, top, colour, glide);
  queries(svg, s, at, bottom + 24, lane, colour);
  if (pick) s.slices.slice(0, -1).forEach(([, to]) => boundary(svg, s, to, at(to), top, box));
}

const age = (s, micros) => s.marks.find(([a]) => a === micros)?.[1] ?? `${micros / 1e6} s`;

// Ages under the chain: slices' ends in full, windows that end inside a slice in grey.
function axis(svg, s, at, bottom, foot) {
  const ends = new Set([0, ...s.slices.map(([, to]) => to)]);
  const told = [...s.marks].sort(([a], [b]) => ends.has(b) - ends.has(a)), taken = [];
  for (const [micros, text] of told) {
    const x = at(micros), own = ends.has(micros);
    if (micros) make(svg, "line", { x1: x, x2: x, y1: bottom + 20, y2: foot, class: "rule", "stroke-dasharray": own ? "none" : "2 4" });
    if (micros && !own) make(svg, "line", { x1: x, x2: x, y1: bottom - TALL, y2: bottom, class: "rule", "stroke-dasharray": "2 4", "pointer-events": "none" });
    if (taken.some((other) => Math.abs(other - x) < 12 + 6 * text.length)) continue;
    taken.push(x);
    make(svg, "text", { x, y: bottom + 15, "text-anchor": "middle", class: own ? "" : "muted" }, text);
  }
}

// What has aged over a boundary, what was cut off there, what has left at the end.
function flows(svg, s, at, top, colour, glide) {
  const over = new Map(), told = [];
  for (const [i, j, rows] of s.aged) {
    for (let k = i; k < j; k++) over.set(k, (over.get(k) ?? 0) + rows);
    token(svg, (at(s.slices[i][0]) + at(s.slices[i][1])) / 2, (at(s.slices[j][0]) + at(s.slices[j][1])) / 2, top, 0, colour, glide);
  }
  for (const [k, rows] of s.cut) token(svg, at(s.slices[Math.min(k, s.slices.length - 1)][0]), at(s.slices[Math.min(k, s.slices.length - 1)][0]), top, TALL + 26, CUT, glide);
  const cut = new Map(s.cut);
  s.slices.forEach(([from, to], k) => {
    const parts = [[over.get(k) ? `${said(over.get(k))} →` : "", ""], [cut.get(k + 1) ? ` ✂ ${said(cut.get(k + 1))}` : "", CUT]];
    if (k < s.slices.length - 1) label(svg, at(to), top - 7, parts, told);
  });
  const first = cut.get(0), last = s.slices.length - 1;
  if (first) label(svg, (at(0) + at(s.slices[0][1])) / 2, top - 7, [[`✂ ${said(first)}`, CUT]], told);
  if (s.expired) label(svg, at(s.slices[last][1]) + 20, top - 7, [[`${said(s.expired)} → expired`, ""]], [], "start");
}

function label(svg, x, y, parts, told, anchor = "middle") {
  const full = parts.filter(([text]) => text), size = full.reduce((sum, [text]) => sum + text.length, 0) * 6.2;
  if (!full.length || told.some(([other, wide]) => Math.abs(other - x) < (wide + size) / 2)) return;
  told.push([x, size]);
  const node = make(svg, "text", { x, y, "text-anchor": anchor });
  for (const [text, fill] of full) {
    const part = make(node, "tspan", {}, text);
    if (fill) part.style.fill = fill;
  }
}

// A handful of tuples on their way; it is seen while it moves only.
function token(svg, from, to, top, fall, colour, glide) {
  if (!glide) return;
  const chip = make(svg, "rect", { x: -5, y: -5, width: 10, height: 10, rx: 2, fill: colour, stroke: "var(--braid-bg)", opacity: 0 });
  const place = (x, y) => `translate(${x}px, ${y}px)`, y = top + TALL / 2 + 14;
  chip.animate([{ transform: place(from, y), opacity: 1 }, { transform: place(to, y + fall), opacity: 1 }, { transform: place(to, y + fall), opacity: 0 }], { duration: glide });
}

function queries(svg, s, at, top, lane, colour) {
  s.queries.forEach(([name, window, where], k) => {
    const y = top + k * lane, text = where ? `${name}: ${where}` : name;
    const g = note(make(svg, "g", { "data-query": `${s.index}:${name}` }), `${name}: window ${age(s, window)} on ${s.name}${where ? `, where ${where}` : ", no selection"}`);
    make(g, "rect", { x: LEFT, y, width: at(window) - LEFT, height: lane - 4, rx: 2, fill: colour, "fill-opacity": where ? 0.22 : 0.5, stroke: colour, "stroke-width": where ? 1 : 0 });
    make(g, "text", { x: at(window) + 6, y: y + lane / 2 + 2, style: `font-size:${Math.min(11, lane)}px` }, short(text, Math.max(12, Math.floor((WIDE - at(window)) / 6.3))));
  });
}

function send(box, act, s, micros) {
  box.dispatchEvent(new CustomEvent("pick", { bubbles: true, detail: { act, stream: s.index, age: Math.round(micros), n: Date.now() } }));
}

// Near a query's window the slice is split exactly there, else at two digits of the age that was clicked.
function split(svg, cell, s, from, to, box) {
  cell.style.cursor = "copy";
  cell.dataset.split = `${s.index}:${to}`;
  cell.addEventListener("click", (e) => {
    const x = new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse()).x, share = (x - LEFT) / (RIGHT - LEFT);
    const inside = s.marks.filter(([a]) => a > from && a < to), near = inside.find(([, , at]) => Math.abs(at - share) < 0.02);
    const micros = between(s.marks.map(([a, , at]) => [at, a]), share), rounded = +micros.toPrecision(2);
    send(box, "split", s, near ? near[0] : rounded > from && rounded < to ? rounded : micros);
  });
}

function boundary(svg, s, micros, x, top, box) {
  const bar = note(make(svg, "rect", { x: x - 5, y: top - 3, width: 10, height: TALL + 6, rx: 3, fill: "var(--braid-fg)", "fill-opacity": 0, role: "button", tabindex: 0, "data-merge": `${s.index}:${micros}`, "aria-label": `merge the slices of ${s.name} at ${age(s, micros)}` }), `merge the slices of ${s.name} that meet at ${age(s, micros)}`);
  bar.style.cursor = "pointer";
  const light = (on) => bar.setAttribute("fill-opacity", on ? 0.35 : 0);
  for (const [kind, on] of [["mouseenter", true], ["focus", true], ["mouseleave", false], ["blur", false]]) bar.addEventListener(kind, () => light(on));
  bar.addEventListener("click", () => send(box, "merge", s, micros));
  bar.addEventListener("keydown", (e) => { if (e.key === "Enter") send(box, "merge", s, micros); });
}
