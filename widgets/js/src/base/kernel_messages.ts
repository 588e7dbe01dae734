// A widget that took long to load hears its kernel all the same.
import type { Model } from "./widget.ts";

/** The side of ipywidgets' own model that is used here, on which anywidget's is built. */
interface Whole {
  comm?: Record<"on_msg" | "send", (...values: unknown[]) => void>;
  _handle_comm_msg?(message: unknown): Promise<unknown>;
}

/** A message that no model does anything with. */
const NOTHING = { content: { data: { method: "nothing" } } };
const NAME = "_hearing";

/** The function that anywidget calls once a widget is loaded. It gives a widget two seconds for that; one that
 * needs more, as on a busy page, is drawn, but no message reaches it, then or later. Such a one
 * hears by ipywidgets itself, and asks for what it missed. Elsewhere than under ipywidgets nothing
 * is done. */
export function startListening({ model }: { model: Model }): void {
  // A change brings along the model itself; widgets are given a part of it.
  const found = async (whole?: Whole) => {
    model.off(`change:${NAME}`, found);
    try {
      await whole?._handle_comm_msg?.(NOTHING);
    } catch {
      const { _handle_comm_msg: handle } = Object.getPrototypeOf(Object.getPrototypeOf(whole));
      whole?.comm?.on_msg((message: unknown) => handle.call(whole, message));
      whole?.comm?.send({ method: "request_state" }, {});
    }
  };
  model.on(`change:${NAME}`, found);
  model.set(NAME, true);
}
