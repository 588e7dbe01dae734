"""Follow a live run: a thread polls it and shows new events."""

from __future__ import annotations

import threading
from collections.abc import Callable
from html import escape
from typing import Any, Protocol, runtime_checkable

from braid.core.run_events import count_event_numbers
from braid.util.error_summary import summarize_error

from braid_widgets.base.progress import input_batches
from braid_widgets.base.run_view import RunView, fold_events
from braid_widgets.base.time_left import TimeLeftEstimator

INTERVAL = 0.2
"""Seconds between two polls of a run."""


@runtime_checkable
class ObservableRun(Protocol):
    """The part of a running join that a view needs; JoinRun implements it."""

    @property
    def isActive(self) -> bool:
        """Whether the run is active."""

    def events(self, since: int = 0) -> list[Any]:
        """Return the run's events from event number ``since`` on."""

    def exception(self) -> BaseException | None:
        """Return the error that made the run fail, or None."""


def is_paused(run: ObservableRun) -> bool:
    """Return whether the run is paused; False for a run that cannot be paused."""
    return bool(getattr(run, "isPaused", False))


class EventPump:
    """Folds the events of a live run into its view state and shows it if anything is new."""

    def __init__(self, run: ObservableRun, show: Callable[[RunView], Any]) -> None:
        self.run, self.show = run, show
        self.scene, self.cursor = RunView(pace=TimeLeftEstimator()), 0
        self.paused = False

    def process_new(self) -> bool:
        """Process new events; return whether more may come."""
        active = self.run.isActive
        new = self.run.events(since=self.cursor)
        self.cursor += count_event_numbers(new)
        paused, self.paused = self.paused, is_paused(self.run)
        if new or paused != self.paused:
            fold_events(new, self.scene)
            if self.scene.pace is not None and self.scene.last is not None:
                self.scene.pace.note_batches(input_batches(self.scene))
            self.show(self.scene)
        return active and self.scene.end is None


class RunFollower:
    """A thread that follows a run from its start and ends with the run.

    - ``show``: called with the view state if anything is new.
    - ``interval``: minimum seconds between two calls of ``show``.
    - ``ended``: called once with the error that made the run or the view fail, or None.
    """

    def __init__(
        self,
        run: ObservableRun,
        show: Callable[[RunView], Any],
        ended: Callable[[BaseException | None], Any],
        interval: float = INTERVAL,
    ) -> None:
        self._halt = threading.Event()
        work = (EventPump(run, show), ended, interval)
        self._thread = threading.Thread(
            target=self._poll_run, args=work, name="braid-follower", daemon=True
        )
        self._thread.start()

    @property
    def is_active(self) -> bool:
        """Return whether the run is still followed."""
        return self._thread.is_alive()

    def stop(self, timeout: float | None = None) -> None:
        """Stop following the run, which continues, and wait for the thread."""
        self._halt.set()
        self.wait_for_end(timeout)

    def wait_for_end(self, timeout: float | None = None) -> None:
        """Wait until the run has ended and its last state is shown."""
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _poll_run(
        self, pump: EventPump, ended: Callable[[BaseException | None], Any], interval: float
    ) -> None:
        error: BaseException | None
        try:
            while pump.process_new():
                if self._halt.wait(interval):
                    return
            error = pump.run.exception()
        except Exception as failure:
            error = failure
        ended(error)


def error_html(error: BaseException) -> str:
    """Return an error as one line of HTML."""
    text = escape(summarize_error(error))
    return f'<div style="color:#c92a2a;font-weight:600" role="alert">{text}</div>'
