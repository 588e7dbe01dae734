/** The texts of every frame: a title, and a note below it. */
export interface Headed {
  title: string;
  note: string;
}

/** A new element at the end of another. */
export function add<K extends keyof HTMLElementTagNameMap>(
  parent: Element,
  tag: K,
  kind = "",
  text?: string | number,
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  if (kind) node.className = kind;
  if (text !== undefined) node.textContent = String(text);
  parent.append(node);
  return node;
}

export function header(box: Element, frame: Headed): void {
  add(box, "div", "braid-title", frame.title);
  add(box, "div", "braid-note", frame.note);
}

/** Text whose every other part, beginning with the second, is left out where room is short. */
export function wordy(box: Element, ...parts: string[]): void {
  box.replaceChildren(parts[0] ?? "");
  parts.slice(1).forEach((part, k) => {
    if (k % 2) box.append(part);
    else add(box, "i", "", part);
  });
}

/** Whether nothing should move: nobody looks, or the reader asked for that. */
export const still = (): boolean =>
  document.hidden || matchMedia("(prefers-reduced-motion: reduce)").matches;
