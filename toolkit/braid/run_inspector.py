"""``braid inspect``: describe the events of a run folder, a bucket or a recording in words.

It needs neither Spark nor the run's data. The text is from ``braid.core.narrative``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from braid.core.block_history_index import EventIndex
from braid.core.event_jsonl import decode_event, read_events
from braid.core.narrative import (
    describe_batch_plan,
    describe_block_history,
    describe_run,
    explain_meeting,
)
from braid.core.run_events import Event, RunEnded, RunStarted
from braid.storage.remote_medium import is_object_store_url
from braid.storage.run_store import RunStore, open_store
from braid.util.file_system import current_file_system


def load_run(path: str | Path) -> EventIndex:
    """Return the run in a folder, a bucket or a recording (.jsonl).

    Raises ValueError if there is none.
    """
    if not is_object_store_url(path):
        path = Path(path)
        if current_file_system().is_file(path):
            return EventIndex.from_events(read_events(path))
        if not current_file_system().is_folder(path):
            raise ValueError(f"{path} is neither a run folder nor a recording")
    store = open_store(path)
    if store.read_settings() is None:
        raise ValueError(f"{path} is empty; a run folder has a run.json")
    return EventIndex.from_events(_read_committed_events(store))


def _read_committed_events(store: RunStore) -> list[Event]:
    """Return the events of the manifests, with start and end of the run from events.jsonl."""
    file = store.path / "events.jsonl"
    content = current_file_system().read_file(file) if current_file_system().exists(file) else b""
    lines = content.split(b"\n")[:-1]  # the last may be incomplete
    ends = [decode_event(line) for line in (*lines[:1], *lines[-1:])]
    started = [e for e in ends[:1] if isinstance(e, RunStarted)]
    return [
        *started,
        *store.archive.committed_events(),
        *(e for e in ends[1:] if isinstance(e, RunEnded)),
    ]


def inspect_run(
    path: str | Path,
    batch: int | None = None,
    block: int | None = None,
    pair: Sequence[int] | None = None,
) -> str:
    """Return a description of a batch, a block, or a pair of blocks. Default: a summary of the run.

    Raises ValueError if it does not exist.
    """
    run = load_run(path)
    if batch is not None:
        return describe_batch_plan(run, batch)
    if block is not None:
        return describe_block_history(run, block)
    return explain_meeting(run, pair[0], pair[1]) if pair else describe_run(run)
