"""Domains: the values of one column that a selection accepts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

Bound = tuple[Any, bool] | None
"""An end of an interval, and whether the end is included; None: unbounded."""


@dataclass(frozen=True, slots=True)
class ColumnDomain:
    """A set of values of one column: an interval, a finite set, or NULL alone.

    With ``values`` None, the domain is the interval from ``lower`` to ``upper`` without the
    ``excluded`` values; otherwise it is exactly ``values``. All values have one totally ordered
    kind: integers and fractions, floats, or text by code point. NaN is above all other floats, as
    in Spark, and is never an end. A comparison with NULL is never true, so NULL belongs to a domain
    only if ``includes_null`` is set; the domain then contains nothing else.
    """

    lower: Bound = None
    upper: Bound = None
    values: frozenset[Any] | None = None
    excluded: frozenset[Any] = frozenset()
    includes_null: bool = False

    def contains(self, value: Any) -> bool:
        """Return whether the domain contains a value; None is NULL."""
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
        """Whether the domain is known to be empty. An empty domain may go unnoticed."""
        return self.values is not None and not self.values

    def is_subset(self, other: ColumnDomain) -> bool:
        """Return whether the domain is a subset of another. True is certain; False may be wrong."""
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
        """Return the intersection of two domains."""
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
        """Return the union of two domains, or None if it is not a domain."""
        if self.is_subset(other):
            return other
        if other.is_subset(self):
            return self
        if self.values is not None and other.values is not None:
            return replace(self, values=self.values | other.values)
        return None

    def to_sql(self, column: str) -> str:
        """Return the domain as a readable SQL condition.

        >>> ColumnDomain(lower=(3, True), upper=(9, False)).to_sql("x")
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
"""Every value except NULL."""


def make_interval(
    least: Bound = None, most: Bound = None, out: frozenset[Any] = frozenset()
) -> ColumnDomain:
    """Return the domain between two ends, in its simplest form."""
    if least is not None and most is not None:
        if least[0] > most[0]:
            return NOTHING
        if least[0] == most[0]:
            one = least[1] and most[1] and least[0] not in out
            return ColumnDomain(values=frozenset([least[0]])) if one else NOTHING
    found = ColumnDomain(least, most)
    return replace(found, excluded=frozenset(filter(found.contains, out)))


def make_value_set(*values: Any) -> ColumnDomain:
    """Return the domain that contains exactly these values."""
    return ColumnDomain(values=frozenset(values))


def _make_lower_end_key(end: tuple[Any, bool]) -> tuple[Any, bool]:
    return end[0], not end[1]


def _make_upper_end_key(end: tuple[Any, bool]) -> tuple[Any, bool]:
    return end


def _to_sql_literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return str(value)
