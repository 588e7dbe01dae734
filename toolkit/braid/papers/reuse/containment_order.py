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
class OrderEntry(Generic[K, V]):
    """A key, what it leads to, its least containers (``above``) and greatest contained
    (``below``).
    """

    key: K
    value: V
    nid: int = 0
    containers: list[OrderEntry[K, V]] = field(default_factory=list)
    contained: list[OrderEntry[K, V]] = field(default_factory=list)


class ContainmentOrder(Generic[K, V]):
    """Keys by containment. ``holds(a, b)`` says whether a contains b; it is reflexive and
    transitive. Keys that contain each other are told apart, and neither is below the other.
    """

    def __init__(self, holds: Callable[[K, K], bool], new: Callable[[], V]) -> None:
        self._holds, self._new = holds, new
        self.entries: dict[K, OrderEntry[K, V]] = {}

    def get_or_insert(self, key: K) -> OrderEntry[K, V]:
        """The entry of a key, which is put in if it is not there."""
        found = self.entries.get(key)
        return self._insert_key(key) if found is None else found

    def _insert_key(self, key: K) -> OrderEntry[K, V]:
        new = OrderEntry(key, self._new())
        new.containers = self._find_lowest_fitting(
            lambda e: self._is_strict_container(e.key, key),
            lambda e: e.contained,
            self.maximal_entries(),
        )
        new.contained = self._find_lowest_fitting(
            lambda e: self._is_strict_container(key, e.key),
            lambda e: e.containers,
            [e for e in self.entries.values() if not e.contained],
        )
        for upper in new.containers:
            upper.contained = [e for e in upper.contained if e not in new.contained] + [new]
        for lower in new.contained:
            lower.containers = [e for e in lower.containers if e not in new.containers] + [new]
        self.entries[key] = new
        return new

    def _is_strict_container(self, a: K, b: K) -> bool:
        return self._holds(a, b) and not self._holds(b, a)

    def _find_lowest_fitting(
        self,
        fits: Callable[[OrderEntry[K, V]], bool],
        on: Callable[[OrderEntry[K, V]], list[OrderEntry[K, V]]],
        start: list[OrderEntry[K, V]],
    ) -> list[OrderEntry[K, V]]:
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

    def maximal_entries(self) -> list[OrderEntry[K, V]]:
        """The entries that no other contains."""
        return [e for e in self.entries.values() if not e.containers]

    def remove_key(self, key: K) -> None:
        """Take a key out; what it contained hangs on what contained it."""
        gone = self.entries.pop(key)
        for upper in gone.containers:
            upper.contained.remove(gone)
        for lower in gone.contained:
            lower.containers.remove(gone)
        for lower in gone.contained:
            for upper in gone.containers:
                if not any(self._is_strict_container(upper.key, e.key) for e in lower.containers):
                    lower.containers.append(upper)
                    upper.contained.append(lower)

    def entries_containing(self, wanted: K, regions: int) -> Iterator[OrderEntry[K, V]]:
        """The entries in these regions whose keys contain what is wanted: from the greatest down.
        One that does not contain it says so for all that it contains.
        """
        todo, seen = [(e) for e in self.maximal_entries()], set[int]()
        while todo:
            entry = todo.pop()
            if id(entry) in seen:
                continue
            seen.add(id(entry))
            if self._holds(entry.key, wanted):
                todo += entry.contained
                if entry.nid & regions:
                    yield entry
