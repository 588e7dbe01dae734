"""A driver that slept while another one took its run over changes nothing that the other has made,
wherever it fell asleep.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from braid.core.events import BatchCommitted
from braid.core.jsonl import event_of, read
from braid.core.state import State
from braid.engine import rolling
from braid.engine.check import check, repair
from braid.engine.log import Superseded
from braid.engine.store import Store
from braid.join import StreamJoin
from oracle import differ, expected, ids, killed_before, tables
from scatter import Scatter
from sleeping import Sleeping, named, sleeping

ON, BATCHES = "a.k = b.k", 13
STREAMS = tables("ab", 56, seed=17, batches=BATCHES)
WANTED = expected(STREAMS, ON)
EVERY = int(os.environ.get("BRAID_SLEEP_EVERY", "0"))
"""A driver also sleeps before one in this number of file changes."""


def begin(folder: Path, **more: Any) -> None:
    join = StreamJoin(STREAMS, ON, Scatter(), executor="process")
    run = join.start(folder, batches="batch", durability="process", **more)
    assert run.awaitTermination()


def go_on(folder: Path, **more: Any) -> None:
    assert StreamJoin.resume(folder, STREAMS, durability="process", **more).awaitTermination()


def take_over(folder: Path, then: Callable[[Path], None], seen: dict[str, bytes]) -> None:
    """Another driver runs to the end, and notes what the run's files are then."""
    (folder / ".lock").unlink(missing_ok=True)
    then(folder)
    seen |= named(folder)


def sleeps(
    folder: Path,
    at: int | str,
    first: Callable[[Path], None],
    counts: Callable[[Path], bool],
    second: Callable[[Path], None],
) -> str:
    """Have a driver sleep before a change while a second one goes on, and hold what it does then
    against what that one has left. Returns before which change it slept; "": none.
    """
    seen = dict[str, bytes]()
    meanwhile = partial(take_over, folder, second, seen)
    disk = Sleeping(folder, at, meanwhile, partial(counts, folder))
    with sleeping(disk):
        try:
            first(folder)
        except (RuntimeError, ValueError, OSError) as error:
            lost = isinstance(error, Superseded) or "meanwhile" in str(error)
            assert lost, f"asleep before {disk.slept_at}: {error!r}"
    if disk.slept_at:
        left = named(folder)
        if " events.jsonl" in disk.slept_at:  # in place, after the check: it is told anew
            del seen["events.jsonl"], left["events.jsonl"]
        changed = {n for n in seen.keys() | left.keys() if seen.get(n) != left.get(n)}
        changed -= {n for n in changed if n.startswith("commits/") and n not in left}  # rolled up
        assert not changed, f"asleep before {disk.slept_at}: {sorted(changed)}"
        is_whole(folder)
    return disk.slept_at


def is_whole(folder: Path) -> None:
    """A third driver finds nothing amiss, tells each batch once, and has all results."""
    run = StreamJoin.resume(folder, STREAMS, durability="process")
    assert run.awaitTermination() and differ(ids(run.results()), WANTED) == ""
    assert check(folder)[0] == []
    told = [e.batch for e in read(folder / "events.jsonl") if isinstance(e, BatchCommitted)]
    assert told == [*range(BATCHES)]


def now_and_then(
    folder: Path,
    first: Callable[[Path], None],
    counts: Callable[[Path], bool],
    second: Callable[[Path], None],
    prepare: Callable[[Path], None] = lambda folder: None,
) -> None:
    """Have a driver sleep before some of its changes in turn."""
    for at in range(EVERY // 2, 10_000, EVERY):
        run = folder / str(at)
        prepare(run)
        if not sleeps(run, at, first, counts, second):
            assert at > EVERY // 2
            return
        shutil.rmtree(run)
    raise AssertionError("it never ends")


def begun(run: Path, batch: int) -> bool:
    """Whether a run has come so far that it writes the state after a batch."""
    return any(int(file.name[6:12]) >= batch for file in run.glob("commits/state-*"))


def late(run: Path) -> bool:
    """Before the batch with which Spark's log has all lines, up to the next roll-up."""
    return begun(run, 8) and not begun(run, 12)


def early(run: Path) -> bool:
    return not begun(run, 1)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling, "_EVERY", 3)


COMMITS = [
    "write commits/.0",
    "link commits/0",
    "unlink commits/.0",
    "link results/0",
    "write results/_spark_metadata/.9",
    "replace results/_spark_metadata/9",
    "unlink commits/state",
    "names blocks",
    "unlink blocks/",
    "append events.jsonl",
    "replace new/0",
    "replace commits/rolled",
    "unlink commits/0",
    "unlink commits/rolled",
    "link merged/",
]


