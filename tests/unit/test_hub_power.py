"""A cut of the power takes no batch of a hub that anybody has seen, and none of its history."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from braid.engine import durable
from braid.engine.disk import replaced_disk
from braid.hub.hub import QueryHub
from braid.hub.ledger import Ledger
from braid.hub.run import HubRun
from braid.papers.reuse.events import HistoryLost, HubCommitted
from hub_cases import BATCHES, THREE, TICKED, WIDE, answered, end_of_ticks, expected, tables
from power import PowerDisk

pytestmark = pytest.mark.unit

DATA = tables(1)
ASKED = {"wide": WIDE, "three": THREE, "ticked": TICKED}


def run_hub(folder: Path, **more: Any) -> HubRun:
    run = QueryHub(DATA, "ts", history="1 hour").start(folder, "batch", **more)
    run.awaitTermination()
    return run


def assert_whole(folder: Path, seen: int) -> None:
    """Check that all history that is named is there, and that the hub goes on after ``seen``."""
    ledger = Ledger.read(folder / "hub.json")
    assert ledger is not None and ledger.epoch >= seen
    for stream, files in ledger.history.items():
        for file in files:
            durable.check(folder / "history" / f"{file.epoch:06d}-{stream}.parquet", file.seal)
    run = run_hub(folder)
    for name, sql in ASKED.items():
        assert answered(run, name) == expected(DATA, sql, until=end_of_ticks(DATA, sql)), name
    events = run.events()
    assert [e.epoch for e in events if isinstance(e, HubCommitted)] == [*range(BATCHES)]
    assert not any(isinstance(e, HistoryLost) for e in events)


@contextmanager
def watched_batches(seen: list[int]) -> Iterator[None]:
    """Note the batches that are committed."""
    with pytest.MonkeyPatch.context() as patch:
        real = HubRun._joined

        def take_batch(run: HubRun, source: Any, epoch: int) -> None:
            real(run, source, epoch)
            seen.append(epoch)

        patch.setattr(HubRun, "_joined", take_batch)
        yield


@pytest.mark.parametrize("all_names", [True, False])
def test_a_cut_of_the_power_takes_no_batch_of_a_hub_that_was_seen(
    tmp_path: Path, all_names: bool
) -> None:
    """At every operation of the hub itself from the second commit to the third, and at the commits
    of its operators.
    """
    disk, seen = PowerDisk(tmp_path / "run"), list[int]()
    cuts: dict[tuple[Any, ...], Path] = {}

    def before(operation: str, name: str) -> None:
        engine = name.startswith("operators") and operation != "link"
        if engine or max(seen, default=-1) != 1:
            return
        folder = tmp_path / f"{len(cuts)}-{operation}"
        disk.leave_after_cut(folder, all_names)
        sizes = [(str(f.relative_to(folder)), f.stat().st_size) for f in folder.rglob("*")]
        if cuts.setdefault(tuple(sorted(sizes)), folder) != folder:
            shutil.rmtree(folder)

    disk.before = before
    with replaced_disk(disk), watched_batches(seen):
        run_hub(tmp_path / "run", queries=ASKED)
    assert len(cuts) > 4
    for folder in cuts.values():
        assert_whole(folder, 1)


def test_a_batch_of_a_hub_forces_few_files_beside_those_of_its_operators(tmp_path: Path) -> None:
    """Those of history by stream, and its folder; the events; the ledger, and the hub's folder."""
    disk, seen, forced = PowerDisk(tmp_path / "run"), list[int](), Counter[str]()

    def before(operation: str, name: str) -> None:
        if operation == "sync" and max(seen, default=-1) == 2 and not name.startswith("operators"):
            forced["hub.json" if ".hub.json." in name else name] += 1

    disk.before = before
    with replaced_disk(disk), watched_batches(seen):
        run_hub(tmp_path / "run", queries=ASKED)
    history = {f"history/000003-{stream}.parquet" for stream in DATA}
    assert {*forced} - {"events.jsonl"} == {"hub.json", ".", "history", *history}
    assert forced.total() <= 8
