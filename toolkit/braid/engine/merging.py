"""The results of many batches in few files, for whoever reads all of them.

Whenever the log is rolled up, the results of so many batches are written once more, batch after
batch, as one file under ``merged/``; the roll-up names it, and then it is moved there, so that a
listing of ``merged/*.parquet`` has whole files of whole batches, from the first on. Files there are
never changed. Those that are large already are linked, not written again.

The files under ``results/`` stay: a stream that reads them has seen some and not others, and would
take a merged one for new.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from braid.core.state import Seal
from braid.engine import durable
from braid.engine.disk import disk
from braid.engine.durable import Damaged, unchecked
from braid.engine.entries import Kept, Merged, Named
from braid.engine.log import in_order, ours

_LARGE = 64 << 20
"""Bytes of result files that make a file; a batch that has more is not written again."""
_GROUP_ROWS = 1 << 16
_GROUP_BYTES = 1 << 28
"""Arrow cannot read a struct's text, if a row group has 2 GB of it."""


def pages(file: Path) -> pa.Table:
    """What is in a result file of which no seal is known. Raises Damaged unless all its pages have
    their checksums.
    """
    try:
        with disk().source(file) as source:
            return pa.concat_tables(
                _groups(pq.ParquetFile(source, page_checksum_verification=True))
            )
    except FileNotFoundError:
        raise Damaged(f"{file} is missing") from None
    except (OSError, pa.ArrowException) as error:
        raise Damaged(f"{file} is damaged: {error}") from None


def _groups(file: pq.ParquetFile) -> Iterator[pa.Table]:
    """The rows, group by group: of all at once there may be more than Arrow reads."""
    for number in range(file.num_row_groups):
        yield file.read_row_group(number)
    if not file.num_row_groups:
        yield file.read()


def of_many(name: str) -> bool:
    """Whether a result file is named as one of many batches; one that is linked is not."""
    return re.fullmatch(r"\d{6,}-\d{6,}\.parquet", name) is not None


