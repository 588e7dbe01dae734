"""A console for a running hub, below a view that follows it.

It explains, submits and withdraws queries, makes nodes fail and recover, moves operators and
re-plans.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, ClassVar, Self

import ipywidgets as W

from braid_widgets.base.live_updates import error_html
from braid_widgets.reuse import query_details
from braid_widgets.reuse.hub_state import initial_network
from braid_widgets.reuse.plan_tree import plan_tree

_SHOWN = 20
"""Maximum number of rows of an answer shown."""
EVERY = 1.0
"""Seconds between two polls of a running hub."""


TIPS = {
    "Explain": "plan this query without submitting it",
    "Submit": "answer this query from the next batch on",
    "Withdraw": "withdraw the chosen query",
    "Answer": "the latest rows of the chosen query's answer",
    "Plan": "how the chosen query is answered",
    "Move": "move the chosen operator to the chosen node, with its state",
    "Fail": "mark the chosen node as down; its operators' state is lost",
    "Restore": "mark the chosen node as up",
    "Replan": "re-plan all queries, and adopt the plan if it saves more than it costs",
    "Pause": "pause the hub before its next batch",
    "Go on": "continue a paused hub",
}


class Console(W.VBox):
    """Controls of a hub, below a ``screen`` that follows it.

    If an action fails, a sentence below the buttons says why, and nothing changes.

    - ``run``: a running hub, such as HubRun.
    - ``examples``: queries by name.
    - ``screen``: the cockpit of that hub.
    """

    _newest: ClassVar[Console | None] = None

    @classmethod
    def replace_previous(cls, run: Any, examples: Mapping[str, str], screen: Any) -> Self:
        """Return a new console; close the one made here before and stop its hub.

        This happens if a cell is run again.
        """
        elder, console = Console._newest, cls(run, examples, screen)
        Console._newest = console
        if elder is not None:
            elder.close()
            elder.run.stop()
        return console

    def __init__(self, run: Any, examples: Mapping[str, str], screen: Any) -> None:
        self.run, self.examples, self.screen = run, dict(examples), screen
        screen.describe_query = self.describe_query
        self._gate, self._closed = threading.RLock(), threading.Event()
        network = initial_network(run.events())
        self.alone = len(network.nodes) == 1
        sinks = [n.name for n in network.nodes if n.role in ("sink", "site")]
        nodes = [n.name for n in network.nodes if n.can_host_operators]
        self.example = W.Dropdown(options=list(self.examples), description="example")
        self.text = W.Textarea(
            next(iter(self.examples.values()), ""), layout=W.Layout(width="auto", height="7em")
        )
        self.sink = W.Dropdown(options=sinks, description="asked at")
        self.query = W.Dropdown(description="query")
        self.node = W.Dropdown(options=nodes, description="node")
        self.operator = W.Dropdown(description="operator")
        self.message, self.fault, self.answer = W.HTML(), W.HTML(), W.HTML()
        self.buttons = {
            name: self._make_button(name, act) for name, act in self._make_button_actions().items()
        }
        self.example.observe(lambda _: self._load_example(), "value")
        super().__init__(self._lay_out_rows())
        self.add_class("braid-live")
        self.refresh_view()
        self.follower = threading.Thread(target=self._follow_hub, name="braid-console", daemon=True)
        self.follower.start()

    def _make_button_actions(self) -> dict[str, Callable[[], Any]]:
        return {
            "Explain": self._show_explanation,
            "Submit": self._submit_query,
            "Withdraw": lambda: self.run.withdraw(self.query.value),
            "Answer": self._show_results,
            "Plan": self._show_plan,
            "Move": lambda: self.run.move_operator(self.operator.value, self.node.value),
            "Fail": lambda: self.run.fail_node(self.node.value),
            "Restore": lambda: self.run.restore_node(self.node.value),
            "Replan": self._replan_all,
            "Pause": self.run.pause,
            "Go on": self.run.unpause,
        }

    def _lay_out_rows(self) -> list[Any]:
        pick = self.buttons
        rows = [
            _make_row([self.example, self.sink, pick["Explain"], pick["Submit"]]),
            self.text,
            _make_row([self.query, pick["Withdraw"], pick["Answer"], pick["Plan"]]),
        ]
        if not self.alone:
            changes = [pick[n] for n in ("Move", "Fail", "Restore", "Replan")]
            rows.append(_make_row([self.operator, self.node, *changes]))
        rows.append(_make_row([pick[n] for n in ("Pause", "Go on")]))
        return [self.screen, *rows, self.fault, self.message, self.answer]

    def _make_button(self, name: str, act: Callable[[], Any]) -> W.Button:
        look = dict(layout=W.Layout(width="auto", flex="0 0 auto"), tooltip=TIPS[name])
        button = W.Button(description=name, **look)
        button.on_click(lambda _: self.apply_action(act))
        return button

    def apply_action(self, act: Callable[[], Any]) -> None:
        """Perform the action of a button and offer what the hub has then."""
        self.fault.value = ""
        try:
            act()
        except KeyError as gone:
            self.fault.value = error_html(ValueError(f"{gone} is there no longer; choose again"))
        except (ValueError, RuntimeError) as error:
            self.fault.value = error_html(error)
        self.refresh_view()

    def refresh_view(self) -> None:
        """Offer the hub's current queries and operators."""
        with self._gate:
            self._update_choices()

    def _update_choices(self) -> None:
        _update_options(self.query, list(self.run.queries))
        operators = self.run.deployment.operators.values()
        _update_options(self.operator, [(f"σ{o.id} at {o.node}", o.id) for o in operators])

    def _follow_hub(self) -> None:
        """Offer what the hub has until it has ended or the console is closed."""
        try:
            while self.run.isActive and not self._closed.wait(EVERY):
                self.refresh_view()
            if not self._closed.is_set():
                self.refresh_view()
        except Exception as error:
            self.fault.value = error_html(error)

    def close(self) -> None:
        self._closed.set()
        self.screen.close()
        super().close()

    def describe_query(self, name: str) -> str:
        """Describe what serves a query now. Raises ValueError for a query that is not active."""
        run = self.run
        if name not in run.queries:
            raise ValueError(f"query {name!r} is there no longer; select another")
        return query_details.describe_query(run.deployment, run.events(), run.operator_blocks, name)

    def _load_example(self) -> None:
        self.text.value = self.examples[self.example.value]

    def _get_submit_options(self) -> dict[str, Any]:
        return {} if self.alone else {"sink": self.sink.value}

    def _show_explanation(self) -> None:
        text = self.run.explain(self.text.value, **self._get_submit_options())
        self.message.value = f"<pre>{escape(text)}</pre>"

    def _submit_query(self) -> None:
        before = self.run.deployment
        query = self.run.submit(self.text.value, **self._get_submit_options())
        self.message.value = f"<pre>{escape(repr(query))}</pre>"
        self._draw_plan_tree(before, query.name)

    def _show_plan(self) -> None:
        self._draw_plan_tree(self.run.deployment, self.query.value)

    def _draw_plan_tree(self, before: Any, name: str) -> None:
        self.answer.value = plan_tree(before, self.run.deployment, name).to_html()

    def _show_results(self) -> None:
        rows = self.run.queries[self.query.value].current_answer().tail(_SHOWN)
        table = rows.to_html(index=False, border=0)
        self.answer.value = f'<div style="overflow-x:auto">{table}</div>'

    def _replan_all(self) -> None:
        plan = self.run.replan()
        done = "adopted" if plan.is_adopted else "left as it is"
        self.message.value = (
            f"<pre>all planned anew: {plan.cost_before:.4g} to {plan.cost_after:.4g} (modelled), "
            f"{done}</pre>"
        )


def _make_row(parts: list[Any]) -> W.HBox:
    """Return widgets side by side; they wrap in a narrow window."""
    return W.HBox(parts, layout=W.Layout(flex_flow="row wrap"))


def _update_options(box: W.Dropdown, options: list[Any]) -> None:
    """Replace the options and keep the selection if it is among them, else select the first."""
    if list(box.options) == options:
        return
    chosen = box.value
    box.options = options
    values = [o[1] if isinstance(o, tuple) else o for o in options]
    box.value = chosen if chosen in values else next(iter(values), None)
