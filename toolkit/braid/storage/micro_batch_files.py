"""Write static input as files of micro-batches.

ALIAS/000012.parquet has a stream's rows of micro-batch 12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.storage.generated_stream import GeneratedStream
from braid.util.clock_and_threads import current_environment
from braid.util.file_system import current_file_system
from braid.util.validation import read_natural

_EARLIEST = np.iinfo(np.int64).min


def check_numbering(alias: str, column: str, numbers: pa.ChunkedArray) -> None:
    """Raise ValueError unless these integers number the micro-batch of every row, from 0."""
    wrong = numbers.filter(pc.or_(pc.is_null(numbers), pc.less(numbers, 0)), "emit_null")
    if len(wrong):
        raise numbering_error(alias, column, wrong[0].as_py())


def numbering_error(alias: str, column: str, value: object) -> ValueError:
    """Return the error for an invalid micro-batch number."""
    return ValueError(
        f"the column {alias}.{column} numbers micro-batches and holds {value}; it must count from 0"
    )


def number_by_time(times: Mapping[str, pa.ChunkedArray], batches: int) -> dict[str, np.ndarray]:
    """Return the micro-batch of every row, by stream.

    Micro-batches are quantiles of event time (microseconds) over all streams, so that streams
    advance together. A row without a time is in the first.
    """
    ordered = np.sort(np.concatenate([t.drop_null().to_numpy() for t in times.values()]))
    cuts = [ordered[len(ordered) * k // batches] for k in range(1, batches)] if len(ordered) else []
    return {
        alias: np.searchsorted(cuts, t.fill_null(_EARLIEST).to_numpy(), side="right")
        for alias, t in times.items()
    }


class MicroBatches(NamedTuple):
    """The extent of static streams.

    - ``batches``: number of micro-batches.
    - ``last_batches``: by stream, the micro-batch with its last tuple; -1: it has none.
    - ``generated``: streams whose tuples follow from settings. ``generated_files``: number of files
      that each will have.
    """

    batches: int
    last_batches: Mapping[str, int]
    generated: Mapping[str, GeneratedStream] = {}
    generated_files: int = 0


def count_batches(numbers: Mapping[str, np.ndarray], batches: int | str) -> MicroBatches:
    """Return the extent of streams, given the micro-batch of every row.

    The number of micro-batches is the requested one, or follows from the largest row number. It is
    at least 1: the file of an empty micro-batch has the columns of a stream.
    """
    last = {alias: int(each.max()) if len(each) else -1 for alias, each in numbers.items()}
    count = batches if isinstance(batches, int) else 1 + max(0, *last.values())
    return MicroBatches(count, last)


def batch_file(folder: Path, number: int) -> Path:
    """Return the path of a micro-batch in a stream's folder."""
    return folder / f"{number:06d}.parquet"


def order_by_mtime(folder: Path, batches: int, end: float | None = None) -> None:
    """Create missing files, and set modification times in the order of micro-batches.

    Spark reads files by modification time. ``end``: time of the last, in seconds. Default: now.
    """
    began = (current_environment().read_time() if end is None else end) - batches
    for k in range(batches):
        # Creates a missing file, keeps an existing one.
        current_file_system().append_bytes(batch_file(folder, k), b"")
        current_file_system().set_times(batch_file(folder, k), began + k)


def remove_extra_files(
    folder: Path,
    streams: Iterable[str],
    batches: int,
    check: Callable[[], None],
    keeps_staged: bool = True,
) -> None:
    """Remove files that an earlier start left and that this one has not written again.

    They are micro-batches from ``batches`` on, temporary files and folders and, unless streams are
    ``keeps_staged``, staged streams.
    Another driver that begins the same run writes the same files, so it loses none if this one
    sleeps after ``check``.
    """
    extra = [] if keeps_staged else [folder / f"{alias}.arrow" for alias in streams]
    for alias in streams:
        files = current_file_system().find_files(folder / alias, "*.parquet")
        numbers = ((file, read_natural(file.stem)) for file in files)
        extra += [file for file, number in numbers if number is not None and number >= batches]
    extra += current_file_system().find_files(folder, ".*")
    check()
    for path in extra:
        if current_file_system().is_folder(path):
            current_file_system().remove_folder(path)
        else:
            current_file_system().remove_file(path, missing_ok=True)
