"""The reuse lattice: an index of operators by definition and location.

It is a filter tree. Its levels are the streams, the join conditions and the grouping, then
selections, columns and windows, with network locations at every node.

Source: Seshadri 2008, section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from braid.papers.reuse.containment_order import ContainmentOrder, OrderEntry
from braid.papers.reuse.query_definition import (
    Column,
    Definition,
    JoinCondition,
    can_serve,
    join_columns,
    slides_contain,
)
from braid.papers.reuse.selections import Selection, implies_selection

ALL = -1
"""Every region."""

Windows = tuple[tuple[int, ...], frozenset[int]]
"""RANGE by stream, and SLIDE."""


@dataclass(frozen=True)
class LatticeEntry:
    """An operator in the lattice: its definition, its demands, and the NID of its location.

    Results are those of all demands together, but only what one demand contains is certain to be
    among them.
    """

    id: int
    definition: Definition
    demands: tuple[Definition, ...]
    nid: int = 1

    def can_serve(self, wanted: Definition) -> bool:
        """Return whether one demand, with all result columns, contains the wanted definition."""
        columns = self.definition.columns
        return any(can_serve(with_result_columns(d, columns), wanted) for d in self.demands)


def with_result_columns(demand: Definition, columns: tuple[frozenset[str], ...]) -> Definition:
    """Return a demand with the columns of its operator's results."""
    return Definition(
        demand.streams, demand.joins, demand.selections, demand.windows, columns, demand.slides,
        demand.groups, demand.aggregates, demand.kind, demand.left_stream, demand.match,
    )  # fmt: skip


def windows_contain(a: Windows, b: Windows) -> bool:
    """Return whether windows contain others.

    (r, s) contains (q, t) iff r >= q and s divides t (figure 2).
    """
    return all(r >= q for r, q in zip(a[0], b[0], strict=True)) and slides_contain(a[1], b[1])


def are_all_implied(a: tuple[Selection, ...], b: tuple[Selection, ...]) -> bool:
    """Return whether each selection of ``b`` implies that of ``a``."""
    return all(map(implies_selection, b, a))


def are_all_subsets(a: Sequence[frozenset[str]], b: Sequence[frozenset[str]]) -> bool:
    """Return whether the columns of ``b`` are among those of ``a``, stream by stream."""
    return all(q <= p for p, q in zip(a, b, strict=True))


def _make_window_order() -> ContainmentOrder[Windows, dict[int, int]]:
    return ContainmentOrder(windows_contain, dict)


def _make_column_order() -> ContainmentOrder[tuple[frozenset[str], ...], Any]:
    return ContainmentOrder(are_all_subsets, _make_window_order)


class LatticeGroup:
    """The operators below one key of the third level: all base conditions are equal."""

    def __init__(self) -> None:
        self.offers: dict[int, LatticeEntry] = {}
        self.selections: ContainmentOrder[tuple[Selection, ...], Any] = ContainmentOrder(
            are_all_implied, _make_column_order
        )
        self.nid = 0

    def insert_entry(self, offer: LatticeEntry) -> None:
        """Add an operator."""
        self.offers[offer.id] = offer
        self.nid |= offer.nid
        for key in _make_entry_keys(offer):
            for entry in self._iterate_key_path(key):
                entry.nid |= offer.nid
            entry.value[offer.id] = offer.nid

    def _iterate_key_path(self, key: tuple[Any, Any, Any]) -> Iterator[OrderEntry[Any, Any]]:
        node: ContainmentOrder[Any, Any] = self.selections
        for part in key:
            entry = node.get_or_insert(part)
            yield entry
            node = entry.value

    def remove_entry(self, id: int) -> None:
        """Remove an operator, and the keys that only it has."""
        offer = self.offers.pop(id)
        self.nid = _combine_location_indicators(o.nid for o in self.offers.values())
        for key in _make_entry_keys(offer):
            entries = list(self._iterate_key_path(key))
            nodes = [self.selections, *(e.value for e in entries[:-1])]
            entries[-1].value.pop(id, None)
            for node, entry in reversed(list(zip(nodes, entries, strict=True))):
                last = entry is entries[-1]
                entry.nid = _combine_location_indicators(
                    entry.value.values() if last else (e.nid for e in entry.value.entries.values())
                )
                if not (entry.value if last else entry.value.entries):
                    node.remove_key(entry.key)

    def find_serving_operators(
        self, wanted: Definition, regions: int, joins: frozenset[JoinCondition]
    ) -> set[int]:
        """Return the ids of operators that need no change, from the last three levels."""
        serving: set[int] = set()
        extra = join_columns(j for j in wanted.joins - joins if not j.is_implied)
        none = frozenset[str]()
        columns = [
            c | extra.get(s, none) for s, c in zip(wanted.streams, wanted.columns, strict=True)
        ]
        for s in self.selections.entries_containing(wanted.selections, regions):
            needed = tuple(
                c if p == q else c | q.referenced_columns
                for c, p, q in zip(columns, s.key, wanted.selections, strict=True)
            )
            for c in s.value.entries_containing(needed, regions):
                for w in c.value.entries_containing((wanted.windows, wanted.slides), regions):
                    serving.update(id for id, nid in w.value.items() if nid & regions)
        return serving


