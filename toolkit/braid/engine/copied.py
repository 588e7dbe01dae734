"""A run's copy of static input: whether it is whole, and how it comes to be in files of
micro-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from braid.core.state import VERSION, Seal
from braid.core.work import workers
from braid.engine import durable, microbatches
from braid.engine.cutting import Cutting, Seals
from braid.engine.disk import disk
from braid.engine.durable import Damaged, unchecked
from braid.engine.whole import Whole


class _Noted(msgspec.Struct):
    """By alias, the seals of the files of micro-batches, in order; of a stream that is still to be
    cut, that of its ``whole`` file instead.
    """

    v: int
    files: Seals
    whole: dict[str, Seal] = {}


class Copied:
    """The copy in a folder: ALIAS/000012.parquet is what a stream has of micro-batch 12. What came
    whole, ALIAS.arrow, is cut into these while the run goes on. ``check_driver`` raises Superseded
    where another driver has the run.
    """

    def __init__(self, folder: Path, check_driver: Callable[[], None] = unchecked) -> None:
        self.folder, self.check_driver = folder, check_driver
        self._cutting: Cutting | None = None

    def seal(self, force: bool) -> None:
        """Note what has been written; with ``force`` it is on disk then."""
        folders = disk().find(self.folder, "[A-Za-z]*")
        files = [f for folder in folders for f in disk().find(folder, "*.parquet")]
        with workers().pool("braid-seal", 8) as pool:
            seals = [*pool.map(partial(durable.seal, force=force), files)]
        found: Seals = {}
        for file, seal in zip(files, seals, strict=True):
            found.setdefault(file.parent.name, []).append(seal)
        whole = {f.stem: durable.seal(f, force) for f in disk().find(self.folder, "*.arrow")}
        self._note(_Noted(VERSION, found, whole), force)

    def _note(self, noted: _Noted, force: bool) -> None:
        for alias in noted.files if force else ():
            durable.sync(self.folder / alias)
        if force:  # the names of these folders too, before a file says that all is in them
            durable.sync(self.folder)
        body = durable.sealed(noted)
        durable.put(self.folder / "files.json", body, force, check=self.check_driver)
        self.forget()

    def forget(self) -> None:
        """Read anew what is noted, as another driver may have noted it."""
        for known in ("_noted", "_streams"):
            self.__dict__.pop(known, None)

    @cached_property
    def _noted(self) -> _Noted:
        body = durable.opened(self.folder / "files.json", f"the input in {self.folder}")
        return msgspec.json.decode(body, type=_Noted)

    @cached_property
    def _streams(self) -> dict[str, Whole]:
        """Those that are still to be cut."""
        return {a: Whole(self._whole(a)) for a in self._noted.whole}

    def _whole(self, alias: str) -> Path:
        return self.folder / f"{alias}.arrow"

    def uncut(self, alias: str) -> pa.Table | None:
        """Return the rows of a stream that is not wholly cut yet; None where all is cut."""
        stream = self._streams.get(alias)
        return None if stream is None else stream.rows

    def schema(self, alias: str) -> pa.Schema:
        """The columns of a stream, with what whoever wrote it has noted of them."""
        if (stream := self._streams.get(alias)) is not None:
            return stream.schema
        with disk().source(microbatches.file(self.folder / alias, 0)) as source:
            return pq.read_schema(source)

    def check(self, batch: int | None = None, deep: bool = False) -> None:
        """Raise Damaged unless the files of a micro-batch, or of all, have their lengths, and their
        checksums if ``deep``; and what went wrong where they could not be written.
        """
        try:
            for file, seal in self._sealed(batch):
                durable.check(file, seal, deep or file.suffix == ".arrow")
        except Damaged:
            if self._cutting is not None or not self._is_noted_anew():
                raise
            self.check(batch, deep)

    def _is_noted_anew(self) -> bool:
        """Return whether another driver has cut since what was whole."""
        before = self._noted
        self.forget()
        return self._noted != before

    def _sealed(self, batch: int | None) -> Iterator[tuple[Path, Seal]]:
        if batch is not None and (cutting := self._cutting) is not None:
            for alias, seal in cutting.seals(batch).items():
                yield microbatches.file(self.folder / alias, batch), seal
            return
        for alias, seal in self._noted.whole.items():
            yield self._whole(alias), seal
        for alias, seals in self._noted.files.items():
            wanted = range(len(seals)) if batch is None else range(len(seals))[batch : batch + 1]
            yield from ((microbatches.file(self.folder / alias, n), seals[n]) for n in wanted)

    def begin(self, first: int, force: bool) -> None:
        """Have what is still whole cut in the background, from micro-batch ``first`` on."""
        there = disk().find(self.folder, "*.arrow")
        gone = [f for f in there if f.stem not in self._noted.whole]  # all was cut before a kill
        self.check_driver()
        for file in gone:
            disk().unlink(file, missing_ok=True)
        if self._streams:
            done = partial(self._done, force=force)
            self._cutting = Cutting(self._streams, first, force, done)

    def _done(self, seals: Seals, force: bool) -> None:
        """All is there, and said to be; what it was cut of can go."""
        whole = [*self._noted.whole]
        self._note(_Noted(VERSION, seals), force)
        self.check_driver()
        for alias in whole:
            disk().unlink(self._whole(alias), missing_ok=True)

    def wait(self, batch: int) -> None:
        """Until the files of a micro-batch are there, or will not be."""
        if (cutting := self._cutting) is not None:
            cutting.wait(batch)

    def finish(self) -> None:
        """Wait until all files are there, and said to be; raises what went wrong."""
        if (cutting := self._cutting) is not None:
            cutting.finish()

    def complete(self, force: bool) -> None:
        """Cut all now; raises what went wrong."""
        self.begin(0, force)
        self.finish()
        self.end()

    def leave(self) -> None:
        """Cut no more: nobody waits for what is still to come."""
        if (cutting := self._cutting) is not None:
            cutting.leave()

    def end(self) -> None:
        """The same, and wait for the file that is being written."""
        if (cutting := self._cutting) is not None:  # others ask at the same time
            cutting.end()
            self._cutting = None
            self.forget()
