"""The user's function receives every committed batch once.

If it is unknown whether it returned, it receives the same rows again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.errors import DamagedRunError
from braid.storage.integrity import check_run, repair_run
from braid.storage.run_store import RunStore
from braid.storage.sink_progress import SinkProgress
from braid.stream_join import JoinRun, StreamJoin
from oracle import Ids, compute_expected, describe_difference, make_tables, result_ids
from scatter import Scatter

ON = "a.k = b.k"
STREAMS = make_tables("ab", 60, seed=71, batches=6)
WANTED = compute_expected(STREAMS, ON)
Give = Callable[[pa.Table, int], Any]


class Idempotent:
    """A sink that identifies a batch by its number, and records its calls."""

    def __init__(self) -> None:
        self.batches: dict[int, Ids] = {}
        self.calls: list[int] = []

    def __call__(self, results: pa.Table, batch: int) -> None:
        found = result_ids(results)
        assert self.batches.setdefault(batch, found) == found, "the same rows again"
        self.calls.append(batch)

    def has_all(self) -> bool:
        return describe_difference(sum(self.batches.values(), Ids()), WANTED) == ""


def start(folder: Path, give: Give | None = None, **more: Any) -> JoinRun:
    join = StreamJoin(STREAMS, ON, Scatter(), check=True)
    return join.start(folder, batches="batch", foreachBatch=give, **more)


def resume(folder: Path, give: Give | None = None) -> JoinRun:
    return StreamJoin.resume(folder, STREAMS, foreachBatch=give)


def test_every_batch_is_delivered_once_in_order(tmp_path: Path) -> None:
    """After its commit, even without results."""
    sink, committed = Idempotent(), []

    def give(results: pa.Table, batch: int) -> None:
        committed.append(RunStore(tmp_path).log.committed_batches()[-1])
        sink(results, batch)

    assert start(tmp_path, give).awaitTermination()
    assert sink.calls == committed == [*range(6)] and sink.has_all()
    assert resume(tmp_path, give).awaitTermination() and len(sink.calls) == 6
    assert check_run(tmp_path)[0] == []


@pytest.mark.parametrize("when", ["before", "in the middle", "after", "written down"])
def test_what_was_cut_off_is_delivered_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """The driver ends before batch 3 is delivered, during it, after it, and after that is
    recorded.
    """
    sink, real = Idempotent(), SinkProgress.mark_delivered

    def give(results: pa.Table, batch: int) -> None:
        if batch == 3 and when == "before":
            raise OSError("killed")
        sink(results, batch)
        if batch == 3 and when == "in the middle":
            raise OSError("killed")

    def note(delivered: SinkProgress, batch: int) -> None:
        if batch == 3 and when == "after":
            raise OSError("killed")
        real(delivered, batch)
        if batch == 3 and when == "written down":
            raise OSError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(SinkProgress, "mark_delivered", note)
        run = start(tmp_path, give)
        with pytest.raises(Exception, match="killed"):
            run.awaitTermination()
    assert RunStore(tmp_path).log.committed_batches() == [0, 1, 2, 3]
    assert resume(tmp_path, sink).awaitTermination()
    again = [] if when in ("before", "written down") else [3]
    assert sink.calls == sorted([*range(6), *again]) and sink.has_all()


def test_a_killed_process_delivers_again(tmp_path: Path) -> None:
    """It ends in the function, after writing batch 3 to a file."""
    program = f"""
import os
from pathlib import Path
import pyarrow.parquet as pq
import test_sink as t

def give(results, batch):
    pq.write_table(results, Path({str(tmp_path)!r}) / f"{{batch}}.parquet")
    if batch == 3:
        os._exit(9)

