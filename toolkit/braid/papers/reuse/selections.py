"""Selections on one stream: implication, intersection and the minimal cover of several.

Seshadri 2008, section 3.1, step 1, asks for a minimal cover and does not say how to find it. A
selection here is a disjunction of boxes, so the cover of two is their disjunction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, NamedTuple

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
            return self if self.includes_null and other.includes_null else NO_VALUES
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

    def complement(self) -> tuple[ColumnDomain, ...]:
        """Return disjoint domains that together contain every value except this domain's."""
        if self.includes_null:
            return (SOME,)
        if self.values is not None:
            return NULL, ColumnDomain(excluded=self.values)
        parts = [NULL] + [make_value_set(value) for value in self.excluded]
        if self.lower is not None:
            parts.append(ColumnDomain(upper=(self.lower[0], not self.lower[1])))
        if self.upper is not None:
            parts.append(ColumnDomain(lower=(self.upper[0], not self.upper[1])))
        return tuple(parts)

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


NO_VALUES = ColumnDomain(values=frozenset())
NULL = ColumnDomain(includes_null=True)
SOME = ColumnDomain()
"""Every value except NULL."""


def make_interval(
    least: Bound = None, most: Bound = None, out: frozenset[Any] = frozenset()
) -> ColumnDomain:
    """Return the domain between two ends, in its simplest form."""
    if least is not None and most is not None:
        if least[0] > most[0]:
            return NO_VALUES
        if least[0] == most[0]:
            one = least[1] and most[1] and least[0] not in out
            return ColumnDomain(values=frozenset([least[0]])) if one else NO_VALUES
    interval = ColumnDomain(least, most)
    return replace(interval, excluded=frozenset(filter(interval.contains, out)))


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


MOST_BOXES = 64
"""Maximum number of boxes. A selection with more is treated as one opaque condition."""


class OpaqueCondition(NamedTuple):
    """A condition on one stream that is known only by its text and its columns."""

    text: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conjunction:
    """A box: a domain for each restricted column, and opaque conditions; all must hold.

    ``domains`` are sorted by column, each once.
    """

    domains: tuple[tuple[str, ColumnDomain], ...] = ()
    opaque_conditions: frozenset[OpaqueCondition] = frozenset()

    @classmethod
    def make(
        cls, domains: Mapping[str, ColumnDomain], opaque: Iterable[OpaqueCondition] = ()
    ) -> Conjunction:
        """Return a box with these domains by column."""
        return cls(tuple(sorted(domains.items(), key=lambda d: d[0])), frozenset(opaque))

    @cached_property
    def by_column(self) -> dict[str, ColumnDomain]:
        """The domains by column."""
        return dict(self.domains)

    @cached_property
    def referenced_columns(self) -> frozenset[str]:
        """The columns that the conditions read."""
        return frozenset(self.by_column).union(*(o.columns for o in self.opaque_conditions))

    @cached_property
    def _cached_hash(self) -> int:
        return hash((self.domains, self.opaque_conditions))

    def __hash__(self) -> int:
        return self._cached_hash

    def is_subset(self, other: Conjunction) -> bool:
        """Return whether this box is a subset of another. True is certain; False may be wrong."""
        if not other.opaque_conditions <= self.opaque_conditions:
            return False
        by_column = self.by_column
        return all(c in by_column and by_column[c].is_subset(domain) for c, domain in other.domains)

    def intersect(self, other: Conjunction) -> Conjunction | None:
        """Return the intersection of two boxes; None if it is empty."""
        domains = dict(self.domains)
        for column, domain in other.domains:
            domains[column] = domain if column not in domains else domains[column].intersect(domain)
            if domains[column].is_empty:
                return None
        return Conjunction.make(domains, self.opaque_conditions | other.opaque_conditions)

    def subtract(self, other: Conjunction) -> list[Conjunction]:
        """Return disjoint boxes that together are this box without another one.

        The opaque conditions of this box must include those of the other.
        """
        if self.intersect(other) is None:
            return [self]
        outside, rest = [], self
        for column, domain in other.domains:
            parts = (Conjunction.make({column: part}) for part in domain.complement())
            outside += [box for part in parts if (box := rest.intersect(part)) is not None]
            rest = rest.intersect(Conjunction.make({column: domain})) or rest
        return outside

    def union(self, other: Conjunction) -> Conjunction | None:
        """Return the union of two boxes that differ in one column; None if it is not a box."""
        if (
            self.opaque_conditions != other.opaque_conditions
            or self.by_column.keys() != other.by_column.keys()
        ):
            return None
        differing = [c for c, domain in self.domains if other.by_column[c] != domain]
        if len(differing) != 1:
            return None
        merged = self.by_column[differing[0]].union(other.by_column[differing[0]])
        return (
            None
            if merged is None
            else Conjunction.make({**self.by_column, differing[0]: merged}, self.opaque_conditions)
        )

    @property
    def to_sql(self) -> str:
        """The box as a readable SQL condition."""
        parts = [domain.to_sql(column) for column, domain in self.domains]
        return " AND ".join(parts + sorted(o.text for o in self.opaque_conditions)) or "TRUE"


