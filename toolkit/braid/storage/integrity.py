"""Is a run whole? And how it goes back to a batch after which it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from braid.core.run_state import FileChecksum, RunState
from braid.storage import durable_files
from braid.storage.durable_files import DamagedRunError
from braid.storage.event_log import EventLog, EventPrefix
from braid.storage.file_repair import RepairableFile, find_repairable
from braid.storage.log_entries import Kept
from braid.storage.manifest_log import OLD, FencedError
from braid.storage.remote_run_store import RemoteRunStore, is_object_store_url, open_store
from braid.storage.run_store import RunStore
from braid.util.file_system import current_file_system


def repair_hint(store: RunStore) -> str:
    """What can be done about a damaged run."""
    anew = find_repairable(store)
    mends = f"`braid repair {store.path}` makes anew {' and '.join(map(str, anew))}"
    last = _find_last_intact_batch(store, anew)
    back = _find_restorable_batches(store, last)
    if anew and last == store.log.batch_count - 1 and (last in back or last < 0):
        return mends
    return (
        f"{mends}; {_format_repair_advice(store, last, back)}"
        if anew
        else _format_repair_advice(store, last, back)
    )


def _format_repair_advice(store: RunStore, last: int, back: Sequence[int]) -> str:
    if back:
        again = f"`braid repair {store.path} --to-batch {back[-1]}`"
        return f"up to batch {back[-1]} all is whole: {again} goes back there"
    whole = f"batches 0 to {last} are intact" if last >= 0 else "no batch is intact"
    again = f"`braid repair {store.path} --to-batch -1`"
    return f"{whole}, but no state of theirs is left: restore the file, or begin anew with {again}"


def check_run(path: str | Path) -> tuple[list[str], str]:
    """What is wrong with the run in a folder, a sentence for each file; and what it has, in words.
    Every file is read; of a run in a bucket, brought here. Raises ValueError for a folder without a
    run.
    """
    store = open_store(path)
    query = _read_run_settings(store)
    if isinstance(store, RemoteRunStore):
        store.fetch_all()
    found = [
        fault.replace(str(store.path), store.where) for fault in _list_run_faults(store, query)
    ]
    if "hub" in query:
        operators = current_file_system().find_files(store.path / "operators", "[0-9]*")
        found += _list_hub_faults(store.path)
        found += [fault for o in operators for fault in _list_run_faults(RunStore(o), {})]
        return found, f"a hub of {len(operators)} operators"
    state = _result_or_error(store.last_state)
    blocks = state.block_files if isinstance(state, RunState) else {}
    results = store.named_files()
    size = sum(s.size_bytes for s in [*blocks.values(), *(seal for _, seal in results)])
    batches, files = store.log.batch_count, f"{len(results)} result files"
    return found, f"{batches} batches, {files}, {len(blocks)} block files, {size:,} bytes"


class _HistoryFile(msgspec.Struct):
    epoch: int
    checksum: FileChecksum


class _HubFiles(msgspec.Struct):
    """The files that a hub's ledger seals."""

    backfill_batches: dict[str, list[_HistoryFile]]
    archive: EventPrefix


def _list_hub_faults(folder: Path) -> Iterator[str]:
    """Yield a sentence for each file of a hub's own that is not what was written."""
    ledger = _result_or_error(
        partial(durable_files.read_checksummed, folder / "hub.json", f"the hub in {folder}")
    )
    if isinstance(ledger, ValueError):
        yield str(ledger)
        return
    files = msgspec.json.decode(ledger, type=_HubFiles)
    for stream, history in files.backfill_batches.items():
        for file in history:
            path = folder / "history" / f"{file.epoch:06d}-{stream}.parquet"
            yield from _list_check_error(partial(durable_files.check_file, path, file.checksum))
    if files.archive.event_count:
        events = EventLog(folder / "events.jsonl")
        yield from _list_check_error(partial(events.open_prefix, files.archive))
        yield from _list_check_error(partial(events.check_prefix, files.archive))


def repair_run(path: str | Path, batch: int | None = None) -> list[str]:
    """Make anew what of the run in a folder can be, and have it go back to where it was after a
    batch, if one is given; -1: to its beginning. What came later is done again when it is resumed.
    Returns what was made anew, in words.

    Raises ValueError for a batch that it cannot go back to, and where neither is to be done;
    RuntimeError while the run goes on.
    """
    if is_object_store_url(path):
        raise ValueError(f"{path} is a bucket; only a run in a folder can be repaired")
    store = RunStore(path)
    _read_run_settings(store)
    store.acquire_run()
    try:
        anew = find_repairable(store)
        if batch is None and not anew:
            raise ValueError(
                f"nothing of the run in {store.path} is to be made anew; `braid check` says "
                "whether it is whole, and --to-batch goes back"
            )
        if batch is not None:
            _check_possible(store, batch, anew)
        with suppress(ValueError, FencedError):  # where the log is damaged, nobody goes on with it
            store.take_over()  # a driver that sleeps is to wake up as one that has lost the run
        for each in anew:
            each.rebuild()
        if batch is not None:
            _restore_to_batch(store, batch)
        store.take_over()
        return [str(each) for each in anew]
    finally:
        store.release_run()


