"""Recordings: the events of a run in one file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from braid.core.event_jsonl import encode_event
from braid.core.run_events import Event


def write_events(path: str | Path, events: Iterable[Event], append: bool = False) -> None:
    """Write events as lines of JSON; with ``append``, at the end of the file."""
    with open(path, "ab" if append else "wb") as file:
        file.writelines([encode_event(e) for e in events])