@pytest.mark.parametrize("change", COMMITS)
def test_asleep_in_a_commit(tmp_path: Path, change: str) -> None:
    assert sleeps(tmp_path / "run", change, begin, late, go_on)


BEGINS = [
    "write .run.json",
    "link run.json",
    "write commits/.0",
    "link commits/0",
    "unlink commits/.0",
    "replace input/a.arrow",
    "replace input/files.json",
    "replace run.json",
    "append input/a/",
    "unlink input/a.arrow",
    "replace events.jsonl",
]


@pytest.mark.parametrize("change", BEGINS)
def test_asleep_while_it_begins(tmp_path: Path, change: str) -> None:
    """Before its input is whole, another one begins the same run."""
    assert sleeps(tmp_path / "run", change, begin, early, begin)


def stopped(run: Path) -> None:
    """A run whose driver was killed, with what its tasks have left."""
    with killed_before(10), pytest.raises(OSError, match="killed"):
        begin(run)
    for name in ("blocks/000007-0-0000cafe-0.arrow", "new/000010-0-0000cafe.parquet"):
        (run / name).touch()
    (run / "results" / "_spark_metadata" / "77").touch()


@pytest.mark.parametrize(
    "change",
    [
        *("link commits/0", "unlink new/0", "unlink results/_spark_metadata/77", "unlink blocks/"),
        *("replace events.jsonl", "append events.jsonl"),
    ],
)
def test_asleep_while_it_takes_over(tmp_path: Path, change: str) -> None:
    stopped(tmp_path / "run")
    assert sleeps(tmp_path / "run", change, go_on, lambda run: not begun(run, 11), go_on)


def back(run: Path) -> None:
    """A repair goes back, and a driver goes on: the log has other entries of the same numbers."""
    repair(run, Store(run).committed()[-1] - 1)
    go_on(run)


@pytest.mark.parametrize("change", [c for c in COMMITS if "spark" not in c and "rolled" not in c])
def test_asleep_while_a_repair_goes_back(tmp_path: Path, change: str) -> None:
    assert sleeps(tmp_path / "run", change, begin, late, back)


@pytest.mark.skipif(not EVERY, reason="BRAID_SLEEP_EVERY says how often")
@pytest.mark.parametrize("second", [go_on, back])
def test_asleep_at_any_change_of_a_commit(tmp_path: Path, second: Callable[[Path], None]) -> None:
    now_and_then(tmp_path, begin, late, second)


@pytest.mark.skipif(not EVERY, reason="BRAID_SLEEP_EVERY says how often")
def test_asleep_at_any_change_while_it_begins(tmp_path: Path) -> None:
    now_and_then(tmp_path, begin, early, begin)


@pytest.mark.skipif(not EVERY, reason="BRAID_SLEEP_EVERY says how often")
def test_asleep_at_any_change_while_it_takes_over(tmp_path: Path) -> None:
    now_and_then(tmp_path, go_on, lambda run: not begun(run, 11), go_on, stopped)


def test_lines_of_a_woken_driver_are_not_told_for_good(tmp_path: Path) -> None:
    """It slept between its check and its line: the driver of the run writes all lines again."""
    run = StreamJoin(STREAMS, ON, Scatter()).start(tmp_path, batches="batch")
    assert run.awaitTermination()
    store = Store(tmp_path)
    store.begin([])
    line = (tmp_path / "events.jsonl").read_bytes().splitlines(keepends=True)[-1]
    with open(tmp_path / "events.jsonl", "ab") as file:
        file.write(line)
    before = store.told.count
    store.told.append(run.events()[:1])
    lines = (tmp_path / "events.jsonl").read_bytes().splitlines(keepends=True)
    assert lines.count(line) == 1 and len(lines) == before + 1 == store.told.count
    assert [*store.told.recent()] == [*map(event_of, lines)]


def test_a_driver_whose_entries_were_cut_off_has_lost_the_run(tmp_path: Path) -> None:
    """A repair has gone back, and nobody has come as far as the driver had: its next entry is free,
    and its last one is another's.
    """
    mine = Store(tmp_path)
    mine.create({})
    mine.take_over()
    for batch in range(2):
        mine.commit(batch, mine.snapshot(State(batch)), {}, [])
    other = Store(tmp_path)
    other.log.refresh()
    other.log.cut(1)
    other.take_over()
    with pytest.raises(Superseded, match=r"000002.json is no longer this driver's"):
        mine.log.check()
    with pytest.raises(Superseded):
        mine.commit(2, mine.snapshot(State(2)), {}, [])
    assert Store(tmp_path).committed() == [0]
