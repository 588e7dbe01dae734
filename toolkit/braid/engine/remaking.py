"""What of a damaged run can be made anew from what is whole, without going back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from braid.engine.durable import Damaged
from braid.engine.log import Merged, Named
from braid.engine.merging import of_many, pages
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
    except ValueError:  # the log, or results/: there is nothing that they could be made of
        found = []
    return [*found, *_delivered(store)]


def _lost(store: Store) -> Iterator[tuple[Named, list[list[str]]]]:
    """Merged files that are damaged, while the files of their batches are whole."""
    store.log.refresh()
    for group in store.log.merged:
        for part in filter(lambda part: of_many(part.name), group.parts):
            if _is_damaged(partial(store.check_result, part, deep=True)):
                files = _batches(store, group, part)
                whole = (partial(pages, store.results / name) for each in files for name in each)
                if not any(map(_is_damaged, whole)):
                    yield part, files


def _batches(store: Store, group: Merged, part: Named) -> list[list[str]]:
    """The files of the batches of a part, as its name has the first and the last."""
    first, last = (int(number) for number in Path(part.name).stem.split("-"))
    return store.merged_files()[max(first, group.first) : min(last + 1, group.end)]


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
