"""Controls whose every change is modelled at once and shown; Launch runs the same on Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from braid_widgets.base.launcher import Launch, Launcher
from braid_widgets.base.show import headless

AT_ONCE = "modelled: every change is simulated at once"
Simulate = Callable[[dict[str, Any]], list[Any]]


class ModelledPanel(Launcher):
    """``simulate`` gets the settings and returns events, within a second or so; ``launch`` returns
    a run, and may take its time.

    ``events`` are those that the view shows. While a run is live, changes wait for the next launch.
    Raises ValueError for a name in ``defaults`` that is not a control.
    """

    def __init__(
        self, simulate: Simulate, launch: Launch, inputs: dict[str, Any], defaults: dict[str, Any]
    ) -> None:
        super().__init__(launch, inputs, defaults)
        self.simulate = simulate
        self.events = simulate(self.settings())
        self.become("idle", AT_ONCE)
        for control in self.inputs.values():
            control.observe(self._changed, "value")

    def measured(self) -> list[Any]:
        """The events of the run on Spark, once it has come to its end; in a report one is launched
        for it. Empty when there is no such run.
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
            self.become("idle", AT_ONCE)
        except ValueError as error:
            self.fail(error)
