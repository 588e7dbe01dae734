// Parts of a picture that are pressed as buttons are: with the pointer, and with keys.

/** Has a part be a button: it can have the focus, and Enter and Space click it. */
export function pressable(part: SVGElement, name: string): void {
  part.dataset.press = name;
  part.setAttribute("role", "button");
  part.setAttribute("tabindex", "0");
  // What stands in an image is not told one by one.
  part.closest("svg")?.setAttribute("role", "group");
  part.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    part.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  });
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
