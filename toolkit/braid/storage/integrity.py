"""Check whether a run is intact, and restore it to a batch after which it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from braid.core.run_state import RunState
from braid.storage import durable_files, hub_files
from braid.storage.file_repair import RepairableFile, find_repairable
from braid.storage.hub_files import HubFiles, OperatorPin
from braid.storage.log_entries import CommitRecord
from braid.storage.manifest_log import OLD
from braid.storage.remote_medium import is_object_store_url
from braid.storage.run_store import RunStore, open_store
from braid.util.batch_numbers import display_batch, display_batch_range


def repair_hint(store: RunStore) -> str:
    """Return advice on repairing a damaged run."""
    repairable = find_repairable(store)
    mends = f"`braid repair {store.path}` rebuilds {' and '.join(map(str, repairable))}"
    last = _find_last_intact_batch(store, repairable)
    back = _find_restorable_batches(store, last)
    if repairable and last == store.log.batch_count - 1 and (last in back or last < 0):
        return mends
    return (
        f"{mends}; {_format_repair_advice(store, last, back)}"
        if repairable
        else _format_repair_advice(store, last, back)
    )


def _format_repair_advice(store: RunStore, last: int, back: Sequence[int]) -> str:
    if back:
        command = f"`braid repair {store.path} --to-batch {display_batch(back[-1])}`"
        return f"{display_batch_range(0, back[-1])} are intact: {command} goes back there"
    intact = f"{display_batch_range(0, last)} are intact" if last >= 0 else "no batch is intact"
    command = f"`braid repair {store.path} --to-batch 0`"
    return f"{intact}, but no state remains: restore the file, or start over with {command}"


def check_run(path: str | Path) -> tuple[list[str], str]:
    """Check the run in a folder. Return one sentence for each fault, and a summary of the run.

    Every file is read; files of a run in a bucket are downloaded. Raises ValueError if the folder
    holds no run.
    """
    store = open_store(path)
    query = _read_run_settings(store)
    store.fetch_all()
    faults = [
        fault.replace(str(store.path), store.where)
        for fault in _list_run_faults(store, query, "hub" not in query)
    ]
    if "hub" in query:
        faults += hub_files.list_hub_faults(store)
        pins = _list_pins(store)
        for pin in pins:
            operator = hub_files.open_operator(store.path, pin)
            faults += _list_run_faults(operator, {}, pin.is_running)
        return [*dict.fromkeys(faults)], f"a hub of {len(pins)} operators"
    state = _result_or_error(store.last_state)
    blocks = state.block_files if isinstance(state, RunState) else {}
    results = store.results.named_files()
    size = sum(s.size_bytes for s in [*blocks.values(), *(checksum for _, checksum in results)])
    batches, files = store.log.batch_count, f"{len(results)} result files"
    return faults, f"{batches} batches, {files}, {len(blocks)} block files, {size:,} bytes"


def repair_run(path: str | Path, batch: int | None = None) -> list[str]:
    """Rebuild damaged files of the run in a folder. Return descriptions of the rebuilt files.

    ``batch``: also restore the run to its state after this batch; -1: to its beginning. Later
    batches run again when it is resumed.

    Raises ValueError if the run cannot go back to the batch or there is nothing to do, RuntimeError
    while the run is active.
    """
    if is_object_store_url(path):
        raise ValueError(f"{path} is a bucket; only a run in a folder can be repaired")
    store = RunStore(path)
    _read_run_settings(store)
    store.acquire_run()
    try:
        repairable = find_repairable(store)
        if batch is None and not repairable:
            raise ValueError(
                f"no file of the run in {store.path} is to be rebuilt; `braid check` tells whether "
                "the run is intact, and --to-batch goes back"
            )
        if batch is not None:
            _check_possible(store, batch, repairable)
        is_readable = not isinstance(_result_or_error(store.log.read_new_entries), ValueError)
        if is_readable:
            store.take_over()  # a suspended driver must find that it has lost the run
        for each in repairable:
            store.check_driver()
            each.rebuild()
        if batch is not None:
            _restore_to_batch(store, batch, is_readable)
        store.take_over()
        return [str(each) for each in repairable]
    finally:
        store.release_run()


def _check_possible(store: RunStore, batch: int, repairable: Sequence[RepairableFile]) -> None:
    """Raise ValueError unless the run can go back to a batch once its files are rebuilt."""
    possible = [-1, *_find_restorable_batches(store, _find_last_intact_batch(store, repairable))]
    if batch not in possible:
        can = ", ".join(str(display_batch(each)) for each in possible)
        raise ValueError(
            f"the run in {store.path} cannot go back to batch {display_batch(batch)}; it can to "
            f"{can}"
        )


def _restore_to_batch(store: RunStore, batch: int, is_readable: bool) -> None:
    """Make the log end at a batch, then remove what follows it in other files.

    An entry of the log does so at once, and fails if another driver has taken over the run. If the
    log is damaged, no driver goes on with it, and what follows the batch is removed.
    """
    back = next((k for k in store.log.commits if k.batch == batch), None)
    is_hub = _is_hub(store)
    delivered = epoch = -1
    if back is not None and is_hub:
        named = hub_files.read_hub_files(store, back)
        delivered, epoch = named.epoch, named.micro_batch
    elif back is not None:
        delivered, epoch = batch, store.states.read_state(back).epoch
    # Before the log: results may be delivered twice, but are not left out.
    store.sink_progress.truncate(delivered)
    if is_readable:
        store.take_over(batch)
    else:
        store.log.truncate(-1 if back is None else back.entry)
    if is_hub and back is None:
        hub_files.remove_hub_files(store)
    store.checkpoint.truncate(epoch, store.check_driver)


def _read_run_settings(store: RunStore) -> dict[str, Any]:
    query = store.read_settings()
    if query is None:
        raise ValueError(f"{store.where} holds no run")
    return query


def _list_pins(store: RunStore) -> list[OperatorPin]:
    """Return the operators that the last commit of a hub names; none if it is damaged."""
    files = [
        _result_or_error(partial(hub_files.read_hub_files, store, k))
        for k in store.log.commits[-1:]
    ]
    return [pin for f in files if isinstance(f, HubFiles) for pin in f.operators.values()]


def _list_run_faults(
    store: RunStore, query: dict[str, Any], with_state: bool = True
) -> Iterator[str]:
    """Yield a sentence for each fault of a run. ``with_state``: also of its state and blocks.

    Checked in order: log, events, results, Spark's sink log, irregular rows, trace, state and
    blocks, sink progress, input, checkpoint.
    """
    yield from _list_check_error(store.log.read_new_entries)
    yield from _list_check_error(store.archive.check_file)
    for named in store.results.named_files():
        yield from _list_check_error(partial(store.results.verified_path, named, deep=True))
    listed = _result_or_error(store.results.published_files)
    for name in [] if isinstance(listed, ValueError) else chain.from_iterable(listed):
        yield from _list_check_error(partial(store.results.check_published_file, name, deep=True))
    yield from [str(listed)] if isinstance(listed, ValueError) else []
    yield from map(str, store.published.sink_log.damaged_files().values())
    irregular = _result_or_error(lambda: [*store.irregular.list_committed()])
    for file in [] if isinstance(irregular, ValueError) else irregular:
        yield from _list_check_error(partial(store.irregular.find_file, file))
    trace = _result_or_error(lambda: [*store.trace.list_committed()])
    for part in [] if isinstance(trace, ValueError) else trace:
        yield from _list_check_error(partial(store.trace.find_file, part))
    for commit in store.log.commits[-1:] if with_state else ():
        state = _result_or_error(partial(store.states.read_state, commit))
        if not isinstance(state, RunState):
            yield str(state)
            continue
        for name, checksum in state.block_files.items():
            yield from _list_check_error(
                partial(durable_files.check_file, store.blocks.folder / name, checksum)
            )
    yield from _list_check_error(lambda: store.sink_progress.last_batch)
    if query.get("ready"):
        yield from _list_check_error(partial(store.input.check_files, deep=True))
    if "on" in query and "" not in query["schemas"] and not store.url:
        epoch = getattr(_result_or_error(store.last_state), "epoch", -1)
        yield from _list_check_error(partial(store.checkpoint.check_epoch, epoch))


def _result_or_error(check: Callable[[], Any]) -> Any:
    """Return the result of a check, or the error that describes the damage."""
    try:
        return check()
    except ValueError as error:
        return error


def _list_check_error(check: Callable[[], Any]) -> Iterator[str]:
    if isinstance(error := _result_or_error(check), ValueError):
        yield str(error)


def _find_last_intact_batch(store: RunStore, repairable: Sequence[RepairableFile]) -> int:
    """Return the last batch up to which log and results are intact or repairable; -1: none."""
    _result_or_error(store.log.read_new_entries)
    if isinstance(_result_or_error(store.results.compacted_files), ValueError):
        return -1
    names = {each.name for each in repairable}
    first = [(m.first_batch, part) for m in store.log.merged for part in m.part_files]
    later = [(commit.batch, named) for commit in store.log.commits for named in commit.results]
    for batch, named in (*first, *later):
        if named.name not in names and isinstance(
            _result_or_error(partial(store.results.verified_path, named, deep=True)), ValueError
        ):
            return batch - 1
    return store.log.batch_count - 1


def _find_restorable_batches(store: RunStore, last: int) -> list[int]:
    """Return the restorable batches up to ``last``: those with intact state and blocks."""
    intact = [k for k in store.log.commits if k.batch <= last]
    return [k.batch for k in intact[-OLD:] if _has_intact_blocks(store, k)]


def _has_intact_blocks(store: RunStore, commit: CommitRecord) -> bool:
    def check() -> None:
        if _is_hub(store):
            hub_files.verify_commit(store, commit)
        else:
            store.blocks.check_files(store.states.read_state(commit))

    return commit.state is not None and not isinstance(_result_or_error(check), ValueError)


def _is_hub(store: RunStore) -> bool:
    return "hub" in _read_run_settings(store)