def _make_entry_keys(offer: LatticeEntry) -> list[tuple[Any, Any, Any]]:
    columns = offer.definition.columns
    return [(d.selections, columns, (d.windows, d.slides)) for d in dict.fromkeys(offer.demands)]


def _combine_location_indicators(nids: Iterable[int]) -> int:
    indicator = 0
    for nid in nids:
        indicator |= nid
    return indicator


class ReuseLattice:
    """An index of operators that queries can reuse.

    ``groups``: by streams, join conditions and grouping, the operators of these levels.
    """

    def __init__(self, offers: Iterable[LatticeEntry] = ()) -> None:
        self.groups: dict[
            tuple[str, ...],
            dict[frozenset[JoinCondition], dict[frozenset[Column] | None, LatticeGroup]],
        ] = {}
        self._homes: dict[int, LatticeGroup] = {}
        for offer in offers:
            self.insert_entry(offer)

    def __len__(self) -> int:
        return len(self._homes)

    def insert_entry(self, offer: LatticeEntry) -> None:
        """Insert an operator. It replaces one with the same id."""
        if offer.id in self._homes:
            self.remove_entry(offer.id)
        streams, joins, groups = offer.definition.base_conditions
        home = self.groups.setdefault(streams, {}).setdefault(joins, {})
        self._homes[offer.id] = home.setdefault(groups, LatticeGroup())
        self._homes[offer.id].insert_entry(offer)

    def remove_entry(self, id: int) -> None:
        """Remove an operator. Raises KeyError if it is unknown."""
        group = self._homes.pop(id)
        groups_of = next(iter(group.offers.values())).definition.base_conditions
        group.remove_entry(id)
        if not group.offers:
            streams, joins, groups = groups_of
            del self.groups[streams][joins][groups]
            if not self.groups[streams][joins]:
                del self.groups[streams][joins]
            if not self.groups[streams]:
                del self.groups[streams]

    def find_reusable_operators(
        self, wanted: Definition, regions: int = ALL, relax: bool = True
    ) -> list[tuple[LatticeEntry, bool]]:
        """Return the operators in these regions (bits) that can be reused.

        Each comes with whether it serves unchanged. Without ``relax``, only those that do are
        returned.
        """
        reusable = []
        for joins, group in self._find_matching_groups(wanted):
            if not group.nid & regions:
                continue
            serving = (
                group.find_serving_operators(wanted, regions, joins)
                if wanted.groups is None
                else {o.id for o in group.offers.values() if o.can_serve(wanted)}
            )
            chosen = group.offers if relax else serving
            reusable += [
                (group.offers[id], id in serving) for id in chosen if group.offers[id].nid & regions
            ]
        return sorted(reusable, key=lambda f: f[0].id)

    def _find_matching_groups(
        self, wanted: Definition
    ) -> Iterator[tuple[frozenset[JoinCondition], LatticeGroup]]:
        for joins, groups in self.groups.get(wanted.streams, {}).items():
            if joins <= wanted.joins:
                for key, group in groups.items():
                    if key is None or (wanted.groups is not None and wanted.groups <= key):
                        yield joins, group
