"""A driver that slept while another one took its run over changes none of the other's files.

It may have fallen asleep at any point.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
from braid.core.event_jsonl import decode_event
from braid.core.run_events import BatchCommitted
from braid.core.run_state import RunState
from braid.errors import FencedError
from braid.storage import entry_bundles, log_checkpointer, run_store
from braid.storage.durable_files import is_temporary
from braid.storage.integrity import check_run, repair_run
from braid.storage.run_files import is_run_file
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from oracle import compute_expected, describe_difference, killed_before, make_tables, result_ids
from scatter import Scatter
from world.files import Folder
from world.machine import URL, Machine, overtake
from world.sink import TransactionalSink

RUN, ON, BATCHES = Path("/run"), "a.k = b.k", 13
STREAMS = make_tables("ab", 56, seed=17, batches=BATCHES)
WANTED = compute_expected(STREAMS, ON)
EVERY = int(os.environ.get("BRAID_SLEEP_EVERY", "0"))
"""A driver sleeps before one in this number of file changes."""
CHANGES = {
    *("append", "close", "create", "link", "replace", "rmtree", "truncate", "unlink", "write"),
}
When = Callable[[Machine], bool]


def begin(place: Path | str = RUN, **more: Any) -> None:
    join = StreamJoin(STREAMS, ON, Scatter(), executor="process")
    run = join.start(place, batches="batch", durability="process", **more)
    assert run.awaitTermination()


def go_on() -> None:
    assert StreamJoin.resume(RUN, STREAMS, durability="process").awaitTermination()


def named(machine: Machine, place: Path | str) -> dict[str, bytes]:
    """Return the files of a run that a manifest names or may name later.

    A driver may leave other files, which the next one removes. In a bucket, a driver that does not
    know that it has lost the run may record the delivery of its own batch, so the next batches are
    delivered again.
    """
    found = machine.content(str(place)).items()
    left = {".lock"} if place == RUN else {"sink-progress.json"}
    return {n: body for n, body in found if not _may_be_left(n, place == URL) and n not in left}


def _may_be_left(name: str, is_object: bool) -> bool:
    folders = ("blocks/", "staging/", "commits/state-", *(["results/"] if is_object else []))
    file = name.rpartition("/")[2]
    return (name.startswith(folders) and is_run_file(file)) or is_temporary(file)


def sleeps(
    at: int | str,
    first: Callable[[], None],
    counts: When,
    second: Callable[[], None],
    prepare: Callable[[Machine], None] = lambda machine: None,
    machine: Machine | None = None,
    place: Path | str = RUN,
) -> str:
    """Make a driver sleep before a change, while a second one continues; check its later actions.

    The change is given by its number or by the prefix of its name. The files of the second driver
    must stay unchanged. Return the change before which it slept; "": none.
    """
    seen, counted = dict[str, bytes](), count()
    machine = machine or Machine()

    def is_now(operation: str, path: str) -> bool:
        change = f"{operation} {path.removeprefix(f'{place}/')}"
        if not counts(machine):
            return False
        if isinstance(at, str):
            return change.startswith(at)
        return operation in CHANGES and next(counted) == at

    def take_over() -> None:
        second()
        seen.update(named(machine, place))

    with machine.simulated():
        prepare(machine)
        slept, error = overtake(machine, first, take_over, is_now)
        lost = isinstance(error, FencedError) or "meanwhile" in str(error)
        assert error is None or (slept and lost), f"asleep before {slept}: {error!r}"
        if slept:
            left = named(machine, place)
            if " /run/events.jsonl" in slept:  # published after the check: it is delivered again
                del seen["events.jsonl"], left["events.jsonl"]
            changed = {n for n in seen.keys() | left.keys() if seen.get(n) != left.get(n)}
            gone = {n for n in changed if n.startswith("commits/") and n not in left}
            changed -= gone if place == RUN else set()  # it is rolled up
            assert not changed, f"asleep before {slept}: {sorted(changed)}"
            is_whole(machine, place)
    return slept


def is_whole(machine: Machine, place: Path | str) -> None:
    """Check that a third driver finds no fault, reports each batch once, and has all results."""
    run = StreamJoin.resume(place, STREAMS, durability="process")
    assert run.awaitTermination()
    assert (
        describe_difference(result_ids(run.results()), wanted_since(run.first_retained_batch)) == ""
    )
    assert check_run(place)[0] == []
    events = run.events()
    if place == RUN:
        events = [*map(decode_event, machine.content(str(RUN))["events.jsonl"].splitlines())]
    chosen_events = [e.batch for e in events if isinstance(e, BatchCommitted)]
    assert chosen_events == [*range(run.first_retained_batch, BATCHES)]


def wanted_since(first: int) -> Counter[tuple[int, ...]]:
    """Return the results completed by the batches from ``first`` on."""
    batch = [streams["batch"].to_pylist() for streams in STREAMS.values()]
    return Counter({r: n for r, n in WANTED.items() if max(map(getitem, batch, r)) >= first})


def now_and_then(
    first: Callable[[], None],
    counts: When,
    second: Callable[[], None],
    prepare: Callable[[Machine], None] = lambda machine: None,
) -> None:
    """Make a driver sleep before some of its changes in turn."""
    for at in range(EVERY // 2, 10_000, EVERY):
        if not sleeps(at, first, counts, second, prepare):
            assert at > EVERY // 2
            return
    raise AssertionError("it never ends")


def has_begun(machine: Machine, batch: int) -> bool:
    """Return whether a run has progressed to writing the state after a batch."""
    folder = machine.files.find(f"{RUN}/commits")
    names = {*folder.names} if isinstance(folder, Folder) else set[str]()
    names |= {name.removeprefix("commits/") for name in machine.stores[URL].objects}
    return any(int(name[6:12]) >= batch for name in names if name.startswith("state-"))


def is_late(machine: Machine) -> bool:
    """From the batch before Spark's log has all lines, up to the next roll-up."""
    return has_begun(machine, 8) and not has_begun(machine, 12)


