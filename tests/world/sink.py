"""A sink of results with transactions, which may fail before or after its commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from braid.core.reserved_columns import CHANGE_TYPE

Ids = Counter[tuple[int | None, ...]]


class Wrong(AssertionError):
    """Raised if an invariant is violated."""


class SinkFailed(Exception):
    """Raised if the sink could not take a batch, or could not confirm it."""


class TransactionalSink:
    """A sink that takes each number once.

    ``may_fail`` is called before and after the commit of a batch.
    """

    def __init__(self, may_fail: Callable[[str], bool]) -> None:
        self.may_fail = may_fail
        self.taken: list[Ids] = []

    def give(self, results: Any, number: int) -> None:
        """Take the results of a batch; do nothing for one that was taken before."""
        ids = count_ids(results)
        if self.may_fail("sink begin"):
            raise SinkFailed("the sink could not begin")
        if number > len(self.taken):
            raise Wrong(f"the sink is given batch {number} after {len(self.taken) - 1}")
        if number < len(self.taken):
            if self.taken[number] != ids:
                raise Wrong(f"the sink is given other rows as batch {number} than before")
        else:
            self.taken.append(ids)
        if self.may_fail("sink commit"):
            raise SinkFailed("the sink committed, and its answer was lost")


def count_ids(results: pa.Table) -> Ids:
    """Return the results as tuples of their rows' ids; those that were taken back count -1."""
    ids = Counter[tuple[int | None, ...]]()
    aliases = [name for name in results.column_names if name != CHANGE_TYPE]
    changes = results[CHANGE_TYPE].to_pylist() if CHANGE_TYPE in results.column_names else None
    parts = [pc.struct_field(results[a], "id").to_pylist() for a in aliases]
    for n, row in enumerate(zip(*parts, strict=True)):
        ids[row] += 1 if changes is None or changes[n] == "insert" else -1
    return ids


def sum_ids(each: Iterable[Ids]) -> Ids:
    """Return the sums of counts, without those that are 0."""
    total: Ids = Counter()
    for ids in each:
        total.update(ids)
    return Counter({row: n for row, n in total.items() if n})
