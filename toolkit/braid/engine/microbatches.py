"""What is static, as files of micro-batches: ALIAS/000012.parquet has the rows of a stream in
micro-batch 12.
"""

from __future__ import annotations

import os
import time as clock
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_EARLIEST = np.iinfo(np.int64).min


def check(alias: str, column: str, numbers: pa.ChunkedArray) -> None:
    """Raise ValueError unless the integers number every row's micro-batch, from 0."""
    wrong = numbers.filter(pc.or_(pc.is_null(numbers), pc.less(numbers, 0)), "emit_null")
    if len(wrong):
        raise misnumbered(alias, column, wrong[0].as_py())


def misnumbered(alias: str, column: str, found: object) -> ValueError:
    """What is raised for a number that is none of a micro-batch."""
    return ValueError(
        f"the column {alias}.{column} numbers micro-batches and holds {found}; it must count from 0"
    )


def by_time(times: Mapping[str, pa.ChunkedArray], batches: int) -> dict[str, np.ndarray]:
    """The micro-batch of every row, by stream, cut at quantiles of event time (microseconds) over
    all streams, so that they advance together. A row without a time is in the first.
    """
    known = np.sort(np.concatenate([t.drop_null().to_numpy() for t in times.values()]))
    cuts = [known[len(known) * k // batches] for k in range(1, batches)] if len(known) else []
    return {
        alias: np.searchsorted(cuts, t.fill_null(_EARLIEST).to_numpy(), side="right")
        for alias, t in times.items()
    }


def count(numbers: Mapping[str, np.ndarray], batches: int | str) -> int:
    """How many micro-batches there are: as many as asked for, or as rows are numbered for."""
    if isinstance(batches, int):
        return batches
    return 1 + max((int(n.max()) for n in numbers.values() if len(n)), default=-1)


def write(rows: pa.Table, numbers: np.ndarray, batches: int, folder: Path) -> None:
    """Write rows as ``batches`` files of a new folder, by the number of each row's micro-batch."""
    folder.mkdir(parents=True)
    order = np.argsort(numbers, kind="stable")
    ordered, ends = rows.take(pa.array(order)), np.searchsorted(numbers[order], range(batches + 1))
    for k, (start, end) in enumerate(pairwise(ends)):
        part = ordered.slice(start, end - start)
        pq.write_table(part, file(folder, k), write_page_checksum=True)
    date(folder, batches)


def file(folder: Path, number: int) -> Path:
    """The file of a micro-batch in a stream's folder."""
    return folder / f"{number:06d}.parquet"


def date(folder: Path, batches: int) -> None:
    """Put the files in order: Spark reads them as they were modified, one after the other."""
    began = clock.time() - batches
    for k in range(batches):
        os.utime(file(folder, k), (began + k, began + k))
