import assert from "node:assert/strict";
import { test } from "node:test";
import { startListening } from "../src/base/kernel_messages.ts";
import type { Model } from "../src/base/widget.ts";

type Heard = (message: unknown) => unknown;

/** A model as ipywidgets has it, which keeps what it heard. */
class Plain {
  heard: unknown[] = [];
  sent: unknown[] = [];
  called: Heard | undefined;
  comm = {
    on_msg: (call: Heard) => {
      this.called = call;
    },
    send: (data: unknown) => this.sent.push(data),
  };
  changes = new Map<string, Heard>();
  _handle_comm_msg(message: unknown): Promise<void> {
    this.heard.push(message);
    return Promise.resolve();
  }
}

/** The same as anywidget has it: a message waits until the widget is loaded. */
class Waiting extends Plain {
  ready: Promise<void>;
  constructor(ready: Promise<void>) {
    super();
    this.ready = ready;
  }
  override async _handle_comm_msg(message: unknown): Promise<void> {
    await this.ready;
    return super._handle_comm_msg(message);
  }
}

const given = (whole: Plain, passed: unknown) =>
  ({
    on: (name: string, call: Heard) => whole.changes.set(name, call),
    off: (name: string) => whole.changes.delete(name),
    set: (name: string) => whole.changes.get(`change:${name}`)?.(passed),
  }) as unknown as Model;
const settled = () => new Promise((resolve) => setTimeout(resolve));

test("a widget that was loaded in time is left as it is", async () => {
  const model = new Waiting(Promise.resolve());
  startListening({ model: given(model, model) });
  await settled();
  assert.equal(model.called, undefined);
  assert.deepEqual(model.sent, []);
  assert.equal(model.changes.size, 0);
});

test("one that was late hears what comes, and asks for what it missed", async () => {
  const model = new Waiting(Promise.reject(new Error("late")));
  startListening({ model: given(model, model) });
  await settled();
  assert.deepEqual(model.sent, [{ method: "request_state" }]);
  await model.called?.("a message");
  assert.deepEqual(model.heard, ["a message"]);
});

test("nothing is done to a model of another maker", async () => {
  const model = new Waiting(Promise.reject(new Error("late")));
  model.ready.catch(() => {});
  startListening({ model: given(model, undefined) });
  startListening({ model: given(model, {}) });
  await settled();
  assert.equal(model.called, undefined);
});
