// Runs side by side: by a kernel, which loads others, and on a page without one.
import { add } from "../base/dom.ts";
import { startListening } from "../base/kernel_messages.ts";
import { observed, onPages, type View } from "../base/widget.ts";
import { Abreast } from "../cockpit/linked_views.ts";
import type { LinkedViewsPage, Palette } from "../frames.ts";

interface Held {
  page: LinkedViewsPage;
  palette: Palette;
}

onPages<Held>("abreast", (root, { page, palette }) => {
  new Abreast(root, page, palette);
});

function render({ model, el }: View): () => void {
  const page = () => model.get<LinkedViewsPage>("page");
  const abreast = new Abreast(add(el, "div"), page(), model.get<Palette>("palette"));
  const forget = observed(model, { page: () => abreast.load(page()) });
  return () => {
    forget();
    abreast.close();
  };
}

export default { initialize: startListening, render };
