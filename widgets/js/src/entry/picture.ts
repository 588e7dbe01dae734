// A picture that Python draws; names in it can be clicked.
import { add } from "../base/dom.ts";
import { startListening } from "../base/kernel_messages.ts";
import { pressable, redrawn, rovingTabIndex } from "../base/keyboard.ts";
import { observed, type View } from "../base/widget.ts";

function render({ model, el }: View): () => void {
  const root = add(el, "div");
  const mark = (text: SVGTextElement, name: string) => {
    pressable(text, name);
    text.style.cursor = "pointer";
    text.addEventListener("click", () => model.send({ clicked: name }));
  };
  const draw = () => {
    root.innerHTML = model.get<string>("value");
    const names = new Set(model.get<string[]>("names"));
    for (const text of root.querySelectorAll("text")) {
      const name = text.textContent ?? "";
      if (names.has(name)) mark(text, name);
    }
    rovingTabIndex([...root.querySelectorAll<SVGElement>("[data-press]")]);
  };
  const again = () => redrawn(root, draw);
  draw();
  return observed(model, { value: again, names: again });
}

export default { initialize: startListening, render };
