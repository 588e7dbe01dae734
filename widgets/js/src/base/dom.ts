import { shareOf } from "./format.ts";

type Tag = keyof HTMLElementTagNameMap;

type Inner = Node | string | undefined;

/** A new element and what is in it. */
export function make<K extends Tag>(tag: K, kind = "", ...inner: Inner[]) {
  const node = document.createElement(tag);
  if (kind) node.className = kind;
  node.append(...inner.filter((each) => each !== undefined));
  return node;
}

/** A new element at the end of another. */
export function add<K extends Tag>(parent: Element, tag: K, kind = "", ...inner: Inner[]) {
  const node = make(tag, kind, ...inner);
  parent.append(node);
  return node;
}

/** A button that does something when it is pressed; one whose text has no words has a name. */
export function pressed(parent: Element, text: string, act: () => void, kind = "", name = "") {
  const button = add(parent, "button", kind, text);
  button.type = "button";
  button.onclick = act;
  return name ? named(button, name) : button;
}

/** A form that does something when its first button or Enter is pressed; JupyterLab alone takes no
 * Enter in a field. */
export function sent(form: HTMLFormElement, act: () => void): HTMLFormElement {
  form.onsubmit = (event) => {
    event.preventDefault();
    act();
  };
  form.onkeydown = (event) => {
    if (event.key !== "Enter" || !(event.target instanceof HTMLInputElement)) return;
    event.preventDefault();
    form.querySelector("button")?.click();
  };
  return form;
}

/** The name of a control, also where the pointer rests on it. */
export function named<E extends HTMLElement>(control: E, name: string): E {
  control.setAttribute("aria-label", name);
  control.title = name;
  return control;
}

/** Lets what changes in an element be read aloud. */
export function spoken<E extends HTMLElement>(box: E): E {
  box.setAttribute("aria-live", "polite");
  return box;
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

/** Letters from which on a value has a line of its own. */
const LONG = 28;

/** A figure above its name. */
export const figure = (value: string, name: string, kind = ""): HTMLElement =>
  make("div", kind, make("b", "", value), make("span", "", name));

/** A list of names and values. */
export function listed(kind: string, pairs: [name: string, value: string][]): HTMLElement {
  const list = make("dl", kind);
  for (const [name, value] of pairs) {
    const room = value && value.length <= LONG ? "" : "braid-long";
    list.append(make("dt", room, name), make("dd", room, value));
  }
  return list;
}

/** A bar of parts of a whole, by the color of each in the style sheet. */
export function meter(whole: number, parts: Record<string, number>): HTMLElement {
  const bar = make("div", "braid-meter");
  for (const [colour, part] of Object.entries(parts)) {
    const width = `${100 * shareOf(part, whole)}%`;
    Object.assign(add(bar, "i").style, { width, background: `var(--ck-${colour})` });
  }
  return bar;
}

/** Limits the height of a box to about so many pixels: in steps, as else all moves often, and with
 * room for a text along its side. */
export function limitHeight(box: HTMLElement | null, height: number): void {
  const most = `${24 * Math.max(6, Math.ceil(height / 24))}px`;
  if (box && box.style.maxHeight !== most) box.style.maxHeight = most;
}
