"""Selections on one stream: implication, intersection and the minimal cover of several.

Seshadri 2008, section 3.1, step 1, asks for a minimal cover and does not say how to find it. A
selection here is a disjunction of boxes, so the cover of two is their disjunction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, NamedTuple

from braid.papers.reuse.column_domains import ColumnDomain

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
        mine = self.by_column
        return all(c in mine and mine[c].is_subset(domain) for c, domain in other.domains)

    def intersect(self, other: Conjunction) -> Conjunction | None:
        """Return the intersection of two boxes; None if it is empty."""
        domains = dict(self.domains)
        for column, domain in other.domains:
            domains[column] = domain if column not in domains else domains[column].intersect(domain)
            if domains[column].is_empty:
                return None
        return Conjunction.make(domains, self.opaque_conditions | other.opaque_conditions)

    def union(self, other: Conjunction) -> Conjunction | None:
        """Return the union of two boxes that differ in one column; None if it is not a box."""
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
        """The columns that the selection reads."""
        return frozenset().union(*(box.referenced_columns for box in self.conjunctions))

    @cached_property
    def to_sql(self) -> str:
        """The selection as readable SQL. Boxes that differ in one column are merged."""
        boxes = sorted(box.to_sql for box in _merge_boxes(self.conjunctions))
        if len(boxes) < 2:
            return boxes[0] if boxes else "FALSE"
        return " OR ".join(f"({text})" for text in boxes)

    def accepts(self, row: Mapping[str, Any], known: Mapping[str, bool] | None = None) -> bool:
        """Return whether a tuple passes; ``known`` has the opaque conditions by text."""
        known = known or {}
        return any(
            all(domain.contains(row.get(c)) for c, domain in box.domains)
            and all(known.get(o.text, False) for o in box.opaque_conditions)
            for box in self.conjunctions
        )


EVERYTHING = Selection(frozenset([Conjunction()]))


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
    """Return whether every tuple that passes p passes q. True is certain.

    False may be wrong if covering a box of p takes two boxes of q, or if an opaque condition hides
    the reason.
    """
    return p == q or all(
        any(box.is_subset(other) for other in q.conjunctions) for box in p.conjunctions
    )


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
