"""Wait for a run: its progress in one line that is written over and over, in a notebook and on a
console alike.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from braid.core.events import count_event_numbers
from IPython import get_ipython

from braid_widgets.base.interactivity import is_headless
from braid_widgets.base.progress import progress_line
from braid_widgets.base.run_view import RunView, fold_events

_TELLER: ContextVar[Callable[[str], Any] | None] = ContextVar("braid-teller", default=None)


@contextmanager
def redirect_progress(say: Callable[[str], Any]) -> Iterator[None]:
    """Have ``console`` call this instead of printing."""
    token = _TELLER.set(say)
    try:
        yield
    finally:
        _TELLER.reset(token)


class AwaitableRun(Protocol):
    """What following a run needs of it; JoinRun has it."""

    def events(self, since: int = 0) -> list[Any]:
        """What happened, from event number ``since`` on."""

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait at most ``timeout`` seconds; returns whether the run has ended."""

    def stop(self) -> None:
        """End the run."""


def print_progress(text: str) -> None:
    """Over the line before: under the cell in a notebook, else to stderr, which a report does not
    keep.
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
    """The events of a run, once it has ended; tells ``say`` how far it is, and whoever listens (see
    ``telling``) at every look. Raises what made the run fail, and what ``say`` raises, once the run
    has been stopped.
    """
    scene, seen, told, ended = RunView(), 0, "", False
    while not ended:
        ended = run.awaitTermination(interval)
        new = run.events(since=seen)
        seen += count_event_numbers(new)
        now = progress_line(fold_events(new, scene))
        if now != told or _TELLER.get() is not None:
            try:
                say(now)
            except Exception:  # whoever listened has left
                run.stop()
                raise
            told = now
    say(f"{told}\n")
    return run.events()
