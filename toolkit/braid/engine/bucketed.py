"""What a run that lives in a bucket keeps there: its mirror has copies of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

from braid.core.accept import read_natural
from braid.core.log import LOGGER
from braid.engine import durable
from braid.engine.bucket import Bucket, each
from braid.engine.delivered import Delivered
from braid.engine.disk import disk
from braid.engine.durable import Damaged
from braid.engine.log import Log
from braid.engine.output import Output

_TOGETHER = 500
"""So many entries are in a bundle."""


class BucketLog(Log):
    """The log of a run that lives in a bucket, of which the folder has copies.

    So that it is not opened with a request for each entry, so many of them at a time are put once
    more together, as a **bundle**, a line for each. The entries stay: that an entry is there keeps
    a driver that has lost the run, however long ago, from putting it.
    """

    def __init__(self, folder: Path, there: Bucket) -> None:
        super().__init__(folder, there.url)
        self._bucket = there
        self._bundles = 0

    @property
    def next(self) -> str:
        """The object that the next entry will be."""
        return f"commits/{self.path(self._next).name}"

    def pull(self) -> None:
        """Bring the entries that have been added, and read them."""
        names = [PurePosixPath(name) for name in self._bucket.names("commits")]
        numbers = (read_natural(name.stem) for name in names)
        end = max((n for n in numbers if n is not None), default=-1) + 1
        begins = range(-(-self._next // _TOGETHER) * _TOGETHER, end, _TOGETHER)
        there = {name.name for name in names}
        each(self._unbundle, [name for name in map(_bundle, begins) if name in there])
        wanted = (self.path(n) for n in range(self._next, end))
        each(self._fetch, [path.name for path in wanted if not disk().exists(path)])
        self.refresh()
        self._bundles = next(n for n in count() if _bundle(n * _TOGETHER) not in there)

    def _unbundle(self, name: str) -> None:
        """Bring the entries of a bundle. One that is not whole brings none: they are there by
        themselves.
        """
        entries = self._bucket.get(f"commits/{name}").split(b"\n")
        if len(entries) == _TOGETHER and all(map(durable.whole, entries)):
            for n, body in enumerate(entries, int(name.split("-")[1])):
                disk().write(self.path(n), body)

    def append(self, *given: Any, **named: Any) -> None:
        """Put the next entry into place; see Log. What it says is real then: that a bundle cannot
        be put is only told, and it is tried again after the next entry.
        """
        super().append(*given, **named)
        try:
            self._put_bundles()
        except OSError as error:
            LOGGER.warning("%s; the run goes on, and tries that again with its next commit", error)

    def _put_bundles(self) -> None:
        """Put the bundles whose entries are all there."""
        while (end := (self._bundles + 1) * _TOGETHER) <= self._next:
            bodies = each(self._body, [self.path(n).name for n in range(end - _TOGETHER, end)])
            self._bucket.put(f"commits/{_bundle(end - _TOGETHER)}", b"\n".join(bodies))
            self._bundles += 1

    def _body(self, name: str) -> bytes:
        if not disk().exists(self.folder / name):  # it is rolled up here
            return self._bucket.get(f"commits/{name}")
        return disk().read(self.folder / name)

    def _fetch(self, name: str) -> None:
        try:
            self._bucket.fetch(f"commits/{name}", self.folder / name)
        except FileNotFoundError as error:
            raise Damaged(f"{error}, but later entries of the log are there") from None

    def _come(self) -> bool:
        if self._bucket.size(self.next) < 0:
            return False
        self._fetch(self.path(self._next).name)
        return True

    def _place(self, entry: int, body: bytes, force: bool) -> None:
        name = f"commits/{self.path(entry).name}"
        try:
            self._bucket.put(name, body, new=True)
        except FileExistsError:
            self._bucket.fetch(name, self.path(entry))
            if not self._mine(entry, body):
                raise
        durable.put(self.path(entry), body, force)

    def _mine(self, entry: int, body: bytes) -> bool:
        """Whether the entry that is there is the one that was put: the store's answer was lost, and
        the second try found the first. A commit names a state of its own, and a driver's beginning
        has its token.
        """
        return disk().read(self.path(entry)) == body


def _bundle(first: int) -> str:
    """The name of the bundle that begins with an entry."""
    return f"entries-{first:06d}-{first + _TOGETHER - 1:06d}.jsonl"


class BucketDelivered(Delivered):
    """How far results have been given to a sink. A driver that has lost the run, and does not know
    it, may write an earlier batch here; what comes after that is given again, then.
    """

    def __init__(self, file: Path, there: Bucket) -> None:
        super().__init__(file, False)
        self._bucket = there

    @property
    def last(self) -> int:
        """-1: none. Raises Damaged."""
        try:
            self._bucket.fetch(self.file.name, self.file)
        except FileNotFoundError:
            return -1
        return super().last

    def note(self, batch: int) -> None:
        """All batches up to this one have been delivered."""
        super().note(batch)
        self._bucket.put(self.file.name, self.file)


class BucketOutput(Output):
    """Results of a run that lives in a bucket: those that were asked for are here."""

    def __init__(self, folder: Path, there: Bucket) -> None:
        super().__init__(folder)
        self._bucket = there

    def create(self) -> None:
        """Make the folders."""
        for folder in (self.new, self.results):
            disk().mkdir(folder)

    def path(self, name: str) -> str:
        """Where a committed file is, once it has been brought."""
        file = self.results / name
        if not disk().exists(file):
            try:
                self._bucket.fetch(f"results/{name}", file)
            except FileNotFoundError as error:
                raise Damaged(str(error)) from None
        return str(file)

    def publish(self, batch: int, names: Sequence[str]) -> None:
        """The manifest has done it."""