def is_early(machine: Machine) -> bool:
    return not has_begun(machine, 1)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_checkpointer, "_EVERY", 3)
    monkeypatch.setattr(run_store, "_SWEEP_EVERY", 3)


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
    "replace staging/0",
    "replace commits/checkpoint",
    "unlink commits/0",
    "unlink commits/checkpoint",
    "link compacted/",
    "names staging",
    "unlink staging/0",
]


@pytest.mark.parametrize("change", COMMITS)
def test_asleep_in_a_commit(change: str) -> None:
    assert sleeps(change, begin, is_late, go_on)


KEPT = [
    "link compacted/",
    "replace commits/checkpoint",
    "replace events.jsonl",
    "replace results/_spark_metadata/",
    "unlink compacted/",
    "unlink results/0",
]


@pytest.mark.parametrize("change", KEPT)
def test_asleep_while_the_oldest_results_go(change: str) -> None:
    """With ``keep``: each roll-up drops results beyond it."""
    keep_some = partial(begin, keep="1 kB")
    assert sleeps(change, keep_some, is_late, keep_some)


DELIVERS = ["sink begin", "sink commit", "write .sink-progress.json", "replace sink-progress.json"]


@pytest.mark.parametrize("change", [*DELIVERS, "unlink commits/state", "link results/0"])
def test_asleep_while_a_sink_is_given_results(change: str) -> None:
    """With ``foreachBatch``: the sink receives each batch with the same rows, and none too
    early.
    """
    machine = Machine()
    sink = TransactionalSink(lambda operation: machine.step(operation, f"{RUN}/sink") < 1)
    give = partial(begin, foreachBatch=sink.give)
    assert sleeps(change, give, is_late, give, machine=machine)
    assert describe_difference(sum(sink.taken, Counter()), WANTED) == ""


REQUESTS = [
    "put blocks/",
    "put results/",
    "put commits/state",
    "put commits/0",
    "put commits/entries-",
    "size commits/0",
    "delete commits/state",
    "delete blocks/",
    "put sink-progress.json",
]


