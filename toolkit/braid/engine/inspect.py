"""``braid inspect``: the events of a run folder, a bucket or a recording, told in words
(``braid.core.telling``). Neither Spark nor the run's data is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from braid.core.events import Event, RunEnded, RunStarted
from braid.core.jsonl import event_of, read
from braid.core.recorded import Recorded
from braid.core.telling import plan, story, summary, why
from braid.engine.disk import disk
from braid.engine.mirror import in_bucket, opened
from braid.engine.store import Store


def load(path: str | Path) -> Recorded:
    """The run in a folder or a bucket, or of a recording (a .jsonl file). Raises ValueError when it
    is none.
    """
    if not in_bucket(path):
        path = Path(path)
        if disk().is_file(path):
            return Recorded.of(read(path))
        if not disk().is_folder(path):
            raise ValueError(f"{path} is neither a run folder nor a recording")
    store = opened(path)
    if store.query() is None:
        raise ValueError(f"{path} is empty; a run folder has a run.json")
    return Recorded.of(_told(store))


def _told(store: Store) -> list[Event]:
    """What the manifests hold, between the start and the end of the run, which they do not."""
    file = store.path / "events.jsonl"
    whole = disk().read(file) if disk().exists(file) else b""
    lines = whole.split(b"\n")[:-1]  # the last may be cut off
    ends = [event_of(line) for line in (*lines[:1], *lines[-1:])]
    started = [e for e in ends[:1] if isinstance(e, RunStarted)]
    return [*started, *store.history(), *(e for e in ends[1:] if isinstance(e, RunEnded))]


def inspect(
    path: str | Path,
    batch: int | None = None,
    block: int | None = None,
    pair: Sequence[int] | None = None,
) -> str:
    """A run folder or recording in words: of a batch, a block, or a pair of blocks; by default a
    summary. Raises ValueError, in one sentence, for what is not there.
    """
    run = load(path)
    if batch is not None:
        return plan(run, batch)
    if block is not None:
        return story(run, block)
    return why(run, pair[0], pair[1]) if pair else summary(run)
