// A picture that Python draws; names in it can be clicked.
import { add } from "../base/dom.ts";
import { observed, type View } from "../base/widget.ts";

function render({ model, el }: View): () => void {
  const root = add(el, "div");
  const mark = (text: SVGTextElement, name: string) => {
    for (const [key, value] of Object.entries({ role: "button", tabindex: "0" })) {
      text.setAttribute(key, value);
    }
    text.style.cursor = "pointer";
    text.addEventListener("click", () => model.send({ clicked: name }));
    text.addEventListener("keydown", ({ key }) => {
      if (key === "Enter") model.send({ clicked: name });
    });
  };
  const draw = () => {
    root.innerHTML = model.get<string>("value");
    const names = new Set(model.get<string[]>("names"));
    for (const text of root.querySelectorAll("text")) {
      const name = text.textContent ?? "";
      if (names.has(name)) mark(text, name);
    }
  };
  draw();
  return observed(model, { value: draw, names: draw });
}

export default { render };
