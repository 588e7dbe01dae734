"""Wait for a run: its progress in one line that is written over and over, in a notebook and on a console alike."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

from widgets.fold import Scene, fold
from widgets.progress import line


class Awaited(Protocol):
    def events(self, since: int = 0) -> list[Any]: ...

    def awaitTermination(self, timeout: float | None = None) -> bool: ...  # noqa: N802 (Spark's name)


def console(text: str) -> None:
    """To stderr, over the line before; a report does not keep it."""
    print(f"\r{text.rstrip():<79}", end="\n" if text.endswith("\n") else "", file=sys.stderr, flush=True)


def follow(run: Awaited, say: Callable[[str], Any] = console, interval: float = 0.5) -> list[Any]:
    """The events of a run, once it has ended; tells ``say`` how far it is. Raises what made the run fail."""
    scene, seen, told, ended = Scene(), 0, "", False
    while not ended:
        ended = run.awaitTermination(interval)
        new = run.events(since=seen)
        seen += len(new)
        now = line(fold(new, scene))
        if now != told:
            say(now)
            told = now
    say(f"{told}\n")
    return run.events()
