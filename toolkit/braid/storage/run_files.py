"""Names of the files of a run.

Layout of the folder::

    run.json                     settings of the run
    input/ALIAS.arrow            a table (see table_input), or static input of a stream of Spark,
                                 until it is split (see staged_input)
    input/ALIAS/000012.parquet   static input of a stream of Spark, one file per micro-batch
    input/files.json             lengths and checksums of either
    checkpoint/                  Spark's offsets
    blocks/*.arrow               block files, each written once by one task attempt; files of match
                                 bitmaps, written by the driver (see match_bitmaps)
    staging/*.parquet            result files until their batch is committed, likewise
    results/*.parquet            result files of committed batches (see published_results)
    results/_spark_metadata/     Spark's log of these files (see spark_sink_log)
    compacted/*.parquet          results of many batches in few files (see result_compactor)
    late/*.parquet               late, untimed and early rows of committed batches
    trace/*.parquet              tuples of streaming sources, if they are traced (see trace_files)
    commits/000012.json          the log (see manifest_log): a batch, its results and events;
                                 linking the file into place is the commit
    commits/state-000012-*.json  live blocks, addresses of their replicas, placement state
    events.jsonl                 events of all manifests in order, for other readers; trimmed
                                 if retention is limited (see event_log_header)
    sink-progress.json           last batch delivered to the run's sink, if it has one

Every JSON file ends with its checksum and has a format version; other versions are refused. For
block files, result files and states, length and checksum are stored where the file is named. A file
exists only if a manifest names it, whatever a killed task or driver left behind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from pathlib import Path

from braid.util.file_system import current_file_system

_OURS = re.compile(
    r"\d{6,}-(\d+-)?[0-9a-f]{8}(-\d+\.arrow|(-\d+)?\.parquet)|\d{6,}-\d{6,}(-\d+)?\.parquet"
    r"|state-\d{6,}-[0-9a-f]{8}\.json"
)


def is_run_file(name: str) -> bool:
    """Return whether a name is that of a block file, result file or state written by Braid."""
    return _OURS.fullmatch(name) is not None


def entry_file_name(entry: int) -> str:
    """Return the name of an entry of the manifest log in its folder."""
    return f"{entry:06d}.json"


def result_file_batch(name: str) -> int:
    """Return the batch of a result file."""
    return int(name.partition("-")[0])


def result_file_sort_key(name: str) -> tuple[int, int, str]:
    """Return a key that sorts result files by batch and task. Files without a task come first."""
    parts = name.removesuffix(".parquet").split("-")
    return int(parts[0]), int(parts[1]) if len(parts) == 3 else -1, name


def is_compacted_file(name: str) -> bool:
    """Return whether a name is that of a rewritten file of many batches, not a linked one."""
    return re.fullmatch(r"\d{6,}-\d{6,}\.parquet", name) is not None


def find_moved_file(folder: Path, staging: Path, name: str) -> Path:
    """Return the path of a committed file, which a killed run may have left in ``staging``."""
    exists = current_file_system().exists
    return folder / name if exists(folder / name) or not exists(staging / name) else staging / name


def remove_unnamed_files(
    folders: Iterable[Path], named: Container[str], check: Callable[[], None]
) -> None:
    """Remove files written by Braid from folders if their names are not among ``named``.

    Calls ``check`` after listing the files and before removing them.
    """
    there = [file for folder in folders for file in current_file_system().find_files(folder)]
    check()
    for file in there:
        if (
            is_run_file(file.name)
            and file.name not in named
            and current_file_system().is_file(file)
        ):
            current_file_system().remove_file(file, missing_ok=True)
