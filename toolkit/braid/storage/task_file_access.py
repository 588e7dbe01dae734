"""Provide the files of a run to the tasks of a process, and upload files to its bucket.

A task that sees the driver's folder works in it. A task on another machine, in a run that has a
bucket, works in a folder of its own process (see ``temp_dirs``). Block files are downloaded when
first read, and removed when a later batch does not name them.
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
    """Files of a run for the tasks of a batch, in ``folder``."""

    def __init__(self, batch: BatchSpec) -> None:
        self.folder, self._bucket = Path(batch.spec.folder), batch.spec.object_store_url
        if self._bucket and not current_file_system().is_writable(self.folder / "blocks"):
            self.folder = _make_process_folder(self._bucket)
            self._remove_unused_blocks(batch)

    def fetch_block(self, name: str) -> Path:
        """Return the path of a block file, after downloading it if needed."""
        file = self.folder / "blocks" / name
        if self._bucket and not current_file_system().exists(file):
            open_object_store(self._bucket).download(f"blocks/{name}", file)
        return file

    def upload(
        self, blocks: Collection[str], results: Collection[str], irregular: Collection[str]
    ) -> None:
        """Upload the files that a task has written to the run's bucket, before it reports."""
        if not self._bucket:
            return
        new, there = self.folder / "staging", open_object_store(self._bucket)
        files = {f"blocks/{name}": self.folder / "blocks" / name for name in blocks}
        files |= {f"results/{name}": new / name for name in results}
        files |= {f"late/{name}": self.folder / "late" / name for name in irregular}
        map_concurrently(lambda name: there.put_object(name, files[name]), files)
        for path in (*(new / name for name in results), *(files[f"late/{n}"] for n in irregular)):
            current_file_system().remove_file(path)

    def _remove_unused_blocks(self, batch: BatchSpec) -> None:
        """Remove block files of earlier batches that this batch does not name."""
        for file in current_file_system().find_files(self.folder / "blocks", "[0-9]*"):
            if file.name not in batch.files and int(file.name.partition("-")[0]) < batch.batch:
                current_file_system().remove_file(file, missing_ok=True)


@cache
def _make_process_folder(url: str) -> Path:
    """Create this process's own folder for a run."""
    folder = temp_dirs.make_temp_dir("cache")
    for name in ("blocks", "staging"):
        current_file_system().make_folder(folder / name)
    return folder
