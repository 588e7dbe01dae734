// The two ways in which a view is shown: by a kernel (anywidget), and on a page without one.

/** The side of a widget's model that is used here. */
export interface Model {
  get<T>(name: string): T;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(content: unknown): void;
  on<T>(event: string, callback: (message: T) => void): void;
  off<T>(event: string, callback: (message: T) => void): void;
}

export interface View {
  model: Model;
  el: HTMLElement;
}

/** Calls back when traits change; what it returns ends that. */
export function observed(model: Model, changes: Record<string, () => void>): () => void {
  for (const [name, call] of Object.entries(changes)) model.on(`change:${name}`, call);
  return () => {
    for (const [name, call] of Object.entries(changes)) model.off(`change:${name}`, call);
  };
}

/** Shows the pages of this name that stand in the document and are not shown yet. */
export function onPages<Held>(name: string, show: (root: HTMLElement, page: Held) => void): void {
  for (const root of document.querySelectorAll<HTMLElement>(`[data-film="${name}"]`)) {
    const text = root.querySelector("script")?.textContent;
    delete root.dataset.film;
    root.replaceChildren();
    if (text) show(root, JSON.parse(text) as Held);
  }
}
