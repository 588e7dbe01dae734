"""Controls whose every change is modelled at once and shown; Launch runs the same on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from braid.util.cancellation import cancellable

from braid_widgets.base.interactivity import is_headless
from braid_widgets.base.launcher import Launch, LaunchPanel

AT_ONCE = "modelled: every change is simulated at once"
Simulate = Callable[[dict[str, Any]], Iterable[Any]]


class _Superseded(Exception):
    """Other settings were asked for."""


class SimulationPanel(LaunchPanel):
    """``simulate`` gets the settings and returns events, one after the other or at once; it is
    called in a thread of its own, and given up when a control changes, within a batch of a model
    (``braid.util.cancellation``). ``launch`` returns a run.

    ``events`` are those that the view shows. While a run is live, changes wait for the next launch.
    Raises ValueError for a name in ``defaults`` that is not a control.
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
        """The events of the run on Spark, once it has come to its end; in a report one is launched
        for it. Empty when there is no such run.
        """
        if is_headless():
            return self.run_to_end()
        done = [] if self.run is None or self.run.isActive else self.run.events()
        return done if done and done[-1].outcome == "completed" else []

    def _apply_control_change(self, change: Any) -> None:
        """Simulate the settings as they are now; a simulation that goes on is given up for it."""
        with self.lock:
            if self.state not in ("idle", "simulating") or self.has_invalid_controls():
                return
            waits = self._wanted is None and self.state == "idle"
            self._wanted = self.settings()
            if waits:
                self.start_work("simulating", self._simulate_latest_settings)

    def _simulate_latest_settings(self) -> None:
        """Show what was asked for last."""
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
        """The events; raises when other settings are asked for meanwhile."""
        events = []
        for event in self.simulate(settings):
            self._raise_if_superseded()
            events.append(event)
        return events
