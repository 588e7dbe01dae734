// The cockpit of a run, or several runs side by side: with a kernel, which sends what is new; on a
// page without one; and on a page that asks the server for what is new.
import type { CockpitPage, LinkedViewsPage } from "../../frames.ts";
import { add } from "../base/dom.ts";
import { keepInView } from "../base/in_view.ts";
import { startListening } from "../base/kernel_messages.ts";
import { observed, onPages, type View } from "../base/widget.ts";
import { Cockpit } from "../cockpit/cockpit.ts";
import type { Asked } from "../cockpit/drawer.ts";
import type { Place } from "../cockpit/inspector.ts";
import { LinkedViews } from "../cockpit/linked_views.ts";
import { extend, type More } from "../cockpit/page.ts";
import type { Touched } from "../cockpit/touches.ts";

/** Milliseconds between two looks at the server. */
const EVERY = 500;

interface Served {
  page: CockpitPage;
  /** The address of updates; empty on a page that stays as it is. */
  more: string;
  plays: boolean;
}

onPages<Served>("cockpit", (root, { page, more, plays }) => {
  const alone = root.parentElement === document.body;
  const cockpit = new Cockpit(root, page, { plays, alone });
  if (more) ask(cockpit, more, page.frames.at(-1)?.batch ?? 0);
});

onPages<{ page: LinkedViewsPage }>("linked_views", (root, { page }) => {
  new LinkedViews(root, page);
});

/** Asks for what is new until the run has ended, or nobody answers. */
async function ask(cockpit: Cockpit, where: string, since: number): Promise<void> {
  try {
    const answer = await fetch(`${where}&since=${since}`);
    const more = (await answer.json()) as More;
    cockpit.more(more);
    if (more.state !== "live" && more.state !== "paused") return;
    const last = more.frames.at(-1)?.batch ?? since;
    setTimeout(() => ask(cockpit, where, last), EVERY);
  } catch {
    cockpit.lost();
  }
}

function render(view: View): () => void {
  const { names } = view.model.get<Partial<LinkedViewsPage>>("page");
  return names ? renderLinkedViews(view) : renderRun(view);
}

function renderLinkedViews({ model, el }: View): () => void {
  const page = () => model.get<LinkedViewsPage>("page");
  const views = new LinkedViews(add(el, "div"), page());
  const forget = observed(model, { page: () => views.load(page()) });
  return () => {
    forget();
    views.close();
  };
}

function renderRun({ model, el }: View): () => void {
  const root = add(el, "div");
  const page = () => model.get<CockpitPage>("page");
  const ask = (asked: Asked) => model.send({ what_if: asked });
  const inspect = (place: Place) => model.send({ inspect: place });
  const act = (touch: Touched) => model.send({ touch });
  const options = { ask, inspect, act, plays: true };
  const cockpit = new Cockpit(root, page(), options);
  const leave = keepInView(root);
  const loaded = () => cockpit.load(page());
  const told = (message: { more?: More; inspected?: string; touched?: string }) => {
    if (message.touched !== undefined) cockpit.touched(message.touched);
    if (message.inspected !== undefined) cockpit.inspector.answer(message.inspected);
    if (!message.more) return;
    Object.assign(page(), extend(page(), message.more));
    cockpit.more(message.more);
  };
  model.on("change:page", loaded);
  model.on("msg:custom", told);
  return () => {
    model.off("change:page", loaded);
    model.off("msg:custom", told);
    leave();
    cockpit.close();
  };
}

export default { initialize: startListening, render };
