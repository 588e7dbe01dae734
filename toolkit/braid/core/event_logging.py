"""Log the events of a run under the logger ``braid``, as they occur.

Start, end and every change of plan (a migration, a switch, a query added or removed) are INFO,
batches are DEBUG, a failed run is an ERROR. To see them: ``logging.basicConfig();
logging.getLogger("braid").setLevel("INFO")``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import fields

from braid.core.events import Event, RunEnded

LOGGER = logging.getLogger("braid")


def log_events(happened: Iterable[Event]) -> None:
    """Log each event at its level."""
    for event in happened:
        failed = isinstance(event, RunEnded) and event.outcome == "failed"
        level = logging.ERROR if failed else event.level
        if LOGGER.isEnabledFor(level):
            LOGGER.log(level, format_event(event))


def format_event(event: Event) -> str:
    """Return an event's type and its plain values.

    >>> format_event(RunEnded(7, "failed", "OSError: no space left"))
    "RunEnded: batch 7, outcome 'failed', error 'OSError: no space left'"
    """
    values = [(f.name, getattr(event, f.name)) for f in fields(event)]  # type: ignore[arg-type]
    plain = ", ".join(f"{name} {value!r}" for name, value in values if isinstance(value, int | str))
    return f"{type(event).__name__}: {plain}"
