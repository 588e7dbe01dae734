"""Is a run whole? And how it goes back to a batch after which it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from braid.core.state import Seal, State
from braid.engine import durable
from braid.engine.disk import disk
from braid.engine.durable import Damaged
from braid.engine.entries import Kept
from braid.engine.log import OLD, Superseded
from braid.engine.mirror import Mirror, in_bucket, opened
from braid.engine.remaking import Remakable, remakable
from braid.engine.store import Store
from braid.engine.told import Archive, Told


def advice(store: Store) -> str:
    """What can be done about a damaged run."""
    anew = remakable(store)
    mends = f"`braid repair {store.path}` makes anew {' and '.join(map(str, anew))}"
    last = _intact(store, anew)
    back = _restorable(store, last)
    if anew and last == store.log.batches - 1 and (last in back or last < 0):
        return mends
    return f"{mends}; {_back(store, last, back)}" if anew else _back(store, last, back)


def _back(store: Store, last: int, back: Sequence[int]) -> str:
    if back:
        again = f"`braid repair {store.path} --to-batch {back[-1]}`"
        return f"up to batch {back[-1]} all is whole: {again} goes back there"
    whole = f"batches 0 to {last} are intact" if last >= 0 else "no batch is intact"
    again = f"`braid repair {store.path} --to-batch -1`"
    return f"{whole}, but no state of theirs is left: restore the file, or begin anew with {again}"


def check(path: str | Path) -> tuple[list[str], str]:
    """What is wrong with the run in a folder, a sentence for each file; and what it has, in words.
    Every file is read; of a run in a bucket, brought here. Raises ValueError for a folder without a
    run.
    """
    store = opened(path)
    query = _query(store)
    if isinstance(store, Mirror):
        store.bring()
    found = [fault.replace(str(store.path), store.where) for fault in _faults(store, query)]
    if "hub" in query:
        operators = disk().find(store.path / "operators", "[0-9]*")
        found += _list_hub_faults(store.path)
        found += [fault for o in operators for fault in _faults(Store(o), {})]
        return found, f"a hub of {len(operators)} operators"
    state = _tried(store.state)
    blocks = state.files if isinstance(state, State) else {}
    results = store.named()
    size = sum(s.bytes for s in [*blocks.values(), *(seal for _, seal in results)])
    batches, files = store.log.batches, f"{len(results)} result files"
    return found, f"{batches} batches, {files}, {len(blocks)} block files, {size:,} bytes"


class _HistoryFile(msgspec.Struct):
    epoch: int
    seal: Seal


class _HubFiles(msgspec.Struct):
    """The files that a hub's ledger seals."""

    history: dict[str, list[_HistoryFile]]
    archive: Archive


def _list_hub_faults(folder: Path) -> Iterator[str]:
    """Yield a sentence for each file of a hub's own that is not what was written."""
    ledger = _tried(partial(durable.opened, folder / "hub.json", f"the hub in {folder}"))
    if isinstance(ledger, ValueError):
        yield str(ledger)
        return
    files = msgspec.json.decode(ledger, type=_HubFiles)
    for stream, history in files.history.items():
        for file in history:
            path = folder / "history" / f"{file.epoch:06d}-{stream}.parquet"
            yield from _tried_all(partial(durable.check, path, file.seal))
    if files.archive.events:
        events = Told(folder / "events.jsonl")
        yield from _tried_all(partial(events.look, files.archive))
        yield from _tried_all(partial(events.check, files.archive))


def repair(path: str | Path, batch: int | None = None) -> list[str]:
    """Make anew what of the run in a folder can be, and have it go back to where it was after a
    batch, if one is given; -1: to its beginning. What came later is done again when it is resumed.
    Returns what was made anew, in words.

    Raises ValueError for a batch that it cannot go back to, and where neither is to be done;
    RuntimeError while the run goes on.
    """
    if in_bucket(path):
        raise ValueError(f"{path} is a bucket; only a run in a folder can be repaired")
    store = Store(path)
    _query(store)
    store.acquire()
    try:
        anew = remakable(store)
        if batch is None and not anew:
            raise ValueError(
                f"nothing of the run in {store.path} is to be made anew; `braid check` says "
                "whether it is whole, and --to-batch goes back"
            )
        if batch is not None:
            _check_possible(store, batch, anew)
        with suppress(ValueError, Superseded):  # where the log is damaged, nobody goes on with it
            store.take_over()  # a driver that sleeps is to wake up as one that has lost the run
        for each in anew:
            each.make()
        if batch is not None:
            _go_back(store, batch)
        store.take_over()
        return [str(each) for each in anew]
    finally:
        store.release()


