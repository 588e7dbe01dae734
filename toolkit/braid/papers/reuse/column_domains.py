"""What a selection lets pass of one column: an interval, a few values, or NULL."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

Bound = tuple[Any, bool] | None
"""An end of an interval, and whether it belongs to it; None: there is no end."""


@dataclass(frozen=True, slots=True)
class ColumnDomain:
    """The values from ``least`` to ``most`` but for those in ``out``; or, if ``among`` is given,
    those; or NULL alone.

    Values are of one kind with a total order: integers and fractions, floats (NaN is above all
    others, as in Spark, and is never an end), or text by code point. A comparison with NULL lets
    nothing pass, so NULL is in a domain only if ``null`` is set, and then nothing else is.
    """

    lower: Bound = None
    upper: Bound = None
    values: frozenset[Any] | None = None
    excluded: frozenset[Any] = frozenset()
    includes_null: bool = False

    def contains(self, value: Any) -> bool:
        """Whether a value passes; None is NULL."""
        if value is None or self.includes_null:
            return value is None and self.includes_null
        if self.values is not None:
            return value in self.values
        return (
            self._is_above_least(value)
            and self._is_below_most(value)
            and value not in self.excluded
        )

    def _is_above_least(self, value: Any) -> bool:
        if self.lower is None or value != value:  # NaN is above all
            return True
        end, closed = self.lower
        return bool(value >= end if closed else value > end)

    def _is_below_most(self, value: Any) -> bool:
        if self.upper is None:
            return True
        end, closed = self.upper
        return bool(value <= end if closed else value < end)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known to pass. A domain that lets nothing pass may be taken for one
        that does.
        """
        return self.values is not None and not self.values

    def is_subset(self, other: ColumnDomain) -> bool:
        """Whether every value that passes here passes there too. "No" may be wrong, "yes" never."""
        if self.includes_null or other.includes_null:
            return self.includes_null and other.includes_null
        if self.values is not None:
            return all(map(other.contains, self.values))
        if other.values is not None:
            return False
        low = other.lower is None or (
            self.lower is not None
            and _make_lower_end_key(self.lower) >= _make_lower_end_key(other.lower)
        )
        high = other.upper is None or (
            self.upper is not None
            and _make_upper_end_key(self.upper) <= _make_upper_end_key(other.upper)
        )
        return low and high and not any(map(self.contains, other.excluded))

    def intersect(self, other: ColumnDomain) -> ColumnDomain:
        """What passes here and there."""
        if self.includes_null or other.includes_null:
            return self if self.includes_null and other.includes_null else NOTHING
        if self.values is not None:
            return replace(self, values=frozenset(filter(other.contains, self.values)))
        if other.values is not None:
            return other.intersect(self)
        ends = [b for b in (self.lower, other.lower) if b is not None]
        least = max(ends, key=_make_lower_end_key) if ends else None
        ends = [b for b in (self.upper, other.upper) if b is not None]
        most = min(ends, key=_make_upper_end_key) if ends else None
        return make_interval(least, most, self.excluded | other.excluded)

    def union(self, other: ColumnDomain) -> ColumnDomain | None:
        """What passes here or there, if that is a domain; else None."""
        if self.is_subset(other):
            return other
        if other.is_subset(self):
            return self
        if self.values is not None and other.values is not None:
            return replace(self, values=self.values | other.values)
        return None

    def to_sql(self, column: str) -> str:
        """As a condition in SQL, for reading.

        >>> Domain(least=(3, True), most=(9, False)).text("x")
        'x >= 3 AND x < 9'
        """
        if self.includes_null:
            return f"{column} IS NULL"
        if self.values is not None:
            values = ", ".join(map(_to_sql_literal, sorted(self.values)))
            return f"{column} = {values}" if len(self.values) == 1 else f"{column} IN ({values})"
        parts = [
            f"{column} {sign}{'=' if end[1] else ''} {_to_sql_literal(end[0])}"
            for sign, end in ((">", self.lower), ("<", self.upper))
            if end is not None
        ]
        parts += [f"{column} <> {_to_sql_literal(value)}" for value in sorted(self.excluded)]
        return " AND ".join(parts) or f"{column} IS NOT NULL"


NOTHING = ColumnDomain(values=frozenset())
NULL = ColumnDomain(includes_null=True)
SOME = ColumnDomain()
"""Every value but NULL."""


def make_interval(
    least: Bound = None, most: Bound = None, out: frozenset[Any] = frozenset()
) -> ColumnDomain:
    """The domain between two ends, in its simplest form."""
    if least is not None and most is not None:
        if least[0] > most[0]:
            return NOTHING
        if least[0] == most[0]:
            one = least[1] and most[1] and least[0] not in out
            return ColumnDomain(values=frozenset([least[0]])) if one else NOTHING
    found = ColumnDomain(least, most)
    return replace(found, excluded=frozenset(filter(found.contains, out)))


def make_value_set(*values: Any) -> ColumnDomain:
    """The domain of these values."""
    return ColumnDomain(values=frozenset(values))


def _make_lower_end_key(end: tuple[Any, bool]) -> tuple[Any, bool]:
    return end[0], not end[1]


def _make_upper_end_key(end: tuple[Any, bool]) -> tuple[Any, bool]:
    return end


def _to_sql_literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return str(value)
