"""A panel that simulates and shows every change at once; Launch runs the same join on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from braid.errors import BraidError
from braid.util.cancellation import cancellable

from braid_widgets.base.interactivity import is_headless
from braid_widgets.base.launcher import Launch, LaunchPanel

AT_ONCE = "modelled: every change is simulated at once"
Simulate = Callable[[dict[str, Any]], Iterable[Any]]


class _Superseded(BraidError):
    """Raised in a simulation after its settings have changed."""


class SimulationPanel(LaunchPanel):
    """A panel that simulates its settings and launches them on Spark.

    - ``simulate``: called with the settings in a background thread; returns events, all at once or
      one by one. It is canceled within a simulated batch if a control changes
      (``braid.util.cancellation``).
    - ``launch``: returns a run.
    - ``events``: the visible events.

    While a run is live, changes wait for the next launch. Raises ValueError for a name in
    ``defaults`` that is not a control.
    """

    def __init__(
        self, simulate: Simulate, launch: Launch, inputs: dict[str, Any], defaults: dict[str, Any]
    ) -> None:
        super().__init__(launch, inputs, defaults)
        self.simulate = simulate
        self._wanted: dict[str, Any] | None = None
        self.events = list(simulate(self.settings()))
        self.set_state("idle", AT_ONCE)
        for control in self.inputs.values():
            control.observe(self._apply_control_change, "value")

    def measured_events(self) -> list[Any]:
        """Return the events of the finished run on Spark; empty if there is none.

        A report launches a run for this.
        """
        if is_headless():
            return self.run_to_end()
        done = [] if self.run is None or self.run.isActive else self.run.events()
        return done if done and done[-1].outcome == "completed" else []

    def _apply_control_change(self, change: Any) -> None:
        """Simulate the current settings and cancel the simulation of the previous ones."""
        with self.lock:
            if self.state not in ("idle", "simulating") or self.has_invalid_controls():
                return
            waits = self._wanted is None and self.state == "idle"
            self._wanted = self.settings()
            if waits:
                self.start_work("simulating", self._simulate_latest_settings)

    def _simulate_latest_settings(self) -> None:
        """Show the latest settings."""
        while (settings := self._take_requested_settings()) is not None:
            try:
                with cancellable(self._raise_if_superseded):
                    events = self._simulate_events(settings)
                self.show_events(events)
            except _Superseded:
                continue
            except Exception as error:
                self.show_error(error)
        with self.lock:
            if self.state == "idle":
                self.set_state("idle", AT_ONCE)

    def _take_requested_settings(self) -> dict[str, Any] | None:
        with self.lock:
            settings, self._wanted = self._wanted, None
            if settings is None:
                self.state = "idle"
            return settings

    def _raise_if_superseded(self) -> None:
        if self._wanted is not None:
            raise _Superseded

    def _simulate_events(self, settings: dict[str, Any]) -> list[Any]:
        """Return the simulated events; raise if the settings change meanwhile."""
        events = []
        for event in self.simulate(settings):
            self._raise_if_superseded()
            events.append(event)
        return events
