"""The results of many batches in few files: whoever reads them sees each result once, and whatever is
killed.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid.core.state import Seal, State
from braid.engine import durable, merging
from braid.engine import store as module
from braid.engine.check import check
from braid.engine.durable import Damaged
from braid.engine.store import Store
from braid.join import StreamJoin
from oracle import Ids, differ, expected, ids, tables
from scatter import Scatter

ON = "a.k = b.k"
STREAMS = tables("ab", 60, seed=97, batches=12)
WANTED = expected(STREAMS, ON)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three batches are merged at once."""
    monkeypatch.setattr(module, "_EVERY", 3)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of twelve batches, of which nine are merged."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_EVERY", 3)
        join = StreamJoin(STREAMS, ON, Scatter(pieces=2), check=True)
        assert join.start(folder, batches="batch", durability="process").awaitTermination()
    return folder


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def read(files: list[str]) -> Ids:
    return sum((ids(pq.read_table(file)) for file in files), Ids())


def of_batches(run: Path, first: int, end: int) -> list[str]:
    """The files as tasks wrote them."""
    names = [f for f in sorted(run.glob("results/*.parquet")) if first <= int(f.name[:6]) < end]
    return [str(f) for f in names]


def merged(run: Path) -> list[str]:
    return sorted(f.name for f in (run / "merged").iterdir())


def test_merged_results_are_those_of_their_batches(run: Path) -> None:
    assert merged(run) == [f"{n:06d}-{n + 2:06d}.parquet" for n in (0, 3, 6)]
    store = Store(run)
    assert len(store.result_files()) < len(of_batches(run, 0, 12))
    for first in range(12):
        for end in range(first, 13):
            wanted = read(of_batches(run, first, end))
            assert read(store.result_files(first, end)) == wanted
            one_by_one = store.result_files(first, end, merged=False)
            assert one_by_one == of_batches(run, first, end) and read(one_by_one) == wanted
    for n in (0, 3, 6):
        rows = pa.concat_tables([pq.read_table(f) for f in of_batches(run, n, n + 3)])
        found = pq.read_table(run / "merged" / f"{n:06d}-{n + 2:06d}.parquet")
        assert repr(found.to_pylist()) == repr(rows.to_pylist()), "batch after batch"
    resumed = StreamJoin.resume(run, STREAMS)
    assert differ(ids(resumed.results()), WANTED) == ""
    assert check(run)[0] == [] and resumed.awaitTermination()


def test_others_read_either_folder(run: Path) -> None:
    with duckdb.connect() as db:
        for folder, wanted in (("results", WANTED), ("merged", read(of_batches(run, 0, 9)))):
            found = db.execute(f"SELECT a.id, b.id FROM '{run}/{folder}/*.parquet'").fetchall()
            assert differ(Counter(found), wanted) == ""
            assert differ(ids(pq.read_table(run / folder)), wanted) == ""


def test_names_of_merged_files_are_not_kept(run: Path) -> None:
    """Neither in memory nor in roll-ups: they would grow with the run."""
    store = Store(run)
    assert store.committed() == [*range(12)]
    assert [kept.batch for kept in store.log.commits] == [9, 10, 11]
    rolled = sorted(run.glob("commits/rolled-*"))[-1].read_text()
    assert not [name for name in of_batches(run, 0, 9) if Path(name).name in rolled]


def rewritten(run: Path) -> dict[str, int]:
    return {f: (run / "merged" / f).stat().st_nlink for f in merged(run)}


@pytest.mark.parametrize("why", ["large", "other columns"])
def test_what_is_large_or_of_other_columns_is_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    store = Store(tmp_path / "run")
    store.create({})
    store.begin()
    if why == "large":
        monkeypatch.setattr(merging, "_LARGE", 100)
    for batch in range(5):
        name = f"{batch:06d}-0-0000cafe.parquet"
        kind = pa.int32() if batch == 1 and why != "large" else pa.int64()
        pq.write_table(pa.table({"batch": pa.array([batch], kind)}), store.output.new / name)
        snapshot = store.snapshot(State(batch))
        seals = {name: durable.seal(store.output.new / name, False)}
        store.commit(batch, snapshot, seals, [])
        store.tell([])
    assert merged(store.path) == [f"{n:06d}-0-0000cafe.parquet" for n in range(3)]
    assert set(rewritten(store.path).values()) == {2}
    found = [pq.read_table(f)["batch"][0].as_py() for f in Store(store.path).result_files()]
    assert found == [*range(5)]
    assert not [*store.output.new.iterdir()]
    again = Store(store.path)
    again.clean()
    assert merged(store.path) == [f"{n:06d}-0-0000cafe.parquet" for n in range(3)]


