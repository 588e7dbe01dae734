"""A panel whose runs, simulated and real, are shown by a screen such as the cockpit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from braid_widgets.base.launcher import ControllableRun, Launch, LaunchPanel
from braid_widgets.base.live_updates import ObservableRun, RunFollower
from braid_widgets.base.simulation_panel import Simulate, SimulationPanel


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


class RunScreenPanel(LaunchPanel):
    """A panel whose launched run is shown by ``screen``."""

    screen: RunScreen

    def mark_stale(self) -> None:
        self.screen.mark_stale()

    def follow_run(self, run: ControllableRun) -> RunFollower:
        return self.screen.follow(run, self._handle_run_end)

    def visible_events(self) -> list[Any]:
        return self.run.events() if self.run is not None else self.screen.events

    def static_views(self) -> list[Any]:
        """Return the screen with a finished run."""
        self.screen.load_run(self.run_to_end())
        return [self.screen]


class ScreenPanel(RunScreenPanel, SimulationPanel):
    """A panel below a screen, which shows the run that it simulates or launches.

    A subclass calls ``show_events`` with ``events`` when it is complete.
    """

    def __init__(
        self,
        simulate: Simulate,
        launch: Launch,
        screen: RunScreen,
        inputs: dict[str, Any],
        defaults: dict[str, Any],
    ) -> None:
        self.screen = screen
        super().__init__(simulate, launch, inputs, defaults)
        self.children = (screen, *self.children)

    def show_events(self, events: list[Any]) -> None:
        """Show a simulated run."""
        with self.lock:
            self.events = events
            self.screen.load_run(events)

    def static_views(self) -> list[Any]:
        """Return the screen with the simulated run."""
        self.show_events(list(self.simulate(self.requested_settings())))
        return [self.screen]
