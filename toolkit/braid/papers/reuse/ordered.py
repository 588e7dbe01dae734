"""Keys in an order of containment, each with the regions of what it leads to: one node of the
reuse lattice (Seshadri 2008, section 4.1 and figure 2).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(eq=False)
class Entry(Generic[K, V]):
    """A key, what it leads to, its least containers (``above``) and greatest contained
    (``below``).
    """

    key: K
    value: V
    nid: int = 0
    above: list[Entry[K, V]] = field(default_factory=list)
    below: list[Entry[K, V]] = field(default_factory=list)


class Ordered(Generic[K, V]):
    """Keys by containment. ``holds(a, b)`` says whether a contains b; it is reflexive and
    transitive. Keys that contain each other are told apart, and neither is below the other.
    """

    def __init__(self, holds: Callable[[K, K], bool], new: Callable[[], V]) -> None:
        self._holds, self._new = holds, new
        self.entries: dict[K, Entry[K, V]] = {}

    def at(self, key: K) -> Entry[K, V]:
        """The entry of a key, which is put in if it is not there."""
        found = self.entries.get(key)
        return self._put(key) if found is None else found

    def _put(self, key: K) -> Entry[K, V]:
        new = Entry(key, self._new())
        new.above = self._lowest(lambda e: self._over(e.key, key), lambda e: e.below, self.tops())
        new.below = self._lowest(
            lambda e: self._over(key, e.key),
            lambda e: e.above,
            [e for e in self.entries.values() if not e.below],
        )
        for upper in new.above:
            upper.below = [e for e in upper.below if e not in new.below] + [new]
        for lower in new.below:
            lower.above = [e for e in lower.above if e not in new.above] + [new]
        self.entries[key] = new
        return new

    def _over(self, a: K, b: K) -> bool:
        return self._holds(a, b) and not self._holds(b, a)

    def _lowest(
        self,
        fits: Callable[[Entry[K, V]], bool],
        on: Callable[[Entry[K, V]], list[Entry[K, V]]],
        start: list[Entry[K, V]],
    ) -> list[Entry[K, V]]:
        """The entries that fit, on from which none fits. What fits is closed towards ``start``."""
        found, todo, seen = [], [e for e in start if fits(e)], set[int]()
        while todo:
            entry = todo.pop()
            if id(entry) in seen:
                continue
            seen.add(id(entry))
            further = [e for e in on(entry) if fits(e)]
            todo += further
            found += [] if further else [entry]
        return found

    def tops(self) -> list[Entry[K, V]]:
        """The entries that no other contains."""
        return [e for e in self.entries.values() if not e.above]

    def remove(self, key: K) -> None:
        """Take a key out; what it contained hangs on what contained it."""
        gone = self.entries.pop(key)
        for upper in gone.above:
            upper.below.remove(gone)
        for lower in gone.below:
            lower.above.remove(gone)
        for lower in gone.below:
            for upper in gone.above:
                if not any(self._over(upper.key, e.key) for e in lower.above):
                    lower.above.append(upper)
                    upper.below.append(lower)

    def holding(self, wanted: K, regions: int) -> Iterator[Entry[K, V]]:
        """The entries in these regions whose keys contain what is wanted: from the greatest down.
        One that does not contain it says so for all that it contains.
        """
        todo, seen = [(e) for e in self.tops()], set[int]()
        while todo:
            entry = todo.pop()
            if id(entry) in seen:
                continue
            seen.add(id(entry))
            if self._holds(entry.key, wanted):
                todo += entry.below
                if entry.nid & regions:
                    yield entry