class Merging:
    """The merged results of the run in ``folder``; ``check`` raises Superseded where another driver
    has it.
    """

    def __init__(self, folder: Path, check: Callable[[], None] = unchecked) -> None:
        self.check = check
        self.new, self.results, self.merged = (
            folder / name for name in ("new", "results", "merged")
        )

    def path(self, name: str) -> Path:
        """Where a file of many batches is; a run that was killed may have left it unmoved."""
        file = self.merged / name
        moved = disk().exists(file) or not disk().exists(self.new / name)
        return file if moved else self.new / name

    def linked(self, name: str) -> Path | None:
        """Where a file of results/ is too, if it was worth no merging."""
        return file if disk().exists(file := self.merged / name) else None

    def merge(self, batches: Sequence[Kept], force: bool, now: int) -> Merged:
        """Write the results of batches that follow each other into parts, which exist once a
        roll-up names them. Raises Damaged where a file of theirs is. ``now`` is in microseconds.
        """
        parts: list[Named] = []
        for several in _together(batches):
            parts += self._part(several, force)
        if force:
            durable.sync(self.new)
        files = [file for kept in batches for file in kept.results]
        size = sum(seal.bytes for _, seal in {*files, *parts})
        first, end = batches[0].batch, batches[-1].batch + 1
        return Merged(first, end, len(files), tuple(parts), size, now)

    def _part(self, several: Sequence[Kept], force: bool) -> Sequence[Named]:
        """The results of some batches as one file; or their own files where that cannot be, or is
        not worth while.
        """
        files = sorted((file for kept in several for file in kept.results), key=_in_order)
        if len(files) < 2 or sum(file.seal.bytes for file in files) > _LARGE:
            return files
        name = f"{several[0].batch:06d}-{several[-1].batch:06d}.parquet"
        if (seal := self._put(name, self._tables(files), force)) is None:
            return files
        return [Named(name, seal)]

    def _put(self, name: str, tables: Iterable[pa.Table], force: bool) -> Seal | None:
        """Write tables as a file under new/, there whole or not at all; its seal. None: they have
        not the same columns.
        """
        temporary = durable.name_temporary(self.new / name)
        if not _written(temporary, tables):
            disk().unlink(temporary, missing_ok=True)
            return None
        seal = durable.seal(temporary, force)
        self.check()
        disk().replace(temporary, self.new / name)
        return seal

    def _tables(self, files: Iterable[Named]) -> Iterator[pa.Table]:
        for name, seal in files:
            body = disk().read(self.results / name)
            if Seal(len(body), zlib.crc32(body)) != seal:
                durable.check(self.results / name, seal)
            yield from _groups(pq.ParquetFile(pa.BufferReader(body)))

    def again(self, name: str, batches: Sequence[Sequence[str]], force: bool) -> Named:
        """Write a part anew from the files of its batches, which others see. Raises Damaged where
        one of their pages is.
        """
        files = [self.results / file for names in batches for file in names]
        seal = self._put(name, map(pages, files), force)
        assert seal is not None, "they were merged before"
        named = Named(name, seal)
        disk().replace(self.new / name, self.merged / name)
        if force:
            durable.sync(self.merged)
        return named

    def prepare(self, rows: Mapping[str, pa.Table], force: bool) -> dict[str, int]:
        """Write files of results/ anew, under new/; their bytes."""
        seals = {name: self._put(name, [table], force) for name, table in rows.items()}
        return {name: seal.bytes for name, seal in seals.items() if seal is not None}

    def bring(self, names: Iterable[str], force: bool) -> None:
        """Move these to results/."""
        for name in names:
            disk().replace(self.new / name, self.results / name)
        if force:
            durable.sync(self.results)

    def show(self, merged: Iterable[Merged], force: bool) -> None:
        """Let others see what a roll-up names; again, after a crash. A file keeps its name in new/
        until the other one is on disk, so that a power cut leaves one of them.
        """
        self.check()
        disk().mkdir(self.merged)
        names = [part.name for each in merged for part in each.parts]
        new = [name for name in names if disk().exists(self.new / name)]
        for name in names:
            if not disk().exists(self.merged / name):
                folder = self.new if name in new else self.results
                disk().link(folder / name, self.merged / name)
        if force:
            durable.sync(self.merged)
            durable.sync(self.merged.parent)
        for name in new:
            disk().unlink(self.new / name, missing_ok=True)

    def recover(self, merged: Sequence[Merged], force: bool) -> None:
        """Do again what a crash may have cut off, and remove what no roll-up names."""
        self.show(merged, force)
        named = {part.name for each in merged for part in each.parts}
        there = disk().find(self.merged)
        self.check()
        for file in there:
            if ours(file.name) and file.name not in named:
                disk().unlink(file, missing_ok=True)


def _in_order(file: Named) -> tuple[int, int, str]:
    return in_order(file.name)


def _together(batches: Iterable[Kept]) -> Iterator[list[Kept]]:
    """Batches that follow each other and are at most so large in all, or one that is larger."""
    several, size = list[Kept](), 0
    for kept in batches:
        more = sum(file.seal.bytes for file in kept.results)
        if several and size + more > _LARGE:
            yield several
            several, size = [], 0
        several, size = [*several, kept], size + more
    if several:
        yield several


def _written(file: Path, tables: Iterable[pa.Table]) -> bool:
    """Write tables one after the other, if they have the same columns; whether they do."""
    waiting, writer, sink = list[pa.Table](), None, None
    rows = size = 0
    try:
        for table in tables:
            if waiting and waiting[0].schema != table.schema:
                return False
            if writer is None:
                sink = disk().sink(file)
                writer = pq.ParquetWriter(
                    sink, table.schema, compression="zstd", write_page_checksum=True
                )
            waiting.append(table)
            rows, size = rows + table.num_rows, size + table.nbytes
            if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
                writer.write_table(pa.concat_tables(waiting))
                waiting, rows, size = [table.slice(table.num_rows)], 0, 0
        if writer is not None:
            writer.write_table(pa.concat_tables(waiting))
        return True
    finally:
        if writer is not None:
            writer.close()
        if sink is not None:
            sink.close()