@dataclass(frozen=True)
class Selection:
    """A selection on one stream: a tuple passes if it is in one of the boxes.

    Without a box nothing passes; a box without a condition accepts everything.
    """

    conjunctions: frozenset[Conjunction]

    @classmethod
    def make(cls, boxes: Iterable[Conjunction]) -> Selection:
        """Return a selection without boxes that are subsets of others, in any order."""
        maximal: list[Conjunction] = []
        for box in sorted(set(boxes), key=lambda b: b.to_sql):
            if not any(box.is_subset(other) for other in maximal):
                maximal = [other for other in maximal if not other.is_subset(box)] + [box]
        return cls(frozenset(maximal))

    @cached_property
    def _cached_hash(self) -> int:
        return hash(self.conjunctions)

    def __hash__(self) -> int:
        return self._cached_hash

    @cached_property
    def referenced_columns(self) -> frozenset[str]:
        """The columns that the selection reads."""
        return frozenset().union(*(box.referenced_columns for box in self.conjunctions))

    @cached_property
    def to_sql(self) -> str:
        """The selection as readable SQL. Boxes that differ in one column are merged."""
        boxes = sorted(box.to_sql for box in _merge_boxes(self.conjunctions))
        if len(boxes) < 2:
            return boxes[0] if boxes else "FALSE"
        return " OR ".join(f"({text})" for text in boxes)


EVERYTHING = Selection(frozenset([Conjunction()]))


def _merge_boxes(boxes: Iterable[Conjunction]) -> list[Conjunction]:
    merged: list[Conjunction] = []
    for box in sorted(boxes, key=lambda b: b.to_sql):
        while mergeable := next(((o, w) for o in merged if (w := o.union(box)) is not None), None):
            merged.remove(mergeable[0])
            box = mergeable[1]
        merged.append(box)
    return merged


@lru_cache(maxsize=1 << 16)
def implies_selection(p: Selection, q: Selection) -> bool:
    """Return whether every tuple that passes p passes q. True is certain.

    Values are taken to be dense: False may be wrong if only the type of a column shows that no
    value is between two ends, or if an opaque condition hides the reason.
    """
    return p == q or all(_is_covered(box, q.conjunctions) for box in p.conjunctions)


def _is_covered(box: Conjunction, others: Iterable[Conjunction]) -> bool:
    """Return whether boxes together cover a box, one of them alone or several."""
    if any(domain.is_empty for _, domain in box.domains):
        return True
    useful = [o for o in others if o.opaque_conditions <= box.opaque_conditions]
    if any(map(box.is_subset, useful)):
        return True
    overlapping = [o for o in useful if box.intersect(o) is not None]
    if len(overlapping) < 2:
        return False
    uncovered = [box]
    for other in overlapping:
        uncovered = [part for rest in uncovered for part in rest.subtract(other)]
    return not uncovered


def union_selections(selections: Iterable[Selection]) -> Selection:
    """Return the least selection that covers all of these: their disjunction."""
    different = list(dict.fromkeys(selections))
    if len(different) == 1:
        return different[0]
    return Selection.make(box for s in different for box in s.conjunctions)


def intersect_selections(p: Selection, q: Selection) -> Selection | None:
    """Return the conjunction; None if it has more than ``MOST_BOXES`` boxes."""
    if len(p.conjunctions) * len(q.conjunctions) > MOST_BOXES:
        return None
    return Selection.make(_intersect_boxes(p, q))


def _intersect_boxes(p: Selection, q: Selection) -> Iterator[Conjunction]:
    for a, b in product(p.conjunctions, q.conjunctions):
        if (box := a.intersect(b)) is not None:
            yield box
