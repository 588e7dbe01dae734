"""Follow a live run: a thread polls it and shows new events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from html import escape
from typing import Any, Protocol, runtime_checkable

from braid.core.run_events import RunEnded, count_event_numbers
from braid.util.error_summary import summarize_error

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


def read_new_events(
    run: ObservableRun, wait: Callable[[], Any] = lambda: None
) -> Iterator[list[Any] | None]:
    """Yield the new events of a run at each poll until it has ended; None if nothing is new.

    A pause is new too, even without an event. ``wait`` is called between polls.
    """
    cursor, was_paused, is_over = 0, False, False
    while not is_over:
        is_over = not run.isActive
        new = run.events(since=cursor)
        cursor += count_event_numbers(new)
        is_over |= bool(new) and isinstance(new[-1], RunEnded)
        paused = is_paused(run)
        yield new if new or paused != was_paused else None
        was_paused = paused
        if not is_over:
            wait()


class RunFollower:
    """A thread that follows a run from its start and ends with the run.

    - ``show``: called with the new events if anything is new.
    - ``interval``: minimum seconds between two calls of ``show``.
    - ``ended``: called once with the error that made the run or the view fail, or None.
    """

    def __init__(
        self,
        run: ObservableRun,
        show: Callable[[list[Any]], Any],
        ended: Callable[[BaseException | None], Any],
        interval: float = INTERVAL,
    ) -> None:
        self._run, self._show, self._ended, self._interval = run, show, ended, interval
        self._halt = threading.Event()
        self._thread = threading.Thread(None, self._poll_run, "braid-follower", daemon=True)
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

    def _poll_run(self) -> None:
        error: BaseException | None
        try:
            for new in read_new_events(self._run, lambda: self._halt.wait(self._interval)):
                if self._halt.is_set():
                    return
                if new is not None:
                    self._show(new)
            error = self._run.exception()
        except Exception as failure:
            error = failure
        self._ended(error)


def error_html(error: BaseException) -> str:
    """Return an error as one line of HTML."""
    text = escape(summarize_error(error))
    return f'<div style="color:#c92a2a;font-weight:600" role="alert">{text}</div>'
