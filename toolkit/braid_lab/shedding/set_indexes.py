"""Inverted indexes over sets, in two orders.

A list for each item has the sets that contain it. Ordered by identifier, a set is inserted and
removed by search. Ordered by time, sets are inserted at the front and removed at the end. Neither
then takes a search, and a merge can stop at a time, which makes it possible to process a part of a
window.

Source: Gedik 2007, section 4.2, Fig. 4.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from heapq import heappop as pop
from math import ceil, log2
from typing import Literal

from braid_lab.common.tuple_models import Trace, TraceStep

Order = Literal["identifier", "time"]
Entry = tuple[int, int]
"""The sort key of a list: (identifier, 0), or (-time, -identifier), the newest first."""


@dataclass
class InvertedIndex:
    """Identifiers of sets by item.

    ``moves`` counts the work of keeping the lists sorted: a search of a list of n, or one step if
    none is needed.
    """

    order: Order
    lists: dict[int, list[Entry]] = field(default_factory=dict)
    times: dict[int, int] = field(default_factory=dict)
    moves: int = 0

    def _make_entry(self, identifier: int, time: int) -> Entry:
        return (identifier, 0) if self.order == "identifier" else (-time, -identifier)

    def _get_identifier(self, entry: Entry) -> int:
        return entry[0] if self.order == "identifier" else -entry[1]

    def insert_set(self, identifier: int, time: int, items: frozenset[int]) -> None:
        """Add a set; sets arrive in the order of their times."""
        self.times[identifier] = time
        for item in sorted(items):
            entries = self.lists.setdefault(item, [])
            self.moves += 1 if self.order == "time" else _count_search_steps(len(entries))
            insort(entries, self._make_entry(identifier, time))

    def remove_set(self, identifier: int, items: frozenset[int]) -> None:
        """Remove a set. If the order is by time, it is the oldest of each of its lists."""
        time = self.times.pop(identifier)
        for item in sorted(items):
            entries = self.lists[item]
            if self.order == "time":
                self.moves += 1
                assert entries.pop() == (-time, -identifier), "sets leave in the order they came"
            else:
                self.moves += _count_search_steps(len(entries))
                del entries[bisect_left(entries, (identifier, 0))]

    def merge_lists(
        self, query: frozenset[int], since: int | None = None
    ) -> Iterator[tuple[int, int]]:
        """Yield (identifier, item) of the query's lists, merged by a heap.

        A set that shares m items with the query comes m times in a row. ``since`` ends the merge
        before older sets; only lists by time support it.
        """
        if since is not None and self.order == "identifier":
            raise ValueError("lists by identifier cannot stop at a time")
        heads = [(self.lists[i][0], i, 0) for i in sorted(query) if self.lists.get(i)]
        heapify(heads)
        while heads:
            entry, item, at = heads[0]
            if since is not None and -entry[0] < since:
                return
            yield self._get_identifier(entry), item
            if at + 1 < len(self.lists[item]):
                heapreplace(heads, (self.lists[item][at + 1], item, at + 1))
            else:
                pop(heads)

    def count_common(self, query: frozenset[int], since: int | None = None) -> dict[int, int]:
        """Return the number of items that each set shares with the query, if any."""
        counts: dict[int, int] = {}
        for identifier, _ in self.merge_lists(query, since):
            counts[identifier] = counts.get(identifier, 0) + 1
        return counts


def _count_search_steps(length: int) -> int:
    return ceil(log2(length + 1)) + 1


_SETS = ({1, 2}, {2, 3, 4}, {1, 4}, {2, 3}, {1, 2, 4})
_QUERY = frozenset({1, 2, 4})


def index_example() -> Trace:
    """Return Fig. 4 step by step.

    Five sets arrive, the oldest leaves, and the lists of a query's items are merged for the newest
    three sets.
    """
    trace, index = Trace("Lists ordered by time (Gedik 2007, Fig. 4)", 2, 1), InvertedIndex("time")
    held, merged = dict[int, frozenset[int]](), list[tuple[int, int]]()

    def tell(text: str, arrival: str, clock: int) -> None:
        rows = [
            (
                str(item),
                " ".join(f"b{-entry[1]}" for entry in entries),
                " ".join(f"b{n}" for n, of in merged if of == item),
            )
            for item, entries in sorted(index.lists.items())
        ]
        stored = ((), tuple(f"b{n}" for n in reversed(held)))
        table = (("item", "sets that have it, newest first", "merged"), *rows)
        trace.steps.append(TraceStep(text, arrival, clock, 0, (stored,), table=table))

    for n, items in enumerate(map(frozenset, _SETS), 1):
        held[n] = items
        index.insert_set(n, n, items)
        tell(
            f"b{n} comes: it goes to the front of the lists of {_format_items(items)}.", f"b{n}", n
        )
    index.remove_set(1, held.pop(1))
    tell("b1 has expired: it is the last of each of its lists, and leaves.", "a1", 6)
    for n, item in index.merge_lists(_QUERY, since=3):
        merged.append((n, item))
        common = sum(other == n for other, _ in merged)
        text = (
            f"a1, with {_format_items(_QUERY)}, merges their lists: next comes b{n}, from "
            f"that of {item}"
        )
        tell(f"{text}; {common} in common so far.", "a1", 6)
    tell(
        "Next would be b2, older than the part of the window that is processed: the merge stops. "
        "Lists by identifier would have to be merged to their ends.",
        "a1",
        6,
    )
    return trace


def _format_items(items: frozenset[int]) -> str:
    *some, last = map(str, sorted(items))
    return f"{', '.join(some)} and {last}"
