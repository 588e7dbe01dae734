"""Files that the state of a hub names.

A commit of a hub is an entry of the manifest log in its folder. The entry names a state; the state
pins each operator to an entry of the operator's own log, and names the files of the backfill
buffer with their checksums. So the last entry of a hub verifies everything that its answers need.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from math import inf
from pathlib import Path
from typing import NamedTuple

import msgspec

from braid.core.run_state import FileChecksum, check_version
from braid.errors import DamagedRunError
from braid.storage import durable_files
from braid.storage.log_entries import CommitRecord, Manifest
from braid.storage.run_store import RunStore
from braid.util.file_system import current_file_system
from braid.util.validation import read_natural

OPERATORS, HISTORY = "operators", "history"
"""Folders of a hub: one for each operator version, and the backfill buffer."""
_OURS = {
    OPERATORS: re.compile(r"\d{4,}-\d{3,}-[0-9a-f]{8}"),
    HISTORY: re.compile(r"\d{6,}-.+-[0-9a-f]{8}\.parquet", re.DOTALL),
}


def is_hub_file(folder: str, name: str) -> bool:
    """Return whether a name in a hub's folder is one that Braid gives there."""
    return _OURS[folder].fullmatch(name) is not None or durable_files.is_temporary(name)


class OperatorPin(NamedTuple):
    """Entry of an operator's log that a commit of the hub includes.

    - ``folder``: name of the operator's folder.
    - ``entry``, ``entry_checksum``: the entry, and the checksum with which it ends.
    - ``batch``: batch of the operator that the entry commits.
    - ``is_running``: whether the operator still runs; otherwise only its results are needed.
    """

    folder: str
    entry: int
    entry_checksum: str
    batch: int
    is_running: bool = True


class HistoryFile(NamedTuple):
    """File of a stream's tuples in one batch.

    - ``epoch``: the batch of Spark.
    - ``latest``: latest event time of the tuples, in microseconds.
    """

    name: str
    epoch: int
    latest: int
    checksum: FileChecksum


class HubFiles(msgspec.Struct):
    """Part of a hub's state: its last batch, and the files that it names.

    - ``micro_batch``: last micro-batch of the source.
    - ``operators``: pins by operator and version, as "3-1".
    - ``backfill_batches``: files of the backfill buffer by stream.
    """

    epoch: int
    micro_batch: int
    operators: dict[str, OperatorPin]
    backfill_batches: dict[str, list[HistoryFile]]


def operator_key(operator: int, version: int) -> str:
    """Return the key of a version of an operator in a hub's state."""
    return f"{operator}-{version}"


class _Versioned(msgspec.Struct):
    format_version: int


def read_hub_state(store: RunStore, commit: CommitRecord) -> bytes:
    """Return the JSON of the state that a commit of a hub names.

    Raises DamagedRunError if it is missing or damaged, ValueError if another version wrote it.
    """
    body = store.states.read_json(commit)
    check_version(
        msgspec.json.decode(body, type=_Versioned).format_version, f"the hub in {store.path}"
    )
    return body


def read_last_hub_state(store: RunStore) -> bytes:
    """Return the JSON of the last state of a hub, which another process may be changing.

    Raises as ``read_hub_state`` does.
    """
    while True:
        names = current_file_system().list_names(store.log.folder)
        numbers = (read_natural(n.removesuffix(".json")) for n in names)
        entries = sorted((n for n in numbers if n is not None), reverse=True)
        commit = _find_last_commit(map(store.log.read_entry, entries))
        if commit is None:
            raise DamagedRunError(f"{store.log.folder} has no commit of the hub in {store.path}")
        try:
            return read_hub_state(store, CommitRecord(commit.entry, commit.batch, commit.state, ()))
        except DamagedRunError:
            if current_file_system().list_names(store.log.folder) == names:
                raise
            continue  # the hub has committed meanwhile and removed this state


