"""What a run that lives in a bucket keeps there: its mirror has copies of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from braid.engine import durable
from braid.engine.bucket import Bucket, each
from braid.engine.delivered import Delivered
from braid.engine.durable import Damaged
from braid.engine.log import Log
from braid.engine.output import Output


class BucketLog(Log):
    """The log of a run that lives in a bucket, of which the folder has copies."""

    def __init__(self, folder: Path, there: Bucket) -> None:
        super().__init__(folder, there.url)
        self._bucket = there

    @property
    def next(self) -> str:
        """The object that the next entry will be."""
        return f"commits/{self.path(self._next).name}"

    def pull(self) -> None:
        """Bring the entries that have been added, and read them."""
        names = map(PurePosixPath, self._bucket.names("commits"))
        last = max((int(n.stem) for n in names if n.stem.isdecimal()), default=-1)
        each(self._fetch, (self.path(n).name for n in range(self._next, last + 1)))
        self.refresh()

    def _fetch(self, name: str) -> None:
        try:
            self._bucket.fetch(f"commits/{name}", self.folder / name)
        except FileNotFoundError as error:
            raise Damaged(f"{error}, but later entries of the log are there") from None

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
        the second try found the first. A commit names a state of its own; a driver's beginning may
        look like another's.
        """
        return self.path(entry).read_bytes() == body and self.read(entry).state is not None


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
            folder.mkdir(exist_ok=True)

    def path(self, name: str) -> str:
        """Where a committed file is, once it has been brought."""
        file = self.results / name
        if not file.exists():
            try:
                self._bucket.fetch(f"results/{name}", file)
            except FileNotFoundError as error:
                raise Damaged(str(error)) from None
        return str(file)

    def publish(self, batch: int, names: Sequence[str]) -> None:
        """The manifest has done it."""
