"""A table of controls below a screen, such as the cockpit, which shows the runs that they make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Protocol

import ipywidgets as W
from braid.errors import BraidError
from braid.util.cancellation import cancellable

from braid_widgets.base.controls import Row, make_control
from braid_widgets.base.interactivity import is_headless
from braid_widgets.base.launcher import ControllableRun, Launch, LaunchPanel
from braid_widgets.base.live_updates import ObservableRun, RunFollower

AT_ONCE = "modelled: every change is simulated at once"
Simulate = Callable[[dict[str, Any]], Iterable[Any]]
Rows = Mapping[str, Row | W.Widget]


class RunScreen(Protocol):
    """The view of a run, such as the cockpit."""

    events: list[Any]

    def follow(
        self, run: ObservableRun, ended: Callable[[BaseException | None], Any]
    ) -> RunFollower:
        """Follow a live run, and call ``ended`` when it has ended."""

    def load_run(self, source: Iterable[Any]) -> None:
        """Show a finished run."""

    def mark_stale(self) -> None:
        """Mark the view as showing the previous run while the next one starts."""


class _Superseded(BraidError):
    """Raised in a simulation after its settings have changed."""


class ScreenPanel(LaunchPanel):
    """A panel below a screen, which shows the run that it simulates or launches.

    - ``launch``: called with the settings; returns a run.
    - ``screen``: shows the run; without ``simulate``, a recording until a run is launched.
    - ``simulate``: called with the settings, at each change in a background thread; returns events,
      all at once or one by one. It is canceled within a simulated batch if a control changes
      (``braid.util.cancellation``). While a run is live, changes wait for the next launch.
    - ``rows``: the table of controls by name, in place of that of the class; a widget stands for
      itself.
    - ``defaults``: initial values by name.

    Raises ValueError for a default that is not in the table or that its control refuses.
    """

    rows: ClassVar[Rows]
    """The table of controls."""
    width: ClassVar[int] = 300
    """Minimum width of a control, in pixels."""

    def __init__(
        self,
        launch: Launch,
        screen: RunScreen,
        simulate: Simulate | None = None,
        rows: Rows | None = None,
        **defaults: Any,
    ) -> None:
        self.screen, self.simulate = screen, simulate
        self._wanted: dict[str, Any] | None = None
        table = self.rows if rows is None else rows
        self._is_used = {name: row.is_used for name, row in table.items() if isinstance(row, Row)}
        inputs = {
            name: make_control(row) if isinstance(row, Row) else row for name, row in table.items()
        }
        super().__init__(launch, inputs, defaults, width=self.width)
        self.children = (screen, *self.children)
        self.events = screen.events
        self._update_available_controls()
        for control in self.inputs.values():
            control.observe(self._update_available_controls, "value")
            control.observe(self._apply_control_change, "value")
        if simulate is not None and not is_headless():
            self.set_state("idle", AT_ONCE)
            self.show_events(self._simulate_events(self.settings()))

    def show_events(self, events: list[Any]) -> None:
        """Show a simulated run."""
        self.events = events
        self.screen.load_run(events)  # without the lock: it waits for the end of the run before

    def mark_stale(self) -> None:
        self.screen.mark_stale()

    def follow_run(self, run: ControllableRun) -> RunFollower:
        """Show the run while it is active, and end with it."""
        return self.screen.follow(run, self.handle_run_end)

    def static_views(self) -> list[Any]:
        """Return the screen with the simulated run, or with a finished one."""
        if self.simulate is None:
            self.screen.load_run(self.run_to_end())
        else:
            self.show_events(self._simulate_events(self.requested_settings()))
        return [self.screen]

    def measured_events(self) -> list[Any]:
        """Return the events of the finished run on Spark; empty if there is none.

        A report launches a run for this.
        """
        if is_headless():
            return self.run_to_end()
        done = [] if self.run is None or self.run.isActive else self.run.events()
        return done if done and done[-1].outcome == "completed" else []

    def _update_available_controls(self, change: Any = None) -> None:
        """Disable controls that are not used with the values of the others."""
        chosen = {name: control.value for name, control in self.inputs.items()}
        for name, is_used in self._is_used.items():
            self.inputs[name].disabled = not is_used(chosen)
        self.update_start()

    def _apply_control_change(self, change: Any) -> None:
        """Simulate the current settings and cancel the simulation of the previous ones."""
        with self.lock:
            is_busy = self.simulate is None or self.state not in ("idle", "simulating")
            if is_busy or self.has_invalid_controls():
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
        assert self.simulate is not None
        events = []
        for event in self.simulate(settings):
            self._raise_if_superseded()
            events.append(event)
        return events
