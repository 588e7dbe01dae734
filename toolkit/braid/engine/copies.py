"""Where the tasks of a process have the files of a run, and how these get into its bucket, if it
has one.

A task that sees the driver's folder works in it. One on another machine, in a run that lives in a
bucket, has a folder of its process's own (see ``scratch``): block files are brought when they are
first read, and go when a later batch does not name them.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path

from braid.core import scratch
from braid.engine.bucket import bucket, each
from braid.engine.disk import disk
from braid.engine.wire import Batch


class Copies:
    """The files of a run as the tasks of a batch have them, in ``folder``."""

    def __init__(self, batch: Batch) -> None:
        self.folder, self._bucket = Path(batch.spec.folder), batch.spec.bucket
        if self._bucket and not disk().is_writable(self.folder / "blocks"):
            self.folder = _own(self._bucket)
            self._forget(batch)

    def block(self, name: str) -> Path:
        """Where a block file is; it is brought if it has to be."""
        file = self.folder / "blocks" / name
        if self._bucket and not disk().exists(file):
            bucket(self._bucket).fetch(f"blocks/{name}", file)
        return file

    def put(self, blocks: Collection[str], results: Collection[str]) -> None:
        """Put what a task has written into the run's bucket, before it is reported."""
        if not self._bucket:
            return
        new, there = self.folder / "new", bucket(self._bucket)
        files = {f"blocks/{name}": self.folder / "blocks" / name for name in blocks}
        files |= {f"results/{name}": new / name for name in results}
        each(lambda name: there.put(name, files[name]), files)
        for name in results:
            disk().unlink(new / name)

    def _forget(self, batch: Batch) -> None:
        """Remove what earlier batches have left and this one does not name."""
        for file in disk().find(self.folder / "blocks", "[0-9]*"):
            if file.name not in batch.files and int(file.name.partition("-")[0]) < batch.number:
                disk().unlink(file, missing_ok=True)


@cache
def _own(url: str) -> Path:
    """This process's own folder for a run."""
    made = scratch.folder("cache")
    for name in ("blocks", "new"):
        disk().mkdir(made / name)
    return made
