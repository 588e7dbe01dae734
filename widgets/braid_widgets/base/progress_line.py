"""The progress of a run as one line, and a wait in which it is overwritten."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from braid.core.run_events import count_event_numbers
from braid.util.durations import UNITS, format_duration
from IPython import get_ipython

from braid_widgets.base.batch_figures import BatchFigures
from braid_widgets.base.interactivity import is_headless
from braid_widgets.base.run_view import RunView, fold_events
from braid_widgets.base.text import MODELLED

FINISHING = "input done, finishing a migration"
RECENT = 10
"""Number of latest batches over which a rate is measured."""
_TELLER: ContextVar[Callable[[str], Any] | None] = ContextVar("braid-teller", default=None)


def progress_line(scene: RunView) -> str:
    """Return the finished and total batches, tuples per second and, for a live run, the time left.

    The rate and the time left are absent if time was not measured.
    """
    if scene.start is None:
        return "nothing has started"
    planned, done = scene.start.planned_batches, scene.input_batches
    of = f" of {planned:,} ({done / planned:.0%})" if planned else ""
    parts = [f"batch {done:,}{of}", *([FINISHING] if scene.is_finishing else [])]
    if recent := _list_timed_batches(scene):
        seconds = sum(p.seconds for p in recent)
        parts.append(f"{sum(p.received for p in recent) / seconds:,.0f} tuples/s")
    if left := format_time_left(scene):
        parts.append(left)
    if scene.is_modelled:
        parts.append(MODELLED)
    if scene.end is not None:
        parts.append(scene.end.outcome + (f": {scene.end.error}" if scene.end.error else ""))
    return " · ".join(parts)


def _list_timed_batches(scene: RunView) -> list[BatchFigures]:
    """Return the latest batches with input and a measured time."""
    planned = scene.start.planned_batches if scene.start else None
    last = float("inf") if planned is None else planned + scene.changes
    return [p for p in scene.points if p.seconds > 0 and p.batch < last][-RECENT:]


def format_time_left(scene: RunView) -> str:
    """Return the time until the last planned batch, in words; empty if it is unknown.

    A batch is taken to last as long as the latest ones on average, with its commit, or the interval
    if that is longer.
    """
    start, last, recent = scene.start, scene.last, _list_timed_batches(scene)
    batches = (start.planned_batches or 0) - scene.input_batches if start else 0
    if start is None or last is None or not recent or batches <= 0 or scene.end is not None:
        return ""
    mean = sum(p.seconds for p in recent) / len(recent) + last.previous_commit_seconds
    seconds = batches * max(mean, start.interval_seconds or 0.0)
    return f"{format_duration(round(seconds) * UNITS['second'])} left"


@contextmanager
def redirect_progress(say: Callable[[str], Any]) -> Iterator[None]:
    """Pass progress lines to ``say`` instead of printing them, inside the ``with`` block."""
    token = _TELLER.set(say)
    try:
        yield
    finally:
        _TELLER.reset(token)


class AwaitableRun(Protocol):
    """The part of a run that ``follow_run`` needs; JoinRun implements it."""

    def events(self, since: int = 0) -> list[Any]:
        """Return the run's events from event number ``since`` on."""

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait at most ``timeout`` seconds; return whether the run has ended."""

    def stop(self) -> None:
        """Stop the run."""


def print_progress(text: str) -> None:
    """Overwrite the previous progress line.

    The line is below the cell in a notebook, else on stderr, which a report does not keep. Inside
    ``redirect_progress`` its callback is called instead.
    """
    if (say := _TELLER.get()) is not None:
        say(text)
        return
    live = get_ipython() is not None and not is_headless()
    end = "\n" if text.endswith("\n") else ""
    print(f"\r{text.rstrip():<79}", end=end, file=sys.stdout if live else sys.stderr, flush=True)


def follow_run(
    run: AwaitableRun, say: Callable[[str], Any] = print_progress, interval: float = 0.5
) -> list[Any]:
    """Wait for the end of a run and return its events.

    ``say`` is called with the progress line if it has changed; inside ``redirect_progress`` it is
    called at every poll. Raises the run's error. If ``say`` raises, the run is stopped and that
    error is raised.
    """
    scene, seen, reported, ended = RunView(), 0, "", False
    while not ended:
        ended = run.awaitTermination(interval)
        new = run.events(since=seen)
        seen += count_event_numbers(new)
        now = progress_line(fold_events(new, scene))
        if now != reported or _TELLER.get() is not None:
            try:
                say(now)
            except Exception:  # the listener has gone
                run.stop()
                raise
            reported = now
    say(f"{reported}\n")
    return run.events()
