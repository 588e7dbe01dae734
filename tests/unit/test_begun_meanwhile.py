"""A driver or reader that begins while another driver goes on with the run, as after a lost lock."""

from __future__ import annotations

from pathlib import Path

import pytest
from braid.engine import rolling
from braid.engine.copied import Copied
from braid.engine.durable import Damaged
from braid.engine.log import Log
from braid.engine.output import Output
from braid.engine.store import Store
from braid.engine.tables import Replay
from braid.join import StreamJoin
from oracle import differ, expected, ids, tables
from scatter import Scatter

STREAMS = tables("ab", 60, seed=91, batches=4)


def test_entries_that_come_while_the_log_is_read_are_not_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two come after a reader has found no further one, and before it lists them all."""
    (tmp_path / "commits").mkdir()
    driver, reader = Log(tmp_path / "commits", tmp_path), Log(tmp_path / "commits", tmp_path)
    driver.append(force=False)
    real = Log._entries

    def entries(log: Log) -> list[int]:
        if log is reader and not driver.path(2).exists():
            driver.append(force=False)
            driver.append(force=False)
        return real(log)

    monkeypatch.setattr(Log, "_entries", entries)
    reader.refresh()
    assert reader._next == 3
    driver.path(1).unlink()
    with pytest.raises(Damaged, match=r"000001\.json is missing, but later ones are there"):
        Log(tmp_path / "commits", tmp_path).refresh()


def test_input_that_another_driver_cuts_meanwhile_is_not_missing(tmp_path: Path) -> None:
    mine = written(tmp_path)
    mine.check()
    Copied(tmp_path).complete(force=False)
    assert not [*tmp_path.glob("*.arrow")]
    mine.check(deep=True)
    (tmp_path / "a" / "000001.parquet").unlink()
    with pytest.raises(Damaged, match=r"000001\.parquet is missing"):
        mine.check()


def test_who_takes_over_after_all_input_was_cut_does_not_cut_it_again(tmp_path: Path) -> None:
    store = Store(tmp_path, "process")
    store.acquire()
    store.create({})
    written(store.input)
    store.copied.check()
    Copied(store.input).complete(force=False)
    store.take_over()
    store.copied.complete(force=False)
    store.copied.check(deep=True)


def test_a_result_that_another_driver_moves_meanwhile_is_not_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had its name in new/ when a driver that begins looked there, and has that in results/."""
    join = StreamJoin(STREAMS, "a.k = b.k", Scatter())
    assert join.start(tmp_path, batches="batch").awaitTermination()
    moved = next((tmp_path / "results").glob("*.parquet"))
    moved.rename(tmp_path / "new" / moved.name)
    real = Output.path

    def path(output: Output, name: str) -> str:
        found = real(output, name)
        if found == str(tmp_path / "new" / moved.name):
            Path(found).rename(moved)
        return found

    monkeypatch.setattr(Output, "path", path)
    run = join.start(tmp_path, batches="batch")
    assert run.awaitTermination()
    assert differ(ids(run.results()), expected(STREAMS, "a.k = b.k")) == ""


def test_what_is_rolled_up_before_a_driver_takes_over_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has read the log, and knows of no results that are merged."""
    join = StreamJoin(STREAMS, "a.k = b.k", Scatter())
    assert join.start(tmp_path, batches="batch").awaitTermination()
    store, before = Store(tmp_path, "process"), Store(tmp_path, "process")
    store.acquire()
    store.verify()
    monkeypatch.setattr(rolling, "_EVERY", 2)
    before.begin()
    before._roll(before.log.unrolled()[-3].entry)
    merged = {*(tmp_path / "merged").iterdir()}
    store.take_over()
    store.clean()
    assert merged and {*(tmp_path / "merged").iterdir()} == merged
    Store(tmp_path, "process").verify()


def written(folder: Path) -> Copied:
    """Return the input of a run as it is before it is cut."""
    Replay(STREAMS, {}, "batch").write(folder)
    copied = Copied(folder)
    copied.seal(force=False)
    return copied
