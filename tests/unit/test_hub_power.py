"""A power failure loses no batch of a hub that anybody has seen, and none of its history."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from braid.hub.hub import QueryHub
from braid.hub.hub_run import HubRun
from braid.papers.reuse.hub_events import HistoryLost, HubBatchCommitted
from braid.storage import durable_files
from hub_cases import (
    BATCHES,
    THREE,
    TICKED,
    WIDE,
    end_of_ticks,
    expect_rows,
    make_hub_tables,
    query_rows,
    stored_state,
)
from world.cuts import Cuts
from world.machine import Machine

pytestmark = pytest.mark.unit

RUN = Path("/run")
DATA = make_hub_tables(1)
ASKED = {"wide": WIDE, "three": THREE, "ticked": TICKED}


def run_hub(folder: Path, **more: Any) -> HubRun:
    run = QueryHub(DATA, "ts", history="1 hour").start(folder, "batch", **more)
    run.awaitTermination()
    return run


def assert_whole(folder: Path, seen: int) -> None:
    """Check that all recorded history exists, and that the hub continues after ``seen``."""
    ledger = stored_state(folder)
    assert ledger is not None and ledger.epoch >= seen
    for files in ledger.backfill_batches.values():
        for file in files:
            durable_files.check_file(folder / "history" / file.name, file.checksum)
    run = run_hub(folder)
    for name, sql in ASKED.items():
        assert query_rows(run, name) == expect_rows(DATA, sql, until=end_of_ticks(DATA, sql)), name
    events = run.events()
    assert [e.epoch for e in events if isinstance(e, HubBatchCommitted)] == [*range(BATCHES)]
    assert not any(isinstance(e, HistoryLost) for e in events)


@contextmanager
def watched_batches(seen: list[int]) -> Iterator[None]:
    """Record the committed batches."""
    with pytest.MonkeyPatch.context() as patch:
        real = HubRun._join_batch

        def take_batch(run: HubRun, source: Any, epoch: int) -> None:
            real(run, source, epoch)
            seen.append(epoch)

        patch.setattr(HubRun, "_join_batch", take_batch)
        yield


@pytest.mark.parametrize("how", ["all names", "no names"])
def test_a_cut_of_the_power_takes_no_batch_of_a_hub_that_was_seen(how: str) -> None:
    """Before every change of the hub's own files from the second commit to the third.

    Also at the commits of its operators.
    """
    machine, seen = Machine(), list[int]()
    cuts = Cuts(machine, how)

    def before(operation: str, path: str) -> None:
        engine = path.startswith(f"{RUN}/operators") and operation != "link"
        if not engine and max(seen, default=-1) == 1:
            cuts.cut(operation, path)

    machine.before = before
    with machine.simulated(), watched_batches(seen):
        run_hub(RUN, queries=ASKED)
    assert len(cuts.left) > 4
    for _ in cuts.machines():
        assert_whole(RUN, 1)


@pytest.mark.parametrize("how", ["all names", "no names"])
def test_a_cut_during_a_restart_takes_nothing_of_before_it(how: str) -> None:
    """The driver before was killed when it had put a state into place, but not its entry.

    A restart takes over the log, rewrites events, and removes what no commit names.
    """
    machine, seen = Machine(), list[int]()
    cuts, is_resumed = Cuts(machine, how), False

    def before(operation: str, path: str) -> None:
        is_entry = operation == "link" and path.startswith(f"{RUN}/commits/")
        if is_entry and max(seen, default=-1) == 1 and not is_resumed:
            raise OSError("no power")
        if is_resumed and max(seen) == 1 and not path.startswith(f"{RUN}/operators"):
            cuts.cut(operation, path)

    machine.before = before
    with machine.simulated(), watched_batches(seen):
        with pytest.raises(OSError, match="no power"):
            run_hub(RUN, queries=ASKED)
        is_resumed = True
        run_hub(RUN)
    assert len(cuts.left) > 4
    for _ in cuts.machines(most=12):
        assert_whole(RUN, 1)


def test_a_cut_after_a_restart_takes_no_commit_of_an_operator_of_before_it() -> None:
    """The driver before put it into place, and was killed before it forced its name to disk."""
    machine, seen = Machine(), list[int]()
    cuts, is_resumed = Cuts(machine, "no names"), False

    def before(operation: str, path: str) -> None:
        is_placed = operation == "unlink" and "/commits/.000002.json." in path
        if is_placed and "/operators/" in path and not is_resumed:
            raise OSError("no power")
        if is_resumed and max(seen) == 1 and not cuts.left:
            cuts.cut(operation, path)

    machine.before = before
    with machine.simulated(), watched_batches(seen):
        with pytest.raises(OSError, match="no power"):
            run_hub(RUN, queries=ASKED)
        is_resumed = True
        run_hub(RUN)
    assert cuts.left
    for _ in cuts.machines():
        assert_whole(RUN, 1)


def test_a_batch_of_a_hub_forces_few_files_beside_those_of_its_operators() -> None:
    """History by stream and its folder, the state, its name, and the entry with its name."""
    machine, seen, forced = Machine(), list[int](), Counter[str]()

    def before(operation: str, path: str) -> None:
        name = os.path.relpath(path, RUN)
        is_forced = operation in ("force", "sync") and not name.startswith("operators")
        if is_forced and max(seen, default=-1) == 2:
            forced[re.sub(r"[.-][0-9a-f]{8}\b", "", name)] += 1

    machine.before = before
    with machine.simulated(), watched_batches(seen):
        run_hub(RUN, queries=ASKED)
    history = {f"history/000003-{stream}.parquet": 1 for stream in DATA}
    log = {"commits": 2, "commits/state-000007.json": 1, "commits/.000008.json": 1}
    assert forced == {"history": 1, **history, **log}
