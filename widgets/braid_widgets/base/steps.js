// Draws one step of a small example (see steps.py for the fields of a frame): what is stored where, what waits, what moves, what is found.
const EVERY = 1600;

function add(parent, tag, kind, text) {
  const node = document.createElement(tag);
  if (kind) node.className = kind;
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

function chip(parent, [text, stream, fresh], palette) {
  const node = add(parent, "span", `braid-chip${fresh ? " new" : ""}`, text), colour = stream == null ? "var(--braid-muted)" : palette.streams[stream % palette.streams.length];
  node.style.borderColor = colour;
  if (fresh) node.style.background = colour;
  return node;
}

function facts(box, rows) {
  if (!rows.length) return;
  const table = add(box, "table", "braid-table");
  rows.forEach((cells, k) => cells.reduce((row, cell) => (add(row, k ? "td" : "th", "", cell), row), add(table, "tr")));
}

function draw(box, frame, palette, glide) {
  box.replaceChildren();
  add(box, "div", "braid-title", frame.title);
  add(box, "div", "braid-note", frame.note);
  const said = add(box, "div", "braid-say", frame.text), cells = add(box, "div", "braid-cells");
  said.setAttribute("aria-live", "polite");
  for (const node of frame.nodes) {
    const cell = add(cells, "div", `braid-cell${node.here ? " here" : ""}`);
    add(cell, "h4", "", node.name);
    node.stored.forEach((chips, s) => {
      const row = add(cell, "div", "braid-row");
      add(row, "b", "", frame.streams[s]);
      chips.forEach((c) => chip(row, c, palette));
    });
    if (node.queued) {
      const row = add(cell, "div", "braid-row");
      add(row, "b", "", "in");
      node.queued.forEach((c) => chip(row, c, palette));
    }
  }
  const under = add(box, "div", "braid-facts"), moving = add(under, "div"), made = add(under, "div");
  add(moving, "div", "braid-note", frame.moves.length ? "on its way" : "nothing is on its way");
  for (const [what, from, to] of frame.moves) {
    const row = add(moving, "div", "braid-row"), sent = chip(row, what, palette);
    row.append(` ${from} → ${to}`);
    if (glide) sent.animate([{ transform: "translateX(-14px)", opacity: 0.2 }, { transform: "none", opacity: 1 }], { duration: 400 });
  }
  add(made, "div", "braid-note", `results so far: ${frame.found.length}`);
  const row = add(made, "div", "braid-row");
  frame.found.forEach((c) => chip(row, c, palette));
  facts(add(under, "div"), frame.table);
}
