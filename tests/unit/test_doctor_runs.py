"""``doctor`` finds symptoms that are planted in real runs. Their clock goes on only as planted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import braid
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from braid import StreamJoin, run_folder_setup
from braid.core import batch_step
from braid.core.run_record import RunRecord
from braid.execution.thread_executor import ThreadExecutor
from braid.kernels.probe import BlockJoiner
from braid.papers.baselines.centralized import Centralized
from braid.papers.baselines.hash_partition import HashPartition
from braid.storage.static_input_copy import InputSnapshot
from braid.util.clock_and_threads import Environment, replace_environment
from braid.util.file_system import FileSystem
from braid.util.machine import available_cores
from braid.util.package_versions import list_present_versions

SECOND, BATCHES = 1_000_000, 13
CHECKED = "a.k = b.k AND a.x * b.x % 7 > 100"
"""A condition with a part that is evaluated for each pair of a key, and never true."""


class PlantedClock(Environment):
    """A clock that stands still unless a test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def read_clock(self) -> float:
        return self.now

    def move_before(self, patch: pytest.MonkeyPatch, owner: Any, name: str, pace: Any) -> None:
        """Move the clock before each call of a function, by ``pace(*arguments)`` seconds."""
        function = getattr(owner, name)

        def call_later(*given: Any, **more: Any) -> Any:
            self.now += pace(*given)
            return function(*given, **more)

        patch.setattr(owner, name, call_later)


