// The cockpit of a run, or several runs side by side: with a kernel, which sends what is new; on a
// page without one; and on a page that asks the server for what is new.
import type { CockpitPage } from "../../frames.ts";
import { add } from "../base/dom.ts";
import { keepInView } from "../base/in_view.ts";
import { startListening } from "../base/kernel_messages.ts";
import { observed, onPages, type View } from "../base/widget.ts";
import { Cockpit } from "../cockpit/cockpit.ts";
import type { Shown } from "../cockpit/linked_views.ts";
import { extend } from "../cockpit/page.ts";
import { follow } from "../cockpit/polling.ts";

interface Served {
  page: Shown;
  /** The address of updates; empty on a page that stays as it is. */
  more?: string;
  plays?: boolean;
}

function showPage(root: HTMLElement, { page, more, plays = false }: Served): void {
  const cockpit = new Cockpit(root, page);
  cockpit.open(plays);
  if (more && "frames" in page) follow(page, askServer(more), (whole) => cockpit.update(whole));
}

onPages("cockpit", showPage);
onPages("linked_views", showPage);

/** Returns what asks the server at an address for the batches after one. */
function askServer(where: string) {
  return async (since: number) => {
    const answer = await fetch(`${where}&since=${since}`);
    if (!answer.ok) throw new Error(`the server answers with ${answer.status}`);
    return (await answer.json()) as CockpitPage;
  };
}

function render({ model, el }: View): () => void {
  const root = add(el, "div");
  const page = () => model.get<CockpitPage>("page");
  const send = (name: string) => (content: unknown) => model.send({ [name]: content });
  const questions = { ask: send("what_if"), inspect: send("inspect"), act: send("touch") };
  const cockpit = new Cockpit(root, page(), questions);
  cockpit.open("frames" in page());
  const leave = keepInView(root);
  const forget = observed(model, { page: () => cockpit.load(page()) });
  const hear = (said: { more?: CockpitPage; inspected?: string; touched?: string }) => {
    const { more, inspected, touched } = said;
    if (touched !== undefined) cockpit.outcome.show(touched);
    if (inspected !== undefined) cockpit.inspector.answer(inspected);
    if (!more) return;
    const whole = extend(page(), more);
    cockpit.update(whole);
    Object.assign(page(), whole);
  };
  model.on("msg:custom", hear);
  return () => {
    forget();
    model.off("msg:custom", hear);
    leave();
    cockpit.close();
  };
}

export default { initialize: startListening, render };