def _find_last_commit(entries: Iterable[Manifest]) -> Manifest | None:
    """Return the last commit among entries, the latest first, that no later start goes back of."""
    last = inf
    for entry in entries:
        if entry.state is None:
            last = min(last, entry.batch)
        elif entry.batch <= last:
            return entry
    return None


def read_hub_files(store: RunStore, commit: CommitRecord) -> HubFiles:
    """Return the files that the state of a commit names. Raises as ``read_hub_state`` does."""
    return msgspec.json.decode(read_hub_state(store, commit), type=HubFiles)


def check_pin(store: RunStore, pin: OperatorPin) -> None:
    """Raise DamagedRunError unless an operator's log has the entry to which the hub pins it.

    Each entry has the checksum of the one before it, so the pinned entry verifies all earlier ones.
    """
    store.log.read_new_entries()
    path = store.log.entry_path(pin.entry)
    store.log.read_entry(pin.entry)
    checksum = durable_files.read_checksum(current_file_system().read_file(path))
    if checksum != pin.entry_checksum or store.log.batch_count <= pin.batch:
        raise DamagedRunError(
            f"{path} is damaged: its checksum is {checksum}, that of what the hub has committed "
            f"{pin.entry_checksum}"
        )


def check_no_earlier_hub(store: RunStore) -> None:
    """Raise DamagedRunError if the log has no commit, but a hub has run in the folder."""
    places = [store.path / name for name in (OPERATORS, HISTORY, "checkpoint")]
    if any(map(current_file_system().find_files, places)):
        raise DamagedRunError(
            f"{store.log.folder} has no commit, without which the hub in {store.path} cannot be "
            f"opened; restore it, use a new folder, or `braid repair {store.path} --to-batch 0` "
            "removes what its operators have"
        )


def list_hub_faults(store: RunStore) -> Iterator[str]:
    """Yield a sentence for each fault of the last commit of a hub, and of the files it names."""
    try:
        if not store.log.commits:
            check_no_earlier_hub(store)
            return
        files = read_hub_files(store, store.log.commits[-1])
    except ValueError as error:
        yield str(error)
        return
    for file in chain.from_iterable(files.backfill_batches.values()):
        yield from _list_errors(
            partial(durable_files.check_file, store.path / HISTORY / file.name, file.checksum)
        )
    for pin in files.operators.values():
        yield from _list_errors(partial(check_pin, open_operator(store.path, pin), pin))


def open_operator(hub: Path, pin: OperatorPin) -> RunStore:
    """Return the store of an operator of the hub in a folder."""
    return RunStore(hub / OPERATORS / pin.folder)


def verify_commit(store: RunStore, commit: CommitRecord) -> None:
    """Raise DamagedRunError unless a hub can go on after a commit.

    Its state and all files of its operators must be intact. Files of the backfill buffer need not
    be, since a hub goes on without them.
    """
    for pin in read_hub_files(store, commit).operators.values():
        operator = open_operator(store.path, pin)
        check_pin(operator, pin)
        operator.results.result_files(None, pin.batch + 1, deep=True)
        if pin.is_running:
            _check_blocks(operator, pin.batch)


def _check_blocks(operator: RunStore, batch: int) -> None:
    """Raise DamagedRunError unless the state after a batch and its block files are intact."""
    for commit in operator.log.uncheckpointed_commits():
        if commit.batch == batch:
            operator.blocks.check_files(operator.states.read_state(commit))


def remove_hub_files(store: RunStore) -> None:
    """Remove the files of a hub's operators and its backfill buffer.

    The log has no commit any more. Until all are removed, no hub starts: ``check_no_earlier_hub``.
    """
    store.check_driver()
    for folder in (OPERATORS, HISTORY):
        current_file_system().remove_folder(store.path / folder)


def _list_errors(check: Callable[[], None]) -> Iterator[str]:
    try:
        check()
    except ValueError as error:
        yield str(error)
