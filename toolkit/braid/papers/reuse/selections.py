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

from braid.papers.reuse.domains import Domain

MOST_BOXES = 64
"""A selection of more boxes is not told apart: its text is one opaque condition."""


class Opaque(NamedTuple):
    """A condition on one stream of which only the text is known, and the columns that it reads."""

    text: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Box:
    """A conjunction: by column what may pass, and opaque conditions.

    ``domains`` are sorted by column, each once.
    """

    domains: tuple[tuple[str, Domain], ...] = ()
    opaque: frozenset[Opaque] = frozenset()

    @classmethod
    def of(cls, domains: Mapping[str, Domain], opaque: Iterable[Opaque] = ()) -> Box:
        """A box from domains by column."""
        return cls(tuple(sorted(domains.items(), key=lambda d: d[0])), frozenset(opaque))

    @cached_property
    def by_column(self) -> dict[str, Domain]:
        """The domains by column."""
        return dict(self.domains)

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns that it reads."""
        return frozenset(self.by_column).union(*(o.columns for o in self.opaque))

    @cached_property
    def _hash(self) -> int:
        return hash((self.domains, self.opaque))

    def __hash__(self) -> int:
        return self._hash

    def within(self, other: Box) -> bool:
        """Whether every tuple that passes here passes there; "no" may be wrong, "yes" never."""
        if not other.opaque <= self.opaque:
            return False
        mine = self.by_column
        return all(c in mine and mine[c].within(domain) for c, domain in other.domains)

    def both(self, other: Box) -> Box | None:
        """What passes here and there; None if nothing can."""
        domains = dict(self.domains)
        for column, domain in other.domains:
            domains[column] = domain if column not in domains else domains[column].both(domain)
            if domains[column].empty:
                return None
        return Box.of(domains, self.opaque | other.opaque)

    def either(self, other: Box) -> Box | None:
        """What passes here or there, if that is a box: the two differ in one column."""
        if self.opaque != other.opaque or self.by_column.keys() != other.by_column.keys():
            return None
        apart = [c for c, domain in self.domains if other.by_column[c] != domain]
        if len(apart) != 1:
            return None
        whole = self.by_column[apart[0]].either(other.by_column[apart[0]])
        return None if whole is None else Box.of({**self.by_column, apart[0]: whole}, self.opaque)

    @property
    def text(self) -> str:
        """As a condition in SQL, for reading."""
        parts = [domain.text(column) for column, domain in self.domains]
        return " AND ".join(parts + sorted(o.text for o in self.opaque)) or "TRUE"


@dataclass(frozen=True)
class Selection:
    """A selection on one stream: a tuple passes if it passes one of the boxes. Without a box
    nothing passes; a box without a condition lets everything pass.
    """

    boxes: frozenset[Box]

    @classmethod
    def of(cls, boxes: Iterable[Box]) -> Selection:
        """Without boxes that are within others: the same in whatever order they come."""
        kept: list[Box] = []
        for box in sorted(set(boxes), key=lambda b: b.text):
            if not any(box.within(other) for other in kept):
                kept = [other for other in kept if not other.within(box)] + [box]
        return cls(frozenset(kept))

    @cached_property
    def _hash(self) -> int:
        return hash(self.boxes)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns that it reads."""
        return frozenset().union(*(box.columns for box in self.boxes))

    @cached_property
    def text(self) -> str:
        """As a condition in SQL, for reading: boxes that differ in one column are one."""
        boxes = sorted(box.text for box in _joined(self.boxes))
        if len(boxes) < 2:
            return boxes[0] if boxes else "FALSE"
        return " OR ".join(f"({text})" for text in boxes)

    def passes(self, row: Mapping[str, Any], known: Mapping[str, bool] | None = None) -> bool:
        """Whether a tuple passes; ``known`` says which opaque conditions hold of it, by text."""
        known = known or {}
        return any(
            all(domain.holds(row.get(c)) for c, domain in box.domains)
            and all(known.get(o.text, False) for o in box.opaque)
            for box in self.boxes
        )


EVERYTHING = Selection(frozenset([Box()]))
NOTHING = Selection(frozenset())


def _joined(boxes: Iterable[Box]) -> list[Box]:
    kept: list[Box] = []
    for box in sorted(boxes, key=lambda b: b.text):
        while found := next(((o, w) for o in kept if (w := o.either(box)) is not None), None):
            kept.remove(found[0])
            box = found[1]
        kept.append(box)
    return kept


@lru_cache(maxsize=1 << 16)
def implies(p: Selection, q: Selection) -> bool:
    """Whether every tuple that passes p passes q. "Yes" is certain. "No" may be wrong: where two
    boxes of q are needed to hold one of p, or where text hides a reason.
    """
    return p == q or all(any(box.within(other) for other in q.boxes) for box in p.boxes)


def either(selections: Iterable[Selection]) -> Selection:
    """The least selection that covers all of these: their disjunction."""
    different = list(dict.fromkeys(selections))
    if len(different) == 1:
        return different[0]
    return Selection.of(box for s in different for box in s.boxes)


def both(p: Selection, q: Selection) -> Selection | None:
    """The conjunction; None if it has too many boxes to be told apart."""
    if len(p.boxes) * len(q.boxes) > MOST_BOXES:
        return None
    return Selection.of(_met(p, q))


def _met(p: Selection, q: Selection) -> Iterator[Box]:
    for a, b in product(p.boxes, q.boxes):
        if (box := a.both(b)) is not None:
            yield box
