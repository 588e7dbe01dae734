"""Wait for a run while one line of progress is overwritten, in a notebook or on a console."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from braid.core.run_events import count_event_numbers
from IPython import get_ipython

from braid_widgets.base.interactivity import is_headless
from braid_widgets.base.progress import progress_line
from braid_widgets.base.run_view import RunView, fold_events

_TELLER: ContextVar[Callable[[str], Any] | None] = ContextVar("braid-teller", default=None)


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