t.start({str(tmp_path / "run")!r}, give).awaitTermination()
"""
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": paths})
    assert done.returncode == 9
    import pyarrow.parquet as pq

    sink = Idempotent()
    for batch in range(4):
        sink(pq.read_table(tmp_path / f"{batch}.parquet"), batch)
    assert resume(tmp_path / "run", sink).awaitTermination()
    assert sink.calls == [0, 1, 2, 3, 3, 4, 5] and sink.has_all()


def test_a_sink_that_fails_ends_the_run_in_one_sentence(tmp_path: Path) -> None:
    def give(results: pa.Table, batch: int) -> None:
        raise KeyError("x")

    run = start(tmp_path, give)
    with pytest.raises(RuntimeError, match="foreachBatch failed on batch 0: KeyError: 'x'"):
        run.awaitTermination()
    assert run.health().state == "failed" and "foreachBatch failed" in run.health().error


def test_a_sink_that_comes_later_gets_all(tmp_path: Path) -> None:
    """Also if the run has finished."""
    assert start(tmp_path).awaitTermination()
    sink = Idempotent()
    assert resume(tmp_path, sink).awaitTermination()
    assert sink.calls == [*range(6)] and sink.has_all()


def test_after_repair_batches_are_delivered_anew(tmp_path: Path) -> None:
    assert start(tmp_path, Idempotent()).awaitTermination()
    repair_run(tmp_path, 4)
    sink = Idempotent()
    assert resume(tmp_path, sink).awaitTermination()
    assert sink.calls == [5]


def test_a_run_that_is_stopped_delivers_the_rest_when_it_goes_on(tmp_path: Path) -> None:
    sink = Idempotent()

    def give(results: pa.Table, batch: int) -> None:
        sink(results, batch)
        if batch == 2:
            run._stopping.set()

    run = start(tmp_path, give, pace=0.1)
    assert run._ended.wait(60) and sink.calls == [0, 1, 2]
    assert resume(tmp_path, sink).awaitTermination()
    assert sink.calls == [*range(6)] and sink.has_all()


def test_what_cannot_be_called_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="foreachBatch is 3; it must be a function of the results"):
        start(tmp_path / "run", 3)  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_how_far_it_is_has_a_seal(tmp_path: Path) -> None:
    assert start(tmp_path, Idempotent()).awaitTermination()
    file = tmp_path / "sink-progress.json"
    assert json.loads(file.read_text())["batch"] == 5
    file.write_text(file.read_text().replace('"batch":5', '"batch":6'))
    with pytest.raises(ValueError, match=r"sink-progress.json is damaged"):
        resume(tmp_path, Idempotent())
    assert "sink-progress.json is damaged" in check_run(tmp_path)[0][0]


def test_a_sink_may_stop_the_run(tmp_path: Path) -> None:
    """The run ends after that batch, and can be resumed."""
    given, runs = list[int](), list[JoinRun]()
    begun = threading.Event()

    def give(results: pa.Table, batch: int) -> None:
        given.append(batch)
        assert begun.wait(60)
        if batch == 2:
            runs[0].stop()

    runs.append(start(tmp_path, give))
    begun.set()
    assert runs[0].awaitTermination(60)
    assert given == [0, 1, 2] and runs[0].status["state"] == "stopped"
    assert resume(tmp_path, lambda table, batch: given.append(batch)).awaitTermination()
    assert given == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("batch", [None, 4])
def test_what_is_known_of_deliveries_is_made_anew(tmp_path: Path, batch: int | None) -> None:
    """Lost records of deliveries cause another delivery."""
    sink = Idempotent()
    assert start(tmp_path, sink).awaitTermination()
    file = tmp_path / "sink-progress.json"
    file.write_bytes(file.read_bytes()[:9])
    sentence = (
        f"after `braid repair {tmp_path}`, foreachBatch is given the batches from 0 on again, each "
        "with the number and the rows that it had"
    )
    with pytest.raises(DamagedRunError, match=f"sink-progress.json is damaged: .*; {sentence}"):
        resume(tmp_path, sink)
    assert resume(tmp_path).awaitTermination(), "without foreachBatch nothing needs it"
    (made,) = repair_run(tmp_path, batch)
    assert "sink-progress.json, after which foreachBatch is given the batches from 0 on" in made
    assert resume(tmp_path, sink).awaitTermination()
    assert sink.calls == [*range(6)] * 2 and sink.has_all()
    assert check_run(tmp_path)[0] == []
