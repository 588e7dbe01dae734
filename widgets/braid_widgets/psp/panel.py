"""Controls of a ring: each change is simulated at once and shown; Launch runs the same on Spark,
live.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from braid_widgets.base import inputs
from braid_widgets.base.launcher import Launch, Launcher
from braid_widgets.base.show import headless
from braid_widgets.psp.ring import Ring

MODELLED = "modelled: every change is simulated at once"


class RingPanel(Launcher):
    """``simulate`` gets the settings and returns events, within a second or so; ``launch`` returns
    a run, and may take its time.

    ``defaults`` set controls by name: rates, windows, streams, sigma, nodes, form, slicing, resize.
    ``events`` are those that the view shows. While a run is live, changes wait for the next launch.
    Raises ValueError for a name that is not a control.
    """

    def __init__(
        self, simulate: Callable[[dict[str, Any]], list[Any]], launch: Launch, **defaults: Any
    ) -> None:
        super().__init__(launch, _inputs(), defaults)
        self.simulate = simulate
        self.events = simulate(self.settings())
        self.view = Ring(self.events)
        self.children = (*self.children, self.view)
        self.become("idle", MODELLED)
        for control in self.inputs.values():
            control.observe(self._changed, "value")

    def show(self, events: list[Any]) -> None:
        """Load these events into the ring's film."""
        with self.lock:
            self.events = events
            self.view.load(events)

    def twins(self) -> list[Ring]:
        """The ring of the modelled run."""
        self.events = self.simulate(self.asked())
        return [Ring(self.events)]

    def measured(self) -> list[Any]:
        """The events of the run on Spark, once it has come to its end; in a report one is launched
        for it. None when there is no such run.
        """
        if headless():
            return self.complete()
        done = [] if self.run is None or self.run.isActive else self.run.events()
        return done if done and done[-1].reason == "completed" else []

    def _changed(self, change: Any) -> None:
        if self.state != "idle":
            return
        self.message.value, self.error = "", None
        try:
            self.show(self.simulate(self.settings()))
            self.become("idle", MODELLED)
        except ValueError as error:
            self.fail(error)


FORMS = {"PSP (basic)": "basic", "PSP-I (interleaved)": "interleaved", "PSP-D (dynamic)": "dynamic"}


def _inputs() -> dict[str, Any]:
    return {
        "streams": inputs.whole("streams M", 2, 5, 3),
        "rates": inputs.line("rates λ (tuples/s)", "20"),
        "windows": inputs.line("windows W (s)", "10"),
        "sigma": inputs.number("selectivity σ", 0, 1, 0.05, 0.01),
        "nodes": inputs.whole("nodes N", 1, 24, 6),
        "form": inputs.choice("form", FORMS, "dynamic"),
        "slicing": inputs.choice("slices by", ["time", "count"], "time"),
        "resize": inputs.whole("half-way to nodes", 0, 24, 0),
    }
