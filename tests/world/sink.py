"""A sink of results with transactions, which may fail before or after its commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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
        ids = ids_of(results)
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


def ids_of(results: pa.Table) -> Ids:
    """Return the results as tuples of their rows' ids."""
    if not results.num_rows:
        return Counter()
    parts = [pc.struct_field(results[a], "id").to_pylist() for a in results.column_names]
    return Counter(zip(*parts, strict=True))
