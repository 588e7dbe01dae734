"""A console for a hub that runs: explain and submit queries, withdraw them, have nodes fail and
come back, move operators, plan anew; the map follows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, ClassVar, Protocol, Self

import ipywidgets as W
from braid.core.spans import UNITS, text

from braid_widgets.base import facts
from braid_widgets.base.facts import Fact
from braid_widgets.base.listing import Listing
from braid_widgets.base.live import paused_now, problem
from braid_widgets.base.pace import Pace
from braid_widgets.base.picture import Picture
from braid_widgets.reuse import asked
from braid_widgets.reuse.figures import Figures
from braid_widgets.reuse.hub_map import HubMap, moment_map
from braid_widgets.reuse.plan_tree import plan_tree
from braid_widgets.reuse.scenes import Step, network_of, steps

_SHOWN = 20
"""Rows of an answer that are shown."""
EVERY = 1.0
"""Seconds between two looks at a hub that runs."""


TIPS = {
    "Explain": "what would be done for this query; nothing changes",
    "Submit": "answer this query from the next batch on",
    "Withdraw": "answer the chosen query no longer",
    "Answer": "the last rows that the chosen query was told",
    "Plan": "how the chosen query is answered",
    "Move": "have the chosen operator go on at the chosen node, with its state",
    "Fail": "take the chosen node for down, with the state of its operators",
    "Restore": "take the chosen node for up again",
    "Replan": "plan all queries anew, and adopt that if it saves more than it costs",
    "Pause": "hold the hub before its next batch",
    "Go on": "let a paused hub go on",
    "Refresh": "show how the hub is now",
}


class Hub(Protocol):
    """What the console needs of a running hub; HubRun has it."""

    @property
    def queries(self) -> Mapping[str, Any]:
        """The queries that are answered now, by name."""

    def health(self) -> Any:
        """How it is."""

    @property
    def isActive(self) -> bool:
        """Whether the hub goes on."""

    def exception(self) -> BaseException | None:
        """What made the hub fail; None when nothing did."""

    @property
    def deployment(self) -> Any:
        """What is deployed."""

    def events(self, since: int = 0) -> list[Any]:
        """What happened."""

    def blocks(self, operator: int) -> Sequence[Any]:
        """The live blocks of an operator."""

    def explain(self, sql: str, **more: Any) -> str:
        """What would be done for a query."""

    def submit(self, sql: str, **more: Any) -> Any:
        """Answer a query."""

    def withdraw(self, name: str) -> None:
        """Answer a query no longer."""

    def move(self, operator: int, node: str) -> None:
        """Move an operator."""

    def fail(self, node: str) -> None:
        """Take a node for down."""

    def restore(self, node: str) -> None:
        """Take a node for up."""

    def replan(self, dry: bool = False) -> Any:
        """Plan all anew."""

    def pause(self) -> None:
        """Hold the hub."""

    def unpause(self) -> None:
        """Let it go on."""

    def stop(self) -> None:
        """End it within one batch."""


class Console(W.VBox):
    """Drives a hub; what cannot be done is said in one sentence under the buttons, and all stays as
    it was. ``examples`` are queries by name. While the hub runs, the strip and the map follow it.
    """

    _newest: ClassVar[Console | None] = None

    @classmethod
    def anew(cls, run: Hub, examples: Mapping[str, str]) -> Self:
        """A console that takes the place of the one made so before, as when its cell is run again:
        that one is closed, and its hub stopped.
        """
        elder, made = Console._newest, cls(run, examples)
        Console._newest = made
        if elder is not None:
            elder.close()
            elder.run.stop()
        return made

    def __init__(self, run: Hub, examples: Mapping[str, str]) -> None:
        self.run, self.examples = run, dict(examples)
        self.figures, self.pace, self.seen = Figures(), Pace(), 0
        self.due: int | None = run.health().due
        self._gate, self._closed = threading.RLock(), threading.Event()
        self.network = network = network_of(run.events())
        self.alone = len(network.nodes) == 1
        sinks = [n.name for n in network.nodes if n.kind in ("sink", "site")]
        nodes = [n.name for n in network.nodes if n.works]
        self.example = W.Dropdown(options=list(self.examples), description="example")
        self.text = W.Textarea(
            next(iter(self.examples.values()), ""), layout=W.Layout(width="auto", height="7em")
        )
        self.sink = W.Dropdown(options=sinks, description="asked at")
        self.query = W.Dropdown(description="query")
        self.node = W.Dropdown(options=nodes, description="node")
        self.operator = W.Dropdown(description="operator")
        self.said, self.fault, self.strip = W.HTML(), W.HTML(), W.HTML()
        self.map, self.answer = Picture(), W.HTML()
        self.map.on_msg(self._clicked)
        self.buttons = {name: self._button(name, act) for name, act in self._acts().items()}
        self.example.observe(lambda _: self._chosen(), "value")
        super().__init__(self._rows())
        self.add_class("braid-live")
        self.refresh()
        self.follower = threading.Thread(target=self._follow, name="braid-console", daemon=True)
        self.follower.start()

    def _acts(self) -> dict[str, Callable[[], Any]]:
        return {
            "Explain": self._explain,
            "Submit": self._submit,
            "Withdraw": lambda: self.run.withdraw(self.query.value),
            "Answer": self._answered,
            "Plan": self._planned,
            "Move": lambda: self.run.move(self.operator.value, self.node.value),
            "Fail": lambda: self.run.fail(self.node.value),
            "Restore": lambda: self.run.restore(self.node.value),
            "Replan": self._replan,
            "Pause": self.run.pause,
            "Go on": self.run.unpause,
            "Refresh": lambda: None,
        }

    def _rows(self) -> list[Any]:
        pick = self.buttons
        rows = [
            _row([self.example, self.sink, pick["Explain"], pick["Submit"]]),
            self.text,
            _row([self.query, pick["Withdraw"], pick["Answer"], pick["Plan"]]),
        ]
        if not self.alone:
            changes = [pick[n] for n in ("Move", "Fail", "Restore", "Replan")]
            rows.append(_row([self.operator, self.node, *changes]))
        rows.append(_row([pick[n] for n in ("Pause", "Go on", "Refresh")]))
        return [*rows, self.fault, self.said, self.strip, self.map, self.answer]

    def _button(self, name: str, act: Callable[[], Any]) -> W.Button:
        look = dict(layout=W.Layout(width="auto", flex="0 0 auto"), tooltip=TIPS[name])
        button = W.Button(description=name, **look)
        button.on_click(lambda _: self.do(act))
        return button

    def do(self, act: Callable[[], Any]) -> None:
        """Do what a button stands for, and show how the hub is then."""
        self.fault.value = ""
        try:
            act()
        except KeyError as gone:
            self.fault.value = problem(ValueError(f"{gone} is there no longer; choose again"))
        except (ValueError, RuntimeError) as error:
            self.fault.value = problem(error)
        self.refresh()

    def refresh(self) -> None:
        """Show how the hub is now."""
        with self._gate:
            self._refresh()

    def _refresh(self) -> None:
        self._tell()
        _options(self.query, list(self.run.queries))
        operators = self.run.deployment.operators.values()
        _options(self.operator, [(f"σ{o.id} at {o.node}", o.id) for o in operators])
        moments = steps(self.run.events())
        now = moments[-1] if moments else Step("nothing has happened yet")
        self.map.names = list(self.run.queries)
        self.map.value = moment_map(self.network, now)

    def _tell(self) -> bool:
        """Say the figures of now; returns whether something happened since the last time."""
        with self._gate:
            new = self.run.events(self.seen)
            self.seen += len(new)
            last = self.figures.take(new).last
            self.pace.note(0 if last is None else last.epoch + 1)
            self.strip.value = facts.strip([self._state(), *self._times(), *self.figures.facts()])
            return bool(new)

    def _state(self) -> Fact:
        ended = "failed" if self.run.exception() else "ended"
        now = "paused" if paused_now(self.run) else "live"
        return Fact("state", now if self.run.isActive else ended, "of the hub")

    def _times(self) -> Iterator[Fact]:
        """While it runs: the time left, and since the last batch."""
        waited = self.pace.waited()
        if self.run.isActive and waited is not None:
            lag = text(round(waited) * UNITS["second"])
            left = None if self.due is None else self.pace.left(self.due)
            if left is not None:
                span = text(round(left) * UNITS["second"])
                yield Fact("left", span, "by the time between the last batches")
            yield Fact("lag", lag, "since the last batch was seen to be committed")

    def _follow(self) -> None:
        """Tell what is new until the hub has ended, or nobody looks."""
        try:
            while self.run.isActive and not self._closed.wait(EVERY):
                if self._tell():
                    self.refresh()
            if not self._closed.is_set():
                self.refresh()
        except Exception as error:
            self.fault.value = problem(error)

    def close(self) -> None:
        self._closed.set()
        super().close()

    def _clicked(self, widget: Any, content: Any, buffers: Any) -> None:
        """Tell what serves the query that was clicked in the map, and choose it."""
        name = content.get("clicked") if isinstance(content, dict) else None
        if name in self.run.queries:
            self.query.value = name
            self.do(self._inspected)

    def _inspected(self) -> None:
        name, run = self.query.value, self.run
        told = asked.query(run.deployment, run.events(), run.blocks, name)
        self.said.value = f"<pre>{escape(told)}</pre>"

    def _chosen(self) -> None:
        self.text.value = self.examples[self.example.value]

    def _asked(self) -> dict[str, Any]:
        return {} if self.alone else {"at": self.sink.value}

    def _explain(self) -> None:
        told = self.run.explain(self.text.value, **self._asked())
        self.said.value = f"<pre>{escape(told)}</pre>"

    def _submit(self) -> None:
        before = self.run.deployment
        query = self.run.submit(self.text.value, **self._asked())
        self.said.value = f"<pre>{escape(repr(query))}</pre>"
        self._draw(before, query.name)

    def _planned(self) -> None:
        self._draw(self.run.deployment, self.query.value)

    def _draw(self, before: Any, name: str) -> None:
        plan = plan_tree(before, self.run.deployment, name)
        self.answer.value = Listing(plan.data, caption=plan.name).to_html()

    def _answered(self) -> None:
        rows = self.run.queries[self.query.value].table().tail(_SHOWN)
        table = rows.to_html(index=False, border=0)
        self.answer.value = f'<div style="overflow-x:auto">{table}</div>'

    def _replan(self) -> None:
        plan = self.run.replan()
        done = "adopted" if plan.adopted else "left as it is"
        self.said.value = (
            f"<pre>all planned anew: {plan.before:.4g} to {plan.after:.4g} (modelled), {done}</pre>"
        )

    def twins(self) -> Sequence[Any]:
        """What a report shows instead."""
        return [HubMap(self.run.events())]


def _row(parts: list[Any]) -> W.HBox:
    """Parts beside each other, in several lines where there is no room."""
    return W.HBox(parts, layout=W.Layout(flex_flow="row wrap"))


def _options(box: W.Dropdown, options: list[Any]) -> None:
    """Other options, with the same choice if it is among them, else the first."""
    if list(box.options) == options:
        return
    chosen = box.value
    box.options = options
    known = [o[1] if isinstance(o, tuple) else o for o in options]
    box.value = chosen if chosen in known else next(iter(known), None)
