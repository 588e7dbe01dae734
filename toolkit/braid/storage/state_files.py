"""States and block files of a run on disk."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence, Set
from concurrent.futures import Future
from functools import partial

from braid.core.event_jsonl import LOGGER
from braid.core.run_state import FileChecksum, RunState, state_from_json, state_to_json
from braid.errors import DamagedRunError
from braid.storage import block_readers, durable_files
from braid.storage.log_entries import CommitRecord, FileRef
from braid.storage.manifest_log import OLD
from braid.storage.run_files import is_run_file
from braid.storage.run_medium import RunMedium
from braid.util.clock_and_threads import current_environment
from braid.util.file_system import current_file_system


class StateFiles:
    """Files ``commits/state-*`` of a run. The last ones are retained.

    ``block_files``: block files that each retained state names, by the name of the state.
    """

    def __init__(self, medium: RunMedium) -> None:
        self._medium, self._folder = medium, medium.folder / "commits"
        self.block_files: dict[str, frozenset[str]] = {}

    def write_state(self, state: RunState) -> FileRef:
        """Write a state. It exists once a manifest names it."""
        return self.write_json(state.batch, state_to_json(state))

    def write_json(self, batch: int, body: bytes) -> FileRef:
        """Write the JSON of a state after a batch. It exists once a manifest names it."""
        name = f"state-{batch:06d}-{current_environment().make_token()}.json"
        self._medium.put_unique(f"commits/{name}", body)
        return FileRef(name, FileChecksum(len(body), zlib.crc32(body)))

    def read_state(
        self, commit: CommitRecord, policy: type = object, shedding: type = object
    ) -> RunState:
        """Return the state after a commit. Raises DamagedRunError if it is damaged or missing.

        ``policy``, ``shedding``: types of the placement's and the shedder's state. Default: the
        plain stored values.
        """
        return state_from_json(self.read_json(commit), policy, shedding)

    def read_json(self, commit: CommitRecord) -> bytes:
        """Return the JSON of the state after a commit. Raises as ``read_state`` does."""
        assert commit.state is not None, "the last commits are not in a checkpoint"
        name, checksum = commit.state
        file = self._medium.fetch_file(f"commits/{name}")
        return durable_files.read_verified(file, checksum)

    def load_retained(self, commits: Sequence[CommitRecord]) -> None:
        """Read which block files the last states name.

        Raises DamagedRunError if the last state is damaged. If an earlier one is, the run only
        cannot go back to it.
        """
        block_files = dict[str, frozenset[str]]()
        for left, commit in enumerate(commits[-1 : -OLD - 1 : -1]):
            try:
                if commit.state is not None:
                    block_files[commit.state.name] = frozenset(self.read_state(commit).block_files)
            except DamagedRunError as damaged:
                if not left:
                    raise
                LOGGER.warning("%s; the run cannot go back to batch %d", damaged, commit.batch)
        self.block_files = dict(reversed(block_files.items()))

    def list_live_blocks(self) -> frozenset[str]:
        """Return the block files that a retained state names."""
        return frozenset[str]().union(*self.block_files.values())

    def retain_state(self, name: str, block_files: Collection[str]) -> list[str]:
        """Retain a new state with the one before it. Return the states that can be removed."""
        self.block_files[name] = frozenset(block_files)
        old = [*self.block_files][:-OLD]
        for state in old:
            del self.block_files[state]
        return old

    def remove_states(self, names: Collection[str]) -> None:
        """Remove states from the folder. The caller has checked that this driver has the run."""
        for name in names:
            current_file_system().remove_file(self._folder / name, missing_ok=True)


class BlockFolder:
    """Folder ``blocks`` of a run. Tasks write and read its files (see ``block_files``)."""

    def __init__(self, medium: RunMedium) -> None:
        self.folder = medium.folder / "blocks"
        self._removing: Future[None] | None = None

    def measure_free_share(self) -> float:
        """Return the share of the disk of the run, or of its local cache, that is free."""
        return round(current_file_system().measure_free_share(self.folder), 6)

    def list_unnamed(self, live: Set[str]) -> list[str]:
        """Return the block files in the folder that are not ``live``."""
        names = current_file_system().list_names(self.folder)
        return [name for name in names if name not in live and is_run_file(name)]

    def start_removing(self, names: Collection[str]) -> None:
        """Remove block files in the background. The caller has checked that this driver may."""
        if not names:
            return
        gone = [self.folder / name for name in names]
        self._removing = durable_files.run_in_background(
            partial(block_readers.remove_block_files, gone)
        )

    def wait_for_removals(self) -> None:
        """Wait until block files are removed. Raises the error that prevented it."""
        removing, self._removing = self._removing, None
        if removing is not None:
            removing.result()

    def check_files(self, state: RunState, deep: bool = True) -> None:
        """Raise DamagedRunError unless the block files of a state match their checksums.

        Not ``deep``: compare lengths only.
        """
        for name, checksum in state.block_files.items():
            durable_files.check_file(self.folder / name, checksum, deep)

    def close_files(self) -> None:
        """Close the files that this process has open."""
        block_readers.close_block_files(self.folder)
