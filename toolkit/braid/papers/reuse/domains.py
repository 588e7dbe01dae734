"""What a selection lets pass of one column: an interval, a few values, or NULL."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

Bound = tuple[Any, bool] | None
"""An end of an interval, and whether it belongs to it; None: there is no end."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The values from ``least`` to ``most`` but for those in ``out``; or, if ``among`` is given,
    those; or NULL alone.

    Values are of one kind with a total order: integers and fractions, floats (NaN is above all
    others, as in Spark, and is never an end), or text by code point. A comparison with NULL lets
    nothing pass, so NULL is in a domain only if ``null`` is set, and then nothing else is.
    """

    least: Bound = None
    most: Bound = None
    among: frozenset[Any] | None = None
    out: frozenset[Any] = frozenset()
    null: bool = False

    def holds(self, value: Any) -> bool:
        """Whether a value passes; None is NULL."""
        if value is None or self.null:
            return value is None and self.null
        if self.among is not None:
            return value in self.among
        return self._above(value) and self._below(value) and value not in self.out

    def _above(self, value: Any) -> bool:
        if self.least is None or value != value:  # NaN is above all
            return True
        end, closed = self.least
        return bool(value >= end if closed else value > end)

    def _below(self, value: Any) -> bool:
        if self.most is None:
            return True
        end, closed = self.most
        return bool(value <= end if closed else value < end)

    @property
    def empty(self) -> bool:
        """Whether nothing is known to pass. A domain that lets nothing pass may be taken for one
        that does.
        """
        return self.among is not None and not self.among

    def within(self, other: Domain) -> bool:
        """Whether every value that passes here passes there too. "No" may be wrong, "yes" never."""
        if self.null or other.null:
            return self.null and other.null
        if self.among is not None:
            return all(map(other.holds, self.among))
        if other.among is not None:
            return False
        low = other.least is None or (
            self.least is not None and _from(self.least) >= _from(other.least)
        )
        high = other.most is None or (self.most is not None and _to(self.most) <= _to(other.most))
        return low and high and not any(map(self.holds, other.out))

    def both(self, other: Domain) -> Domain:
        """What passes here and there."""
        if self.null or other.null:
            return self if self.null and other.null else NOTHING
        if self.among is not None:
            return replace(self, among=frozenset(filter(other.holds, self.among)))
        if other.among is not None:
            return other.both(self)
        ends = [b for b in (self.least, other.least) if b is not None]
        least = max(ends, key=_from) if ends else None
        ends = [b for b in (self.most, other.most) if b is not None]
        most = min(ends, key=_to) if ends else None
        return interval(least, most, self.out | other.out)

    def either(self, other: Domain) -> Domain | None:
        """What passes here or there, if that is a domain; else None."""
        if self.within(other):
            return other
        if other.within(self):
            return self
        if self.among is not None and other.among is not None:
            return replace(self, among=self.among | other.among)
        return None

    def text(self, column: str) -> str:
        """As a condition in SQL, for reading.

        >>> Domain(least=(3, True), most=(9, False)).text("x")
        'x >= 3 AND x < 9'
        """
        if self.null:
            return f"{column} IS NULL"
        if self.among is not None:
            values = ", ".join(map(_written, sorted(self.among)))
            return f"{column} = {values}" if len(self.among) == 1 else f"{column} IN ({values})"
        parts = [
            f"{column} {sign}{'=' if end[1] else ''} {_written(end[0])}"
            for sign, end in ((">", self.least), ("<", self.most))
            if end is not None
        ]
        parts += [f"{column} <> {_written(value)}" for value in sorted(self.out)]
        return " AND ".join(parts) or f"{column} IS NOT NULL"


NOTHING = Domain(among=frozenset())
NULL = Domain(null=True)
SOME = Domain()
"""Every value but NULL."""


def interval(least: Bound = None, most: Bound = None, out: frozenset[Any] = frozenset()) -> Domain:
    """The domain between two ends, in its simplest form."""
    if least is not None and most is not None:
        if least[0] > most[0]:
            return NOTHING
        if least[0] == most[0]:
            one = least[1] and most[1] and least[0] not in out
            return Domain(among=frozenset([least[0]])) if one else NOTHING
    found = Domain(least, most)
    return replace(found, out=frozenset(filter(found.holds, out)))


def among(*values: Any) -> Domain:
    """The domain of these values."""
    return Domain(among=frozenset(values))


def _from(end: tuple[Any, bool]) -> tuple[Any, bool]:
    return end[0], not end[1]


def _to(end: tuple[Any, bool]) -> tuple[Any, bool]:
    return end


def _written(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return str(value)