def _check_possible(store: RunStore, batch: int, anew: Sequence[RepairableFile]) -> None:
    """Raise ValueError for a batch that the run cannot go back to once all is made ``anew``."""
    possible = [-1, *_find_restorable_batches(store, _find_last_intact_batch(store, anew))]
    if batch not in possible:
        can = ", ".join(map(str, possible))
        raise ValueError(
            f"the run in {store.path} cannot go back to batch {batch}; it can to {can}"
        )


def _restore_to_batch(store: RunStore, batch: int) -> None:
    _result_or_error(store.log.read_new_entries)
    back = next((k for k in store.log.commits if k.batch == batch), None)
    state = None if back is None else store.read_state(back)
    store.delivered.truncate(batch)
    store.log.truncate(-1 if back is None else back.entry)
    if state is not None:
        store.checkpoint.truncate(state.epoch)
    else:
        current_file_system().remove_folder(store.checkpoint.folder)


def _read_run_settings(store: RunStore) -> dict[str, Any]:
    query = store.read_settings()
    if query is None:
        raise ValueError(f"{store.where} holds no run")
    return query


def _list_run_faults(store: RunStore, query: dict[str, Any]) -> Iterator[str]:
    """One after the other: the log, results, Spark's log of them, states and their blocks, input,
    checkpoint.
    """
    yield from _list_check_error(store.log.read_new_entries)
    yield from _list_check_error(store.check_events)
    for named in store.named_files():
        yield from _list_check_error(partial(store.verified_path, named, deep=True))
    listed = _result_or_error(store.published_files)
    for name in [] if isinstance(listed, ValueError) else chain.from_iterable(listed):
        yield from _list_check_error(partial(store.check_published_file, name, deep=True))
    yield from [str(listed)] if isinstance(listed, ValueError) else []
    yield from map(str, store.output.damaged_files().values())
    for kept in store.log.commits[-1:]:
        state = _result_or_error(partial(store.read_state, kept))
        if not isinstance(state, RunState):
            yield str(state)
            continue
        for name, seal in state.block_files.items():
            yield from _list_check_error(
                partial(durable_files.check_file, store.blocks / name, seal)
            )
    yield from _list_check_error(lambda: store.delivered.last_batch)
    if query.get("ready"):
        yield from _list_check_error(partial(store.copied.check_files, deep=True))
    if "on" in query and "" not in query["schemas"] and not store.url:
        epoch = getattr(_result_or_error(store.last_state), "epoch", -1)
        yield from _list_check_error(partial(store.checkpoint.check_epoch, epoch))


def _result_or_error(check: Callable[[], Any]) -> Any:
    """What it gives, or the error that says what is damaged."""
    try:
        return check()
    except ValueError as error:
        return error


def _list_check_error(check: Callable[[], Any]) -> Iterator[str]:
    if isinstance(error := _result_or_error(check), ValueError):
        yield str(error)


def _find_last_intact_batch(store: RunStore, anew: Sequence[RepairableFile]) -> int:
    """The last batch up to which the log and all results are whole, or can be made ``anew``; -1:
    none.
    """
    _result_or_error(store.log.read_new_entries)
    if isinstance(_result_or_error(store.compacted_files), ValueError):
        return -1
    made = {each.name for each in anew}
    first = [(m.first, part) for m in store.log.merged for part in m.parts]
    later = [(kept.batch, named) for kept in store.log.commits for named in kept.results]
    for batch, named in (*first, *later):
        if named.name not in made and isinstance(
            _result_or_error(partial(store.verified_path, named, deep=True)), ValueError
        ):
            return batch - 1
    return store.log.batch_count - 1


def _find_restorable_batches(store: RunStore, last: int) -> list[int]:
    """The batches up to the ``last`` intact one after which state and blocks are whole still."""
    intact = [k for k in store.log.commits if k.batch <= last]
    return [k.batch for k in intact[-OLD:] if _has_intact_blocks(store, k)]


def _has_intact_blocks(store: RunStore, kept: Kept) -> bool:
    def blocks() -> None:
        for name, seal in store.read_state(kept).block_files.items():
            durable_files.check_file(store.blocks / name, seal)

    return kept.state is not None and not isinstance(_result_or_error(blocks), DamagedRunError)
