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

from braid.kernels.join_spec import BatchSpec
from braid.storage.object_store import map_concurrently, open_object_store
from braid.util import temp_dirs
from braid.util.file_system import current_file_system


class TaskFiles:
    """The files of a run as the tasks of a batch have them, in ``folder``."""

    def __init__(self, batch: BatchSpec) -> None:
        self.folder, self._bucket = Path(batch.spec.folder), batch.spec.object_store_url
        if self._bucket and not current_file_system().is_writable(self.folder / "blocks"):
            self.folder = _make_process_folder(self._bucket)
            self._remove_unused_blocks(batch)

    def fetch_block(self, name: str) -> Path:
        """Where a block file is; it is brought if it has to be."""
        file = self.folder / "blocks" / name
        if self._bucket and not current_file_system().exists(file):
            open_object_store(self._bucket).download(f"blocks/{name}", file)
        return file

    def upload(self, blocks: Collection[str], results: Collection[str]) -> None:
        """Put what a task has written into the run's bucket, before it is reported."""
        if not self._bucket:
            return
        new, there = self.folder / "staging", open_object_store(self._bucket)
        files = {f"blocks/{name}": self.folder / "blocks" / name for name in blocks}
        files |= {f"results/{name}": new / name for name in results}
        map_concurrently(lambda name: there.put_object(name, files[name]), files)
        for name in results:
            current_file_system().remove_file(new / name)

    def _remove_unused_blocks(self, batch: BatchSpec) -> None:
        """Remove what earlier batches have left and this one does not name."""
        for file in current_file_system().find_files(self.folder / "blocks", "[0-9]*"):
            if file.name not in batch.files and int(file.name.partition("-")[0]) < batch.batch:
                current_file_system().remove_file(file, missing_ok=True)


@cache
def _make_process_folder(url: str) -> Path:
    """This process's own folder for a run."""
    made = temp_dirs.make_temp_dir("cache")
    for name in ("blocks", "staging"):
        current_file_system().make_folder(made / name)
    return made
