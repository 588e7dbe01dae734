"""Facts about a combination of tuples and about its run, from which it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from braid.core.join_kinds import INNER, JoinKind
from braid.core.pair_shedding import PairShedding
from braid.util.batch_numbers import display_batch
from braid.util.durations import format_duration, format_instant
from braid.util.validation import format_value

_LONGEST = 60
"""Characters of a value in a step."""
_NUMBERS = (int, float, Decimal)


@dataclass(frozen=True)
class TupleFacts:
    """Facts about one tuple.

    - ``alias``: its stream.
    - ``label``: the alias and some columns, such as ``o id 7``.
    - ``batch``: the micro-batch in which it came; None: unknown.
    - ``time``: event time in microseconds; None: it has none.
    - ``behind``: microseconds by which it came behind what its stream's ``lateness`` allows; 0: it
      was in time; None: unknown.
    - ``let_go``: the first batch after which it may have been dropped; None: it is held, or this is
      unknown.
    """

    alias: str
    label: str
    batch: int | None = None
    time: int | None = None
    behind: int | None = 0
    let_go: int | None = None

    @property
    def arrival(self) -> str:
        """The label with the event time and the batch."""
        parts = [] if self.time is None else [format_instant(self.time).removesuffix(" UTC")]
        parts += [] if self.batch is None else [f"came in batch {display_batch(self.batch)}"]
        return f"{self.label} ({', '.join(parts)})" if parts else self.label


@dataclass(frozen=True)
class PartFacts:
    """A conjunct of the condition, evaluated for one combination of tuples.

    - ``text``: Spark SQL.
    - ``value``: whether it is true; None: it is NULL.
    - ``sides``: the values that a comparison compares; None: it is no comparison.
    - ``is_filter``: whether it concerns one stream.
    - ``reason``: why it could not be evaluated; empty: it was.
    """

    text: str
    value: bool | None
    sides: tuple[Any, Any] | None = None
    is_filter: bool = False
    reason: str = ""

    @property
    def is_true(self) -> bool:
        """Whether it is known to be true."""
        return self.value is True and not self.reason

    @property
    def distance(self) -> float | None:
        """How far the sides of a false comparison are apart; None: they have no distance."""
        if self.sides is None or None in self.sides or self.is_true:
            return None
        left, right = self.sides
        if isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
            return abs(float(left) - float(right))
        if len({getattr(side, "tzinfo", None) is None for side in self.sides}) > 1:
            return None  # which instant the one without a time zone means is Spark's to say
        if isinstance(left, date) and type(left) is type(right):
            return abs((left - right) / timedelta(microseconds=1))
        return None

    def describe_values(self) -> str:
        """Return the compared values, such as ``120 < 100``; empty if there are none."""
        if self.sides is None:
            return ""
        left, right = map(_format_operand, self.sides)
        if None in self.sides:
            return f"{left} and {right}"
        distance = self.distance
        if distance is None or self.value is None:
            return f"{left} and {right}"
        is_date = isinstance(self.sides[0], date)
        gap = format_duration(distance) if is_date else f"{distance:,.6g}"
        return f"{left} and {right}: misses by {gap}"


@dataclass(frozen=True)
class RunFacts:
    """Facts about the run that hold for all its tuples.

    - ``windows``: microseconds by alias; an absent alias has full history.
    - ``kind``: the kind of the join.
    - ``match``: "latest", "first" or "nearest" for an as-of join; empty: none.
    - ``timed``: aliases of streams whose tuples join nothing without event time.
    - ``has_pending_pairs``: whether a change of placement is in progress.
    - ``first_retained_batch``: the first batch whose results are kept.
    - ``delivered``: the last batch that ``foreachBatch`` received; None: the run has none.
    - ``keeping_setting``: the setting that keeps tuples of streams that do not end.
    """

    windows: Mapping[str, int] = field(default_factory=dict)
    kind: JoinKind = INNER
    match: str = ""
    timed: frozenset[str] = frozenset()
    has_pending_pairs: bool = False
    first_retained_batch: int = 0
    delivered: int | None = None
    keeping_setting: str = 'start(trace="7 days")'


@dataclass(frozen=True)
class PairFacts:
    """Facts about one combination of tuples.

    - ``tuples``: one of each named stream.
    - ``parts``: the conjuncts that concern only these streams.
    - ``result``: the batch whose results contain it; None: none does.
    - ``unmatched``: the alias and batch of a member that is a result without a partner; None: none.
    - ``partner``: in an as-of join, the partner that the first tuple has instead; empty: none.
    - ``waiting``: the alias of a member whose answer is not final; empty: none.
    - ``absent``: streams that were left out and have no tuple that completes it.
    - ``forgetful``: those of ``absent`` that no longer keep all of their tuples.
    - ``nearest``: the tuple of an absent stream that comes closest to it, with the parts of the
      condition for both; None: there is none, or it is unknown.
    - ``unserved``: why the query of a shared run need not answer it; empty: it must.
    - ``shedding``: how load shedding met it; None: the run sheds none.
    - ``access``: by which access paths a result was found, each with the parts of its index; empty:
      unknown.
    """

    tuples: tuple[TupleFacts, ...]
    parts: tuple[PartFacts, ...] = ()
    result: int | None = None
    unmatched: tuple[str, int] | None = None
    partner: str = ""
    waiting: str = ""
    absent: tuple[str, ...] = ()
    forgetful: tuple[str, ...] = ()
    nearest: tuple[TupleFacts, tuple[PartFacts, ...]] | None = None
    unserved: str = ""
    shedding: PairShedding | None = None
    access: tuple[tuple[str, str], ...] = ()


def _format_operand(value: Any) -> str:
    if value is None:
        return "NULL"
    text = str(value) if isinstance(value, date | timedelta | Decimal) else format_value(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
