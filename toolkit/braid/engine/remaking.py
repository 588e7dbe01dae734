"""What of a damaged run can be made anew from what is whole, without going back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from braid.core.events import BatchCommitted
from braid.engine import durable
from braid.engine.disk import disk
from braid.engine.durable import Damaged
from braid.engine.entries import Merged, Named
from braid.engine.merging import of_many
from braid.engine.store import Store


class Remakable(NamedTuple):
    """A file that is damaged or gone, by its ``name``; what it is made ``of``, in words, and how to
    ``make`` it.
    """

    name: str
    of: str
    make: Callable[[], None]

    def __str__(self) -> str:
        return f"{self.name}, {self.of}"


def remakable(store: Store) -> list[Remakable]:
    """The damaged files of a run that can be made anew."""
    try:
        found = [_merged(store, part, files) for part, files in _lost(store)]
        found += [*_results(store), *_logged(store)]
    except ValueError:  # the log, or results/: there is nothing that they could be made of
        found = []
    return [*found, *_delivered(store)]


def _results(store: Store) -> Iterator[Remakable]:
    """Files in results/ that are damaged or gone, while the merged one with their rows is whole."""
    store.log.refresh()
    counts: dict[int, int] = {}
    for group in store.log.merged:
        for part in group.parts:
            if _is_damaged(partial(store.check_result, part, deep=True)):
                continue
            if not of_many(part.name):
                if _is_damaged(partial(durable.check, store.results / part.name, part.seal)):
                    yield _linked(store, part)
                continue
            files = _batches(store, group, part)
            gone = {
                n
                for names in files
                for n in names
                if _is_damaged(partial(store.check_other, n, deep=True))
            }
            if gone:
                counts = counts or {
                    e.batch: e.results for e in store.history() if isinstance(e, BatchCommitted)
                }
                yield from _apart(store, part, files, gone, counts)


def _logged(store: Store) -> Iterator[Remakable]:
    """Files of Spark's log with damaged lines."""
    for file in store.output.damages():
        name = f"{file.relative_to(store.path)}"
        yield Remakable(name, "from the names of the files in results/", store.log_anew)


def _linked(store: Store, part: Named) -> Remakable:
    def make() -> None:
        disk().unlink(store.results / part.name, missing_ok=True)
        disk().link(store.merging.merged / part.name, store.results / part.name)

    return Remakable(f"results/{part.name}", "from merged/, where it is too", make)


def _apart(
    store: Store,
    part: Named,
    files: list[list[str]],
    gone: set[str],
    counts: Mapping[int, int],
) -> Iterator[Remakable]:
    """The files that are gone, of the rows of a part: those that stand where theirs did. Where
    several that follow each other in a batch are, the first has the rows of all.
    """
    at, rows = 0, dict[str, pa.Table]()
    with disk().source(store.merging.path(part.name)) as source:
        whole = pq.read_table(source)
    first = int(part.name.partition("-")[0])
    for batch, names in enumerate(files, first):
        sizes = [0 if n in gone else _rows(store.results / n) for n in names]
        lost = [k for k, name in enumerate(names) if name in gone]
        left = counts.get(batch, sum(sizes)) - sum(sizes)
        if lost and (lost != [*range(lost[0], lost[-1] + 1)] or left < 0):
            return
        if lost:
            begin = at + sum(sizes[: lost[0]])
            rows |= {names[k]: whole.slice(begin, 0) for k in lost}
            rows[names[lost[0]]] = whole.slice(begin, left)
        at += sum(sizes) + left
    if at != len(whole):
        return

    def make() -> None:
        sizes = store.merging.prepare(rows, store.force)
        # First, as Spark loses rows of a file that it takes for smaller.
        store.output.resize(sizes, store.force)
        store.merging.bring(rows.keys(), store.force)

    told = f"results/{min(gone)}" + (f" and {len(gone) - 1} more" if len(gone) > 1 else "")
    yield Remakable(told, f"from merged/{part.name}", make)


def _rows(file: Path) -> int:
    with disk().source(file) as source:
        return int(pq.read_metadata(source).num_rows)


def _lost(store: Store) -> Iterator[tuple[Named, list[list[str]]]]:
    """Merged files that are damaged, while the files of their batches are whole."""
    store.log.refresh()
    for group in store.log.merged:
        for part in filter(lambda part: of_many(part.name), group.parts):
            if _is_damaged(partial(store.check_result, part, deep=True)):
                files = _batches(store, group, part)
                whole = (partial(store.check_other, n, deep=True) for each in files for n in each)
                if not any(map(_is_damaged, whole)):
                    yield part, files


def _batches(store: Store, group: Merged, part: Named) -> list[list[str]]:
    """The files of the batches of a part, as its name has the first and the last."""
    first, last = (int(number) for number in Path(part.name).stem.split("-"))
    return store.listed()[max(first, group.first) : min(last + 1, group.end)]


def _merged(store: Store, part: Named, files: list[list[str]]) -> Remakable:
    def make() -> None:
        made = store.merging.again(part.name, files, store.force)
        if made != part:  # another pyarrow writes the same rows as other bytes
            store.log.reseal(made, store.force)

    return Remakable(part.name, "from the files of its batches in results/", make)


def _delivered(store: Store) -> Iterator[Remakable]:
    """Without it, foreachBatch has had what is no longer kept, and nothing else is known of it."""
    if _is_damaged(lambda: store.delivered.last):
        since = store.log.since
        yield Remakable(
            store.delivered.file.name,
            f"after which foreachBatch is given the batches from {since} on again, each with the "
            "number and the rows that it had",
            lambda: store.delivered.note(since - 1),
        )


def _is_damaged(look: Callable[[], object]) -> bool:
    try:
        look()
    except Damaged:
        return True
    return False
