"""Find damaged files of a run that can be rebuilt from intact ones without going back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from braid.core.run_events import BatchCommitted
from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.log_entries import CompactedResults, FileRef
from braid.storage.run_files import is_compacted_file
from braid.storage.run_store import RunStore
from braid.util.file_system import current_file_system


class RepairableFile(NamedTuple):
    """A damaged or missing file that can be rebuilt.

    - ``name``: the file.
    - ``source``: what it is rebuilt from, in words.
    - ``rebuild``: function that rebuilds it.
    """

    name: str
    source: str
    rebuild: Callable[[], None]

    def __str__(self) -> str:
        return f"{self.name}, {self.source}"


def find_repairable(store: RunStore) -> list[RepairableFile]:
    """Return the damaged files of a run that can be rebuilt."""
    try:
        repairable = [
            _make_recompact_repair(store, part, files)
            for part, files in _find_damaged_compacted(store)
        ]
        repairable += [*_find_damaged_results(store), *_find_damaged_sink_logs(store)]
        repairable.extend(_find_damaged_irregular_rows(store))
        repairable.extend(_find_damaged_traces(store))
    except ValueError:  # log or results/ are damaged, so nothing can be rebuilt from them
        repairable = []
    return [*repairable, *_find_damaged_progress(store)]


def _find_damaged_results(store: RunStore) -> Iterator[RepairableFile]:
    """Yield damaged files in results/ whose rows are in an intact compacted file."""
    store.log.read_new_entries()
    counts: dict[int, int] = {}
    for group in store.log.merged:
        for part in group.part_files:
            if _is_damaged(partial(store.results.verified_path, part, deep=True)):
                continue
            if not is_compacted_file(part.name):
                if _is_damaged(
                    partial(
                        durable_files.check_file, store.published.results / part.name, part.checksum
                    )
                ):
                    yield _make_relink_repair(store, part)
                continue
            files = _list_part_files(store, group, part)
            gone = {
                n
                for names in files
                for n in names
                if _is_damaged(partial(store.results.check_published_file, n, deep=True))
            }
            if gone:
                counts = counts or {
                    e.batch: e.results
                    for e in store.archive.committed_events()
                    if isinstance(e, BatchCommitted)
                }
                yield from _make_split_repairs(store, part, files, gone, counts)


def _find_damaged_sink_logs(store: RunStore) -> Iterator[RepairableFile]:
    """Yield files of Spark's sink log with damaged lines."""
    for file in store.published.sink_log.damaged_files():
        name = f"{file.relative_to(store.path)}"
        yield RepairableFile(
            name, "from the names of the files in results/", store.results.rewrite_sink_log
        )


def _find_damaged_irregular_rows(store: RunStore) -> Iterator[RepairableFile]:
    """Yield damaged files of late, untimed and early rows, which can only be given up.

    No result depends on them.
    """
    for file in store.irregular.list_committed():
        if _is_damaged(partial(store.irregular.find_file, file)):
            yield RepairableFile(
                f"late/{file.name}",
                "which cannot be rebuilt: run.late() leaves out its rows, and no result needs them",
                partial(store.irregular.give_up_file, file),
            )


def _find_damaged_traces(store: RunStore) -> Iterator[RepairableFile]:
    """Yield damaged files of the trace, which can only be removed. No result depends on them."""
    for file in store.trace.list_committed():
        if _is_damaged(partial(store.trace.find_file, file)):
            yield RepairableFile(
                f"trace/{file.name}",
                "which cannot be rebuilt: `why` does not know its tuples, and no result needs them",
                partial(store.trace.remove_file, file),
            )


def _make_relink_repair(store: RunStore, part: FileRef) -> RepairableFile:
    def make() -> None:
        current_file_system().remove_file(store.published.results / part.name, missing_ok=True)
        current_file_system().link_file(
            store.compactor.folder / part.name, store.published.results / part.name
        )

    return RepairableFile(f"results/{part.name}", "from compacted/, where it is too", make)


