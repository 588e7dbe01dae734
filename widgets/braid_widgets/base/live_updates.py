"""Follow a live run: one thread looks at it now and then, and has shown what is new."""

from __future__ import annotations

import threading
from collections.abc import Callable
from html import escape
from typing import Any, Protocol, runtime_checkable

from braid.core.events import count_event_numbers
from braid.util.error_summary import summarize_error

from braid_widgets.base.progress import input_batches
from braid_widgets.base.run_view import RunView, fold_events
from braid_widgets.base.time_left import TimeLeftEstimator

INTERVAL = 0.2
"""Seconds between two looks at a run."""


@runtime_checkable
class ObservableRun(Protocol):
    """What a view needs of a running join; JoinRun has it."""

    @property
    def isActive(self) -> bool:
        """Whether the run goes on."""

    def events(self, since: int = 0) -> list[Any]:
        """What happened, from event number ``since`` on."""

    def exception(self) -> BaseException | None:
        """What made the run fail; None when nothing did."""


def is_paused(run: ObservableRun) -> bool:
    """Whether a run that can be held is."""
    return bool(getattr(run, "isPaused", False))


class EventPump:
    """Draws the events of a live run into a scene, and has it shown when something is new."""

    def __init__(self, run: ObservableRun, show: Callable[[RunView], Any]) -> None:
        self.run, self.show = run, show
        self.scene, self.cursor = RunView(pace=TimeLeftEstimator()), 0
        self.paused = False

    def process_new(self) -> bool:
        """Take what is new; returns whether there may be more to come."""
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
    """Follows a run from its start, in a thread of its own that ends with the run.

    ``show`` gets the scene when something is new, every ``interval`` seconds at most; ``ended``
    gets what made the run or the view fail, or None.
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
        """Whether the run is followed still."""
        return self._thread.is_alive()

    def stop(self, timeout: float | None = None) -> None:
        """Follow no longer (the run goes on), and wait for the thread."""
        self._halt.set()
        self.wait_for_end(timeout)

    def wait_for_end(self, timeout: float | None = None) -> None:
        """Wait until the run has ended and been shown."""
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
    """An error as one line of HTML."""
    text = escape(summarize_error(error))
    return f'<div style="color:#c92a2a;font-weight:600" role="alert">{text}</div>'