def make_rows(count: int, keys: Callable[[int], int] = int, ends: int = BATCHES) -> pa.Table:
    """Return tuples of a number for each batch until one, a second of event time a batch."""
    numbers = range(count * ends)
    return pa.table(
        {
            "k": [keys(n) for n in numbers],
            "x": [*numbers],
            "ts": pa.array([n * SECOND // count for n in numbers], pa.timestamp("us")),
            "batch": [n // count for n in numbers],
        }
    )


def start_run(path: Path, rows: tuple[pa.Table, pa.Table], on: str, **more: Any) -> None:
    """Run a join in a folder to its end."""
    sink, placement = more.pop("foreachBatch", None), more.pop("placement", Centralized())
    join = StreamJoin({"a": rows[0], "b": rows[1]}, on, placement, time="ts", **more)
    run = join.start(path, batches="batch", durability="process", foreachBatch=sink)
    assert run.awaitTermination()


@dataclass
class Planting:
    """Changes that a planted run makes: its clock, and functions of Braid until the test ends."""

    path: Path
    clock: PlantedClock
    patch: pytest.MonkeyPatch

    def judge_as_endless(self) -> None:
        """Judge the run as one of streams that do not end."""
        self.patch.setattr(RunRecord, "is_endless", True)


def plant_checks(planting: Planting) -> None:
    """Pairs of one key are checked in vain, a microsecond each."""
    rows = make_rows(200, lambda n: 1, 8)
    planting.clock.move_before(
        planting.patch,
        BlockJoiner,
        "_apply_residual",
        lambda joiner, pairs, residual: sum(len(matches) for _, matches in pairs) / 1e6,
    )
    start_run(planting.path, (rows, rows), CHECKED, windows="unbounded")


def plant_all_pairs(planting: Planting) -> None:
    rows = make_rows(450, ends=8)
    on = "a.x * b.x = -1"
    start_run(planting.path, (rows, rows), on, windows="unbounded")


def plant_growth(planting: Planting) -> None:
    rows = make_rows(12_000, ends=9)
    other = rows.set_column(0, "k", pc.add(rows["k"], 1_000_000))
    planting.judge_as_endless()
    start_run(planting.path, (rows, other), "a.k = b.k", windows="unbounded")


def plant_late_tuples(planting: Planting) -> None:
    rows = make_rows(40)
    seconds = [n // 40 - (9 if n % 40 == 7 else 0) for n in range(len(rows))]
    late = pa.array([second * SECOND for second in seconds], pa.timestamp("us"))
    start_run(
        planting.path, (rows, rows.set_column(2, "ts", late)), "a.k = b.k", windows="5 seconds"
    )


def plant_narrow_matches(planting: Planting) -> None:
    rows = make_rows(150)
    start_run(planting.path, (rows, rows), "a.k = b.k", windows="1 minute")


def plant_skew(planting: Planting) -> None:
    """A host has all tuples of a key, and takes a microsecond for each pair."""
    rows = make_rows(300, lambda n: 1 if n % 2 else n, 10)
    pairs = lambda joiner, found, residual: sum(len(m) for _, m in found) / 1e6  # noqa: E731
    planting.clock.move_before(planting.patch, BlockJoiner, "_apply_residual", pairs)
    placement = HashPartition(4)
    start_run(planting.path, (rows, rows), CHECKED, windows="unbounded", placement=placement)


def plant_tiny_batches(planting: Planting) -> None:
    """To read a batch of 20 tuples takes half a second."""
    planting.judge_as_endless()
    rows = make_rows(20)
    planting.clock.move_before(planting.patch, InputSnapshot, "read_table_batch", lambda *_: 0.25)
    start_run(planting.path, (rows, rows), "a.k = b.k", windows="1 minute")


def plant_result_files(planting: Planting) -> None:
    """24 threads write a file each."""
    rows = make_rows(200)
    planting.patch.setattr(ThreadExecutor.__init__, "__defaults__", (24, 0))
    placement = HashPartition(24)
    start_run(planting.path, (rows, rows), "a.k = b.k", windows="1 minute", placement=placement)


def plant_silence(planting: Planting) -> None:
    planting.judge_as_endless()
    silent = make_rows(150).filter(pc.less(make_rows(150)["batch"], 2))
    start_run(planting.path, (make_rows(150), silent), "a.k = b.k", windows="1 minute")


def plant_slower_batches(planting: Planting) -> None:
    """A second of event time takes longer and longer."""
    planting.judge_as_endless()
    rows = make_rows(20)
    planting.clock.move_before(
        planting.patch, InputSnapshot, "read_table_batch", lambda copied, alias, batch: batch
    )
    start_run(planting.path, (rows, rows), "a.k = b.k", windows="1 minute")


def plant_slow_sink(planting: Planting) -> None:
    def write_slowly(rows: pa.Table, batch: int) -> None:
        planting.clock.now += 2

    rows = make_rows(20)
    start_run(
        planting.path, (rows, rows), "a.k = b.k", windows="1 minute", foreachBatch=write_slowly
    )


def plant_full_disk(planting: Planting) -> None:
    rows = make_rows(20)
    planting.patch.setattr(FileSystem, "measure_free_share", lambda system, folder: 0.04)
    start_run(planting.path, (rows, rows), "a.k = b.k", windows="1 minute")


def plant_many_hosts(planting: Planting) -> None:
    """Planning takes a tenth of a second for 4 cores and one host more than they can serve."""
    rows = make_rows(20)
    planting.clock.move_before(planting.patch, batch_step, "plan_batch", lambda *_: 0.1)
    placement = HashPartition(4 * available_cores() + 1)
    start_run(planting.path, (rows, rows), "a.k = b.k", windows="1 minute", placement=placement)


def plant_old_version(planting: Planting) -> None:
    rows, present = make_rows(20), list_present_versions()
    old = {**present, "duckdb": "1.5.0"}
    with planting.patch.context() as patched:
        patched.setattr(run_folder_setup, "list_present_versions", lambda: old)
        start_run(planting.path, (rows, rows), "a.k = b.k", windows="1 minute")


PLANTED: dict[str, tuple[Callable[[Planting], None], str]] = {
    "wide": (plant_checks, "pairs for each match in a.k = b.k"),
    "cast": (plant_checks, "evaluates a.x * b.x % 7 > 100 for each of"),
    "unindexed": (plant_all_pairs, "compares all pairs, "),
    "unbounded": (plant_growth, "holds 216,000 tuples and 24,000 more after each batch"),
    "late": (plant_late_tuples, "2.5% of b came later than its lateness allows, by "),
    "window": (plant_narrow_matches, "100% of the matches of a are in the youngest quarter"),
    "skew": (plant_skew, "times the mean of 4 hosts"),
    "tiny": (plant_tiny_batches, "batches of 40 tuples take 0.50 s, 0% of it for the join"),
    "files": (plant_result_files, "writes 24 files of results a batch"),
    "idle": (plant_silence, "b has sent nothing in the last 10 batches"),
    "behind": (plant_slower_batches, "an hour of event time takes"),
    "sink": (plant_slow_sink, "foreachBatch takes 2.00 s a batch, 100% of all"),
    "disk": (plant_full_disk, "4% of the disk of the run is free"),
    "shape": (plant_many_hosts, "planning and hand-over take 100% of the time"),
    "version": (plant_old_version, "the run was started with duckdb 1.5.0; this is"),
}
"""By rule, the run that has its symptom, and what is said of it."""
ALSO = {
    ("wide", "cast"), ("cast", "wide"), ("late", "window"), ("tiny", "window"), ("behind", "tiny"), ("idle", "tiny"),
    ("skew", "wide"), ("skew", "cast"), ("files", "window"),
}  # fmt: skip
"""Rules, each with another one whose symptom its run has, too."""


@pytest.mark.parametrize("rule", PLANTED)
def test_a_symptom_that_is_planted_in_a_run_is_found(
    rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, sentence = PLANTED[rule]
    # With more threads, seconds planted in one may count for the hosts of the others, too.
    monkeypatch.setattr(ThreadExecutor.__init__, "__defaults__", (1, 1 << 20))
    monkeypatch.setattr(FileSystem, "measure_free_share", lambda system, folder: 0.5)
    with replace_environment(PlantedClock()) as clock:
        plant(Planting(tmp_path, clock, monkeypatch))
    findings = {each.rule: each.sentence for each in braid.doctor(tmp_path).findings}
    assert sentence in findings.get(rule, ""), findings
    assert {other for other in findings if other != rule} <= {o for r, o in ALSO if r == rule}
