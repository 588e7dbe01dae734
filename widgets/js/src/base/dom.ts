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

/** A button that does something when it is pressed. */
export function pressed(parent: Element, text: string, act: () => void): HTMLButtonElement {
  const button = add(parent, "button", "", text);
  button.type = "button";
  button.onclick = act;
  return button;
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