def _make_split_repairs(
    store: RunStore,
    part: FileRef,
    files: list[list[str]],
    gone: set[str],
    counts: Mapping[int, int],
) -> Iterator[RepairableFile]:
    """Yield repairs of missing files from the rows of a compacted part, by position.

    If several consecutive files of a batch are missing, the first gets all of their rows.
    """
    at, rows = 0, dict[str, pa.Table]()
    with current_file_system().open_source(store.compactor.compacted_path(part.name)) as source:
        table = pq.read_table(source)
    first = int(part.name.partition("-")[0])
    for batch, names in enumerate(files, first):
        sizes = [0 if n in gone else _read_rows(store.published.results / n) for n in names]
        lost = [k for k, name in enumerate(names) if name in gone]
        left = counts.get(batch, sum(sizes)) - sum(sizes)
        if lost and (lost != [*range(lost[0], lost[-1] + 1)] or left < 0):
            return
        if lost:
            begin = at + sum(sizes[: lost[0]])
            rows |= {names[k]: table.slice(begin, 0) for k in lost}
            rows[names[lost[0]]] = table.slice(begin, left)
        at += sum(sizes) + left
    if at != len(table):
        return

    def make() -> None:
        sizes = store.compactor.stage_files(rows)
        # Sizes first: Spark loses rows of a file that is larger than its log says.
        store.published.sink_log.update_sizes(sizes)
        store.compactor.publish_staged(rows.keys())

    rebuilt = f"results/{min(gone)}" + (f" and {len(gone) - 1} more" if len(gone) > 1 else "")
    yield RepairableFile(rebuilt, f"from compacted/{part.name}", make)


def _read_rows(file: Path) -> int:
    with current_file_system().open_source(file) as source:
        return int(pq.read_metadata(source).num_rows)


def _find_damaged_compacted(store: RunStore) -> Iterator[tuple[FileRef, list[list[str]]]]:
    """Yield damaged compacted files whose original files are intact."""
    store.log.read_new_entries()
    for group in store.log.merged:
        for part in filter(lambda part: is_compacted_file(part.name), group.part_files):
            if _is_damaged(partial(store.results.verified_path, part, deep=True)):
                files = _list_part_files(store, group, part)
                checks = (
                    partial(store.results.check_published_file, n, deep=True)
                    for each in files
                    for n in each
                )
                if not any(map(_is_damaged, checks)):
                    yield part, files


def _list_part_files(store: RunStore, group: CompactedResults, part: FileRef) -> list[list[str]]:
    """Return the original files of a part's batches. Its name has the first and last batch."""
    first, last = (int(number) for number in Path(part.name).stem.split("-"))
    return store.results.published_files()[
        max(first, group.first_batch) : min(last + 1, group.end_batch)
    ]


def _make_recompact_repair(
    store: RunStore, part: FileRef, files: list[list[str]]
) -> RepairableFile:
    def make() -> None:
        rebuilt = store.compactor.rebuild_part(part.name, files)
        if rebuilt != part:  # another version of pyarrow writes other bytes
            store.log.replace_part_checksum(rebuilt)

    return RepairableFile(part.name, "from the files of its batches in results/", make)


def _find_damaged_progress(store: RunStore) -> Iterator[RepairableFile]:
    """Yield a repair of the sink progress, if it is damaged.

    The results that are no longer retained were delivered; nothing else is known.
    """
    if _is_damaged(lambda: store.sink_progress.last_batch):
        since = store.log.first_retained_batch
        yield RepairableFile(
            store.sink_progress.path.name,
            f"after which foreachBatch is given the batches from {since} on again, each with the "
            "number and the rows that it had",
            lambda: store.sink_progress.mark_delivered(since - 1),
        )


def _is_damaged(look: Callable[[], object]) -> bool:
    try:
        look()
    except DamagedRunError:
        return True
    return False
