"""Events of frequent values that are shared out over hosts."""

from __future__ import annotations

from dataclasses import dataclass
from logging import INFO
from typing import NamedTuple

from braid.core.plan_sentences import format_count, format_hosts
from braid.core.run_events import Event, EventContext


class SpreadValue(NamedTuple):
    """A frequent value.

    - ``value``: its number, the hash of the join value.
    - ``hosts``: hosts that share its tuples.
    - ``share``: share of all tuples that have it in recent batches.
    - ``copied_streams``: the streams whose tuples all of these hosts store, while those of the
      other stream are sent to one host each. Empty: each tuple is stored once and sent to all.
    - ``copied_share``: share of all tuples that have the value and are of these streams.
    """

    value: int
    hosts: tuple[int, ...]
    share: float
    copied_streams: tuple[str, ...] = ()
    copied_share: float = 0.0


@dataclass(frozen=True, slots=True)
class SpreadChanged(Event):
    """The frequent values and their hosts change.

    - ``spread``: all frequent values from this batch on, the most frequent first.
    - ``before``, ``after``: work of the busiest host divided by the mean under both, modelled.
    - ``tuples_to_move``: stored tuples that are not where the new spread has them, estimated.
    """

    level = INFO
    retention_key = ()

    batch: int
    spread: tuple[SpreadValue, ...]
    before: float
    after: float
    tuples_to_move: int

    def describe_decision(self, moment: EventContext) -> str:
        load = f"the busiest host had {self.before:.2f} times the mean work, now {self.after:.2f}"
        moves = f"{format_count(self.tuples_to_move, 'row')} to move"
        if not self.spread:
            return f"no value is frequent any more: {load}; {moves}"
        first = self.spread[0]
        if copied := [value for value in self.spread if value.copied_streams]:
            of = ", ".join(sorted({name for value in copied for name in value.copied_streams}))
            moves += f"; all hosts of {format_count(len(copied), 'value')} store the rows of {of}"
        return (
            f"{format_count(len(self.spread), 'frequent value')} shared out, the first "
            f"({first.share:.1%} of the rows) on {format_hosts(first.hosts)}: {load}; {moves}"
        )