class Killed(OSError):
    """Where the process ends."""


@contextmanager
def killed_at(step: int) -> Iterator[list[str]]:
    """All file operations from number ``step`` on fail, once the first roll-up has begun."""
    done = list[str]()

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*given: Any, **named: Any) -> Any:
            if done or name == "merge":
                done.append(name)
                if len(done) > step:
                    raise Killed("killed")
            return real(*given, **named)

        return operation

    with pytest.MonkeyPatch.context() as patch:
        real = merging.Merging.merge
        patch.setattr(merging.Merging, "merge", counted("merge", real))
        for name in ("link", "replace", "fsync", "mkdir"):
            patch.setattr(os, name, counted(name, getattr(os, name)))
        patch.setattr(Path, "unlink", counted("unlink", Path.unlink))
        patch.setattr(
            pq.ParquetWriter, "write_table", counted("write", pq.ParquetWriter.write_table)
        )
        yield done


def test_killed_at_any_step_of_merging_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """In the run that is killed there is never more under merged/ than its roll-up will say; resumed,
    it ends as if nothing had been.
    """
    streams = tables("ab", 40, seed=98, batches=6)
    wanted, done, step = expected(streams, ON), list[str](), 0
    while "link" not in done[:step]:  # the commit after the roll-up
        folder = tmp_path / str(step)
        with killed_at(step) as done:
            run = StreamJoin(streams, ON, Scatter()).start(folder, batches="batch")
            with pytest.raises(Killed):
                run.awaitTermination()
        seen = [*folder.glob("merged/*.parquet")]
        assert [f.name for f in seen] in ([], ["000000-000002.parquet"])
        assert not seen or read([*map(str, seen)]) == read(of_batches(folder, 0, 3))
        last = Store(folder).committed()[-1]
        assert read(Store(folder).result_files(0, last)) == read(of_batches(folder, 0, last))
        again = StreamJoin.resume(folder, streams, durability="process")
        assert again.awaitTermination()
        assert differ(ids(again.results()), wanted) == ""
        assert merged(folder) == ["000000-000002.parquet"]
        assert differ(read(of_batches(folder, 0, 6)), wanted) == ""
        assert not [*folder.glob("new/*")]
        step += 1
    assert step > 10 and {"write", "replace", "fsync", "mkdir"} < set(done)


def test_a_roll_up_that_is_damaged_makes_the_same_files_again(run: Path) -> None:
    before = {name: (run / "merged" / name).read_bytes() for name in merged(run)}
    rolled = sorted(run.glob("commits/rolled-*"))
    rolled[-1].write_bytes(b"")
    store = Store(run)
    store.clean()
    assert merged(run) == sorted(before)[:2]
    store.begin()
    store._roll(store.log.unrolled()[-3].entry)
    assert {name: (run / "merged" / name).read_bytes() for name in merged(run)} == before


@pytest.mark.parametrize("gone", ["merged", "results"])
def test_damage_in_merged_results_is_found(run: Path, gone: str) -> None:
    file = run / "merged" / merged(run)[1] if gone == "merged" else Path(of_batches(run, 3, 6)[0])
    body = bytearray(file.read_bytes())
    body[len(body) // 3] ^= 1
    file.write_bytes(body)
    assert str(file) in check(run)[0][0] and "is damaged" in check(run)[0][0]
    file.unlink()
    sentence = f"{file} is missing" if gone == "merged" else "files of the batches 3 to 5"
    with pytest.raises(Damaged, match=sentence):
        StreamJoin.resume(run, STREAMS)


def test_a_result_file_is_held_against_its_seal_before_it_is_merged(tmp_path: Path) -> None:
    """So that damage is not sealed anew."""
    made = merging.Merging(tmp_path)
    for folder in (made.new, made.results):
        folder.mkdir()
    kept = []
    for batch in range(2):
        name = f"{batch:06d}-0-0000cafe.parquet"
        pq.write_table(pa.table({"x": [1]}), made.results / name)
        named = module.Named(name, Seal(*durable.seal(made.results / name, False)))
        kept.append(module.Kept(batch, batch, None, (named,)))
    (made.results / kept[1].results[0].name).write_bytes(b"PAR1")
    with pytest.raises(Damaged, match=r"000001-0-0000cafe.parquet is damaged: it has 4 bytes"):
        made.merge(kept, False)
