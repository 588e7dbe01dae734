"""A partial order of keys by containment, with the regions of each key's operators.

It is the structure inside each node of the reuse lattice. Source: Seshadri 2008, section 4.1 and
figure 2.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(eq=False)
class OrderEntry(Generic[K, V]):
    """A key and its value, with its least ``containers`` and greatest ``contained`` entries."""

    key: K
    value: V
    nid: int = 0
    containers: list[OrderEntry[K, V]] = field(default_factory=list)
    contained: list[OrderEntry[K, V]] = field(default_factory=list)


class ContainmentOrder(Generic[K, V]):
    """Keys ordered by containment.

    ``holds(a, b)`` returns whether a contains b; it must be reflexive and transitive. Keys that
    contain each other remain separate entries, and neither is below the other.
    """

    def __init__(self, holds: Callable[[K, K], bool], new: Callable[[], V]) -> None:
        self._holds, self._new = holds, new
        self.entries: dict[K, OrderEntry[K, V]] = {}

    def get_or_insert(self, key: K) -> OrderEntry[K, V]:
        """Return the entry of a key, and insert the key if it is missing."""
        entry = self.entries.get(key)
        return self._insert_key(key) if entry is None else entry

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
        """Return the last entries on each path from ``start`` that fit.

        If an entry fits, every entry between it and ``start`` must fit too.
        """
        lowest, todo, seen = [], [e for e in start if fits(e)], set[int]()
        while todo:
            entry = todo.pop()
            if id(entry) in seen:
                continue
            seen.add(id(entry))
            further = [e for e in on(entry) if fits(e)]
            todo += further
            lowest += [] if further else [entry]
        return lowest

    def maximal_entries(self) -> list[OrderEntry[K, V]]:
        """Return the entries that no other entry contains."""
        return [e for e in self.entries.values() if not e.containers]

    def remove_key(self, key: K) -> None:
        """Remove a key. The entries below it are attached to the entries above it."""
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
        """Yield the entries in these regions whose keys contain the wanted one, greatest first.

        If a key does not contain the wanted one, the entries below it are skipped.
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
