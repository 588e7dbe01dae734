"""Selections on one stream: whether one implies another, and the least that covers both.

Source: Seshadri 2008, section 3.1, step 1, which asks for a minimal cover and does not say how to
find it. A selection here is a disjunction of boxes, so the cover of two is their disjunction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, NamedTuple

from braid.papers.reuse.column_domains import ColumnDomain

MOST_BOXES = 64
"""A selection of more boxes is not told apart: its text is one opaque condition."""


class OpaqueCondition(NamedTuple):
    """A condition on one stream of which only the text is known, and the columns that it reads."""

    text: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conjunction:
    """A conjunction: by column what may pass, and opaque conditions.

    ``domains`` are sorted by column, each once.
    """

    domains: tuple[tuple[str, ColumnDomain], ...] = ()
    opaque_conditions: frozenset[OpaqueCondition] = frozenset()

    @classmethod
    def make(
        cls, domains: Mapping[str, ColumnDomain], opaque: Iterable[OpaqueCondition] = ()
    ) -> Conjunction:
        """A box from domains by column."""
        return cls(tuple(sorted(domains.items(), key=lambda d: d[0])), frozenset(opaque))

    @cached_property
    def by_column(self) -> dict[str, ColumnDomain]:
        """The domains by column."""
        return dict(self.domains)

    @cached_property
    def referenced_columns(self) -> frozenset[str]:
        """The columns that it reads."""
        return frozenset(self.by_column).union(*(o.columns for o in self.opaque_conditions))

    @cached_property
    def _cached_hash(self) -> int:
        return hash((self.domains, self.opaque_conditions))

    def __hash__(self) -> int:
        return self._cached_hash

    def is_subset(self, other: Conjunction) -> bool:
        """Whether every tuple that passes here passes there; "no" may be wrong, "yes" never."""
        if not other.opaque_conditions <= self.opaque_conditions:
            return False
        mine = self.by_column
        return all(c in mine and mine[c].is_subset(domain) for c, domain in other.domains)

    def intersect(self, other: Conjunction) -> Conjunction | None:
        """What passes here and there; None if nothing can."""
        domains = dict(self.domains)
        for column, domain in other.domains:
            domains[column] = domain if column not in domains else domains[column].intersect(domain)
            if domains[column].is_empty:
                return None
        return Conjunction.make(domains, self.opaque_conditions | other.opaque_conditions)

    def union(self, other: Conjunction) -> Conjunction | None:
        """What passes here or there, if that is a box: the two differ in one column."""
        if (
            self.opaque_conditions != other.opaque_conditions
            or self.by_column.keys() != other.by_column.keys()
        ):
            return None
        apart = [c for c, domain in self.domains if other.by_column[c] != domain]
        if len(apart) != 1:
            return None
        whole = self.by_column[apart[0]].union(other.by_column[apart[0]])
        return (
            None
            if whole is None
            else Conjunction.make({**self.by_column, apart[0]: whole}, self.opaque_conditions)
        )

    @property
    def to_sql(self) -> str:
        """As a condition in SQL, for reading."""
        parts = [domain.to_sql(column) for column, domain in self.domains]
        return " AND ".join(parts + sorted(o.text for o in self.opaque_conditions)) or "TRUE"


@dataclass(frozen=True)
class Selection:
    """A selection on one stream: a tuple passes if it passes one of the boxes. Without a box
    nothing passes; a box without a condition lets everything pass.
    """

    conjunctions: frozenset[Conjunction]

    @classmethod
    def make(cls, boxes: Iterable[Conjunction]) -> Selection:
        """Without boxes that are within others: the same in whatever order they come."""
        kept: list[Conjunction] = []
        for box in sorted(set(boxes), key=lambda b: b.to_sql):
            if not any(box.is_subset(other) for other in kept):
                kept = [other for other in kept if not other.is_subset(box)] + [box]
        return cls(frozenset(kept))

    @cached_property
    def _cached_hash(self) -> int:
        return hash(self.conjunctions)

    def __hash__(self) -> int:
        return self._cached_hash

    @cached_property
    def referenced_columns(self) -> frozenset[str]:
        """The columns that it reads."""
        return frozenset().union(*(box.referenced_columns for box in self.conjunctions))

    @cached_property
    def to_sql(self) -> str:
        """As a condition in SQL, for reading: boxes that differ in one column are one."""
        boxes = sorted(box.to_sql for box in _merge_boxes(self.conjunctions))
        if len(boxes) < 2:
            return boxes[0] if boxes else "FALSE"
        return " OR ".join(f"({text})" for text in boxes)

    def accepts(self, row: Mapping[str, Any], known: Mapping[str, bool] | None = None) -> bool:
        """Whether a tuple passes; ``known`` says which opaque conditions hold of it, by text."""
        known = known or {}
        return any(
            all(domain.contains(row.get(c)) for c, domain in box.domains)
            and all(known.get(o.text, False) for o in box.opaque_conditions)
            for box in self.conjunctions
        )


EVERYTHING = Selection(frozenset([Conjunction()]))
NOTHING = Selection(frozenset())


def _merge_boxes(boxes: Iterable[Conjunction]) -> list[Conjunction]:
    kept: list[Conjunction] = []
    for box in sorted(boxes, key=lambda b: b.to_sql):
        while found := next(((o, w) for o in kept if (w := o.union(box)) is not None), None):
            kept.remove(found[0])
            box = found[1]
        kept.append(box)
    return kept


@lru_cache(maxsize=1 << 16)
def implies_selection(p: Selection, q: Selection) -> bool:
    """Whether every tuple that passes p passes q. "Yes" is certain. "No" may be wrong: where two
    boxes of q are needed to hold one of p, or where text hides a reason.
    """
    return p == q or all(
        any(box.is_subset(other) for other in q.conjunctions) for box in p.conjunctions
    )


def union_selections(selections: Iterable[Selection]) -> Selection:
    """The least selection that covers all of these: their disjunction."""
    different = list(dict.fromkeys(selections))
    if len(different) == 1:
        return different[0]
    return Selection.make(box for s in different for box in s.conjunctions)


def intersect_selections(p: Selection, q: Selection) -> Selection | None:
    """The conjunction; None if it has too many boxes to be told apart."""
    if len(p.conjunctions) * len(q.conjunctions) > MOST_BOXES:
        return None
    return Selection.make(_intersect_boxes(p, q))


def _intersect_boxes(p: Selection, q: Selection) -> Iterator[Conjunction]:
    for a, b in product(p.conjunctions, q.conjunctions):
        if (box := a.intersect(b)) is not None:
            yield box