def _check_possible(store: Store, batch: int, anew: Sequence[Remakable]) -> None:
    """Raise ValueError for a batch that the run cannot go back to once all is made ``anew``."""
    possible = [-1, *_restorable(store, _intact(store, anew))]
    if batch not in possible:
        can = ", ".join(map(str, possible))
        raise ValueError(
            f"the run in {store.path} cannot go back to batch {batch}; it can to {can}"
        )


def _go_back(store: Store, batch: int) -> None:
    _tried(store.log.refresh)
    back = next((k for k in store.log.commits if k.batch == batch), None)
    state = None if back is None else store.state_of(back)
    store.delivered.cut(batch)
    store.log.cut(-1 if back is None else back.entry)
    if state is not None:
        store.checkpoint.cut(state.epoch)
    else:
        disk().rmtree(store.checkpoint.folder)


def _query(store: Store) -> dict[str, Any]:
    query = store.query()
    if query is None:
        raise ValueError(f"{store.where} holds no run")
    return query


def _faults(store: Store, query: dict[str, Any]) -> Iterator[str]:
    """One after the other: the log, results, Spark's log of them, states and their blocks, input,
    checkpoint.
    """
    yield from _tried_all(store.log.refresh)
    yield from _tried_all(store.check_told)
    for named in store.named():
        yield from _tried_all(partial(store.check_result, named, deep=True))
    listed = _tried(store.listed)
    for name in [] if isinstance(listed, ValueError) else chain.from_iterable(listed):
        yield from _tried_all(partial(store.check_other, name, deep=True))
    yield from [str(listed)] if isinstance(listed, ValueError) else []
    yield from map(str, store.output.damages().values())
    for kept in store.log.commits[-1:]:
        state = _tried(partial(store.state_of, kept))
        if not isinstance(state, State):
            yield str(state)
            continue
        for name, seal in state.files.items():
            yield from _tried_all(partial(durable.check, store.blocks / name, seal))
    yield from _tried_all(lambda: store.delivered.last)
    if query.get("ready"):
        yield from _tried_all(partial(store.copied.check, deep=True))
    if "on" in query and "" not in query["schemas"] and not store.url:
        epoch = getattr(_tried(store.state), "epoch", -1)
        yield from _tried_all(partial(store.checkpoint.check, epoch))


def _tried(check: Callable[[], Any]) -> Any:
    """What it gives, or the error that says what is damaged."""
    try:
        return check()
    except ValueError as error:
        return error


def _tried_all(check: Callable[[], Any]) -> Iterator[str]:
    if isinstance(error := _tried(check), ValueError):
        yield str(error)


def _intact(store: Store, anew: Sequence[Remakable]) -> int:
    """The last batch up to which the log and all results are whole, or can be made ``anew``; -1:
    none.
    """
    _tried(store.log.refresh)
    if isinstance(_tried(store.merged_files), ValueError):
        return -1
    made = {each.name for each in anew}
    first = [(m.first, part) for m in store.log.merged for part in m.parts]
    later = [(kept.batch, named) for kept in store.log.commits for named in kept.results]
    for batch, named in (*first, *later):
        if named.name not in made and isinstance(
            _tried(partial(store.check_result, named, deep=True)), ValueError
        ):
            return batch - 1
    return store.log.batches - 1


def _restorable(store: Store, last: int) -> list[int]:
    """The batches up to the ``last`` intact one after which state and blocks are whole still."""
    intact = [k for k in store.log.commits if k.batch <= last]
    return [k.batch for k in intact[-OLD:] if _whole(store, k)]


def _whole(store: Store, kept: Kept) -> bool:
    def blocks() -> None:
        for name, seal in store.state_of(kept).files.items():
            durable.check(store.blocks / name, seal)

    return kept.state is not None and not isinstance(_tried(blocks), Damaged)
