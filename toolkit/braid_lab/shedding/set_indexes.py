"""Inverted indexes over sets, in two orders.

A list for each item has the sets that contain it. Ordered by identifier, a set is inserted and
removed by search. Ordered by time, sets are inserted at the front and removed at the end. Neither
then takes a search, and a merge can stop at a time, which makes it possible to process a part of a
window.

Source: Gedik 2007, section 4.2, Fig. 4.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from heapq import heappop as pop
from math import ceil, log2
from typing import Literal

from braid.util.validation import read_natural

from braid_lab.common.tuple_models import (
    Line,
    Place,
    Rows,
    StepExample,
    Stepper,
    Stored,
    Trace,
    TraceMove,
)
from braid_lab.shedding.listings import INDEX

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


_QUERY = frozenset({1, 2, 4})


def index_example() -> Trace:
    """Return Fig. 4 step by step.

    Five sets arrive, the oldest leaves, and the lists of a query's items are merged for the newest
    three sets.
    """
    return EXAMPLE.trace()


def run_typed(text: str) -> Trace:
    """Return the steps for typed sets: their items with commas between.

    The first set leaves, and the lists of 1, 2 and 4 are merged down to the third. Raises
    ValueError unless there are 3 to 9 sets.
    """
    sets = [[read_natural(item) for item in word.split(",")] for word in text.split()]
    if not 3 <= len(sets) <= 9 or any(None in items for items in sets):
        raise ValueError(f"{text!r} is not 3 to 9 sets of items, such as 1,2 2,3,4 1,4")
    return _IndexSteps([frozenset(n for n in items if n is not None) for items in sets]).trace


EXAMPLE = StepExample(
    run_typed,
    ("1,2 2,3,4 1,4 2,3 1,2,4",),
    ("3 to 9 sets: their items, with commas between",),
    {"one item is everywhere": ("1 1,2 1 1,4 1",)},
)


class _IndexSteps(Stepper):
    """The steps of lists by time: a node for each list, and one for what is merged."""

    def __init__(self, sets: list[frozenset[int]]) -> None:
        self.index, self.merged = InvertedIndex("time"), list[tuple[int, int]]()
        self.items = sorted({item for items in sets for item in items})
        names = tuple(f"list of {item}" for item in self.items)
        self.trace = Trace(
            "Lists ordered by time (Gedik 2007, Fig. 4)",
            2,
            len(names) + 1,
            listings=(INDEX,),
            names=(*names, f"a1, which has {_format_items(_QUERY)}"),
        )
        for n, items in enumerate(sets, 1):
            self.now, self.clock = f"b{n}", n
            self.index.insert_set(n, n, items)
            self._tell(
                f"b{n} comes: it goes to the front of the lists of {_format_items(items)}.", 1
            )
        self.now, self.clock = "a1", len(sets) + 1
        self.index.remove_set(1, sets[0])
        self._tell("b1 has expired: it is the last of each of its lists, and leaves.", 2)
        self._merge()

    def _merge(self) -> None:
        for n, item in self.index.merge_lists(_QUERY, since=3):
            self.merged.append((n, item))
            common = sum(other == n for other, _ in self.merged)
            text = f"a1 merges the lists of its items: next comes b{n}, from that of {item}"
            at = self.items.index(item)
            move = TraceMove(f"b{n}", "copy", at, len(self.items))
            self._tell(f"{text}; {common} in common so far.", 3, at, [move])
        self._tell(
            "Next would be b2, older than the part of the window that is processed: the merge "
            "stops. Lists by identifier would have to be merged to their ends.",
            4,
        )

    def _tell(
        self, text: str, line: int, node: int | None = None, moves: Iterable[TraceMove] = ()
    ) -> None:
        self.record_step(text, node, moves, line=Line("Section 4.2", line, line))

    def _list_names(self, item: int) -> tuple[str, ...]:
        return tuple(f"b{-entry[1]}" for entry in self.index.lists.get(item, ()))

    def list_stored(self) -> Stored:
        """Return the sets of each list, the newest first, and those that are merged."""
        lists = [((), self._list_names(item)) for item in self.items]
        return (*lists, ((), tuple(f"b{n}" for n, _ in self.merged)))

    def list_places(self) -> tuple[Place, ...]:
        """Return the lists in a row, and what is merged below."""
        return (*((0, k) for k in range(len(self.items))), (1, 0))

    def make_table(self) -> Rows:
        """Return, by item, the sets that have it, and those that are merged from its list."""
        rows = [
            (
                str(item),
                " ".join(self._list_names(item)),
                " ".join(f"b{n}" for n, of in self.merged if of == item),
            )
            for item in self.items
        ]
        return ("item", "sets that have it, newest first", "merged"), *rows


def _format_items(items: frozenset[int]) -> str:
    *some, last = map(str, sorted(items))
    return f"{', '.join(some)} and {last}" if some else last
