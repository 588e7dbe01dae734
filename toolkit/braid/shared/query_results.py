"""Results of a batch of a shared join, by query, as ``foreachBatch`` receives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from braid.core.reserved_columns import QUERIES
from braid.core.run_events import QueryAdded, QueryRemoved
from braid.util.file_system import current_file_system

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ResultsByQuery(Mapping[str, "DataFrame"]):
    """The results of a batch by query name, without queries that have none.

    They are read when they are asked for, and valid until ``foreachBatch`` returns.

    - ``bits``: by name of the query, its bit in ``files``.
    - ``read``: returns the results of a name and bit.
    """

    def __init__(self, bits: Mapping[str, int], read: Callable[[str, int], DataFrame]) -> None:
        self._bits, self._read = bits, read

    def __getitem__(self, name: str) -> DataFrame:
        return self._read(name, self._bits[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._bits)

    def __len__(self) -> int:
        return len(self._bits)


def list_served_bits(events: Sequence[Any], batch: int) -> dict[str, int]:
    """Return the bits of the queries that were served in a batch, by name.

    ``events``: when queries were added and removed.
    """
    bits: dict[str, int] = {}
    for event in events:
        if isinstance(event, QueryAdded) and event.batch < batch:
            bits[event.name] = event.bitmap_position
        elif isinstance(event, QueryRemoved) and event.batch <= batch:
            bits.pop(event.name, None)
    return bits


def read_result_bits(files: Sequence[str]) -> int:
    """Return the bits of the queries that have results in some files."""
    bits = 0
    for file in files:
        with current_file_system().open_source(file) as source:
            marks = pq.ParquetFile(source).read(columns=[QUERIES])[QUERIES].to_numpy()
        bits |= int(np.bitwise_or.reduce(marks, initial=0))
    return bits