@pytest.mark.parametrize("change", REQUESTS)
def test_asleep_before_a_request_to_a_bucket(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also between the write of a manifest and the cleanup; with a sink."""
    monkeypatch.setattr(entry_bundles, "_TOGETHER", 5)
    machine = Machine()
    sink = TransactionalSink(lambda operation: machine.step(operation, "sink") < 1)
    give = partial(begin, URL, foreachBatch=sink.give)
    assert sleeps(change, give, is_late, give, machine=machine, place=URL)
    with machine.simulated():
        give()
    assert describe_difference(sum(sink.taken, Counter()), WANTED) == ""


BEGINS = [
    "write .run.json",
    "link run.json",
    "write commits/.0",
    "link commits/0",
    "unlink commits/.0",
    "replace input/a.arrow",
    "replace input/files.json",
    "replace run.json",
    "replace events.jsonl",
]


@pytest.mark.parametrize("change", BEGINS)
def test_asleep_while_it_begins(change: str) -> None:
    """Before its input is complete, another driver starts the same run."""
    assert sleeps(change, begin, is_early, begin)


def stop_early(machine: Machine) -> None:
    """Return a run whose driver was killed, with its tasks' leftover files."""
    with killed_before(10), pytest.raises(OSError, match="killed"):
        begin()
    for name in ("blocks/000007-0-0000cafe-0.arrow", "staging/000010-0-0000cafe.parquet"):
        machine.files.create(f"{RUN}/{name}")
    machine.files.create(f"{RUN}/results/_spark_metadata/77")


def is_before_its_end(machine: Machine) -> bool:
    return not has_begun(machine, 11)


@pytest.mark.parametrize(
    "change",
    [
        *(
            "link commits/0",
            "unlink staging/0",
            "unlink results/_spark_metadata/77",
            "unlink blocks/",
        ),
        *("replace events.jsonl", "append events.jsonl"),
    ],
)
def test_asleep_while_it_takes_over(change: str) -> None:
    assert sleeps(change, go_on, is_before_its_end, go_on, stop_early)


def back() -> None:
    """A repair goes back and a driver continues, so the log has other entries of the same
    numbers.
    """
    repair_run(RUN, RunStore(RUN).log.committed_batches()[-1] - 1)
    go_on()


@pytest.mark.parametrize(
    "change", [c for c in COMMITS if "spark" not in c and "checkpoint" not in c]
)
def test_asleep_while_a_repair_goes_back(change: str) -> None:
    assert sleeps(change, begin, is_late, back)


@pytest.mark.parametrize("goes_back_to", [-2, -1])
def test_asleep_at_any_change_of_a_repair(goes_back_to: int) -> None:
    """A repair to the batch before the last one, or to the beginning."""

    def repair() -> None:
        to = -1 if goes_back_to == -1 else RunStore(RUN).log.committed_batches()[goes_back_to]
        repair_run(RUN, to)

    for at in range(100):
        machine = Machine()
        sink = TransactionalSink(lambda operation: False)
        give = partial(begin, foreachBatch=sink.give)
        if not sleeps(at, repair, lambda machine: True, give, stop_early, machine=machine):
            assert at > 5
            return
    raise AssertionError("it never ends")


@pytest.mark.skipif(not EVERY, reason="BRAID_SLEEP_EVERY says how often")
@pytest.mark.parametrize("second", [go_on, back])
def test_asleep_at_any_change_of_a_commit(second: Callable[[], None]) -> None:
    now_and_then(begin, is_late, second)


@pytest.mark.skipif(not EVERY, reason="BRAID_SLEEP_EVERY says how often")
def test_asleep_at_any_change_while_it_begins() -> None:
    now_and_then(begin, is_early, begin)


@pytest.mark.skipif(not EVERY, reason="BRAID_SLEEP_EVERY says how often")
def test_asleep_at_any_change_while_it_takes_over() -> None:
    now_and_then(go_on, is_before_its_end, go_on, stop_early)


def test_lines_of_a_woken_driver_are_not_told_for_good(tmp_path: Path) -> None:
    """It slept between its check and its line; the driver of the run rewrites all lines."""
    run = StreamJoin(STREAMS, ON, Scatter()).start(tmp_path, batches="batch")
    assert run.awaitTermination()
    mine = RunStore(tmp_path)
    mine.log_opening_events([])
    line = (tmp_path / "events.jsonl").read_bytes().splitlines(keepends=True)[-1]
    with open(tmp_path / "events.jsonl", "ab") as file:
        file.write(line)
    before = mine.events.event_count
    mine.events.append_events(run.events()[:1])
    lines = (tmp_path / "events.jsonl").read_bytes().splitlines(keepends=True)
    assert lines.count(line) == 1 and len(lines) == before + 1 == mine.events.event_count
    assert [*mine.events.recent_events()] == [*map(decode_event, lines)]


def test_a_driver_whose_entries_were_cut_off_has_lost_the_run(tmp_path: Path) -> None:
    """A repair has gone back, and no driver has come as far since.

    The driver's next entry is free, and its last one is another driver's.
    """
    mine = RunStore(tmp_path)
    mine.create_run({})
    mine.take_over()
    for batch in range(2):
        mine.commit_batch(batch, mine.states.write_state(RunState(batch)), {}, [])
    other = RunStore(tmp_path)
    other.log.read_new_entries()
    other.log.truncate(1)
    other.take_over()
    with pytest.raises(FencedError, match=r"000002.json is no longer this driver's"):
        mine.log.check_fence()
    with pytest.raises(FencedError):
        mine.commit_batch(2, mine.states.write_state(RunState(2)), {}, [])
    assert RunStore(tmp_path).log.committed_batches() == [0]
