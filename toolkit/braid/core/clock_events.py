"""The event of a clock that jumps."""

from __future__ import annotations

from dataclasses import dataclass
from logging import WARNING

from braid.core.run_events import Event, EventContext
from braid.util.durations import format_instant


@dataclass(frozen=True, slots=True)
class ClockJumped(Event):
    """A jump of a stream's clock from ``before`` to ``after`` (event times in microseconds).

    ``support`` tuples have such times. Tuples behind the new clock are late from now on. The event
    precedes the batch's commit.

    If ``before`` is None, the stream began with fewer than eight tuples, far ahead of another
    stream.
    """

    level = WARNING
    retention_key = ("stream",)

    batch: int
    stream: str
    before: int | None
    after: int
    support: int

    def describe_decision(self, moment: EventContext) -> str:
        rows = f"{self.support:,} row{'s' if self.support > 1 else ''}"
        if self.before is None:
            return (
                f"the clock of {self.stream} begins at {format_instant(self.after)}, by "
                f"{rows} alone"
            )
        return (
            f"the clock of {self.stream} jumps from {format_instant(self.before)} to "
            f"{format_instant(self.after)}, by {rows}"
        )
