// Parts of a picture that are pressed as buttons are: with the pointer, and with keys.

/** Has a part be a button: it can have the focus, and Enter and Space click it. */
export function pressable(part: SVGElement, name: string): void {
  part.dataset.press = name;
  part.setAttribute("role", "button");
  part.setAttribute("tabindex", "0");
  // The parts of an image are not announced one by one.
  part.closest("svg")?.setAttribute("role", "group");
  part.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    part.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  });
}

/** Makes parts one stop of the Tab key: from one to the next it goes by arrow up and down, Home and
 * End. Arrow left and right are the film's. The stop is the first part of one of these names. */
export function rovingTabIndex(parts: readonly SVGElement[], stops: readonly string[] = []): void {
  const stop = (at: number) => {
    for (const [k, part] of parts.entries()) part.setAttribute("tabindex", k === at ? "0" : "-1");
  };
  stop(
    Math.max(
      0,
      parts.findIndex(({ dataset }) => stops.includes(dataset.press ?? "")),
    ),
  );
  for (const [k, part] of parts.entries()) {
    part.addEventListener("focus", () => stop(k));
    part.addEventListener("keydown", (event) => {
      const to = next(event.key, k, parts.length);
      if (to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      parts[to]?.focus();
    });
  }
}

/** Which of so many parts a key goes to from the one with this number; round from the last. */
export function next(key: string, from: number, of: number): number | undefined {
  const to = { ArrowUp: from - 1, ArrowDown: from + 1, Home: 0, End: of - 1 }[key];
  return to === undefined ? undefined : (to + of) % of;
}

/** The names of the parts of a box at which the Tab key stops. */
export function stopsOf(box: Element): string[] {
  const parts = box.querySelectorAll<SVGElement>('[data-press][tabindex="0"]');
  return [...parts].map(({ dataset }) => dataset.press ?? "");
}

/** Draws what is in a box anew; the part that had the focus has it again, by its name. */
export function redrawn(box: Element, draw: () => void): void {
  const now = document.activeElement;
  const name = now instanceof SVGElement && box.contains(now) ? now.dataset.press : undefined;
  draw();
  if (name === undefined) return;
  const parts = [...box.querySelectorAll<SVGElement>("[data-press]")];
  parts.find(({ dataset }) => dataset.press === name)?.focus({ preventScroll: true });
}
