"""The log of a hub: one driver appends, answers are pinned, and no kill loses or doubles anything."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from braid.errors import DamagedRunError, FencedError
from braid.hub.hub import QueryHub
from braid.hub.hub_log import HubLog
from braid.hub.hub_run import HubRun
from braid.papers.reuse.hub_events import HubBatchCommitted
from braid.storage import durable_files, event_log, log_checkpointer
from braid.storage.durable_files import is_temporary
from braid.storage.hub_files import open_operator
from braid.storage.integrity import check_run, repair_run
from braid.storage.manifest_log import is_run_file
from damages import list_files
from hub_cases import (
    BATCHES,
    LONG,
    NARROW,
    WIDE,
    SteppedHub,
    expect_rows,
    make_hub_tables,
    query_rows,
    stored_state,
)
from world.cuts import CHANGES, PowerCut
from world.files import Files
from world.machine import Machine, overtake

pytestmark = pytest.mark.unit

RUN, DATA = Path("/run"), make_hub_tables(1)
BATCH = 4
"""The batch in which drivers are killed or fall asleep."""


ASKED = {"wide": WIDE, "narrow": NARROW.replace("num", "id")}
LONGER = WIDE.replace("90 SECONDS", "100 SECONDS")


def change_queries(run: HubRun) -> None:
    """Make a hub drop an operator, and replace another by one that it builds."""
    run.withdraw("narrow")
    run.submit(LONGER, "longer")


def run_hub(folder: Path, **more: Any) -> HubRun:
    run = QueryHub(DATA, "ts", history="1 hour").start(folder, "batch", **more)
    run.awaitTermination()
    return run


def assert_right(folder: Path) -> None:
    """Check a hub that goes on: its answers, its events, and its files."""
    run = run_hub(folder)
    assert query_rows(run, "wide") == expect_rows(DATA, WIDE)
    if any(q.name == "longer" for q in run.state.queries):
        assert query_rows(run, "longer") == expect_rows(DATA, LONGER, BATCH)
    assert [e.epoch for e in run.events() if isinstance(e, HubBatchCommitted)] == [*range(BATCHES)]
    assert check_run(folder)[0] == []


def step_to(hub: SteppedHub, batch: int) -> SteppedHub:
    while hub.registry.ledger.epoch < batch:
        hub.step()
    return hub


class _Kill(PowerCut):
    """A kill, which loses nothing that was written."""

    def choice(self, seq: Any) -> Any:
        return "all"


def test_a_hub_that_is_killed_before_any_change_of_a_file_answers_as_duckdb() -> None:
    """Also of its operators: it drops one, and replaces another by one that it builds."""
    machine, left, epochs = Machine(), dict[tuple[Any, ...], Files](), list[int]()
    real = HubRun._join_batch

    def join(run: HubRun, source: Any, epoch: int) -> None:
        epochs.append(epoch)
        if epoch == BATCH:
            change_queries(run)
        real(run, source, epoch)

    def before(operation: str, path: str) -> None:
        if operation in CHANGES and epochs and epochs[-1] == BATCH:
            files = machine.files.copy_after_cut(_Kill(True))
            left.setdefault(tuple((path, node.content) for path, node in files.walk()), files)

    machine.before = before
    with machine.simulated(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(HubRun, "_join_batch", join)
        run_hub(RUN, queries=ASKED)
    assert len(left) > 60
    for files in left.values():
        with Machine(files).simulated():
            assert_right(RUN)


CHANGED = [
    *(
        "create history/",
        "write commits/state-",
        "sync commits",
        "write commits/.",
        "link commits/",
    ),
    *("unlink commits/.", "append events.jsonl", "close history/", "unlink commits/state-"),
    *("write operators/0000-001", "link operators/", "unlink operators/", "append operators/"),
    *("mkdir operators/", "rmtree operators/"),
]


@pytest.mark.parametrize("change", CHANGED)
def test_of_two_drivers_the_first_is_fenced_and_changes_nothing_when_it_wakes(change: str) -> None:
    """It sleeps before a change in a batch, before which it drops an operator and builds one."""
    machine, epochs = Machine(), list[int]()
    real = HubRun._join_batch

    def join(run: HubRun, source: Any, epoch: int) -> None:
        epochs.append(epoch)
        if epochs == [*range(BATCH + 1)]:
            change_queries(run)
        real(run, source, epoch)

    def first() -> None:
        run_hub(RUN, queries=ASKED)

    def is_now(operation: str, path: str) -> bool:
        step = f"{operation} {path.removeprefix(f'{RUN}/')}"
        return len(epochs) == BATCH + 1 and step.startswith(change)

    with machine.simulated(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(HubRun, "_join_batch", join)
        assert_fenced(machine, first, is_now)


@pytest.mark.parametrize(
    "step",
    ["sync 0", "write 0", "link 0", "unlink 0", "append 0", "replace 0", "is_folder 1", "link 1"],
)
def test_a_driver_that_sleeps_while_it_opens_operators_takes_nothing_from_the_next(
    step: str,
) -> None:
    """The operators are ahead of the hub, since the driver before was killed between the two."""
    machine = Machine()

    def before(operation: str, path: str) -> None:
        if operation == "link" and path == f"{RUN}/commits/000007.json":
            raise OSError("killed")

    machine.before = before
    with machine.simulated():
        with pytest.raises(OSError, match="killed"):
            run_hub(RUN, queries=ASKED)
        assert_fenced(
            machine,
            lambda: run_hub(RUN),
            lambda *made: " ".join(made).startswith(step.replace(" ", f" {RUN}/operators/000")),
        )


def assert_fenced(
    machine: Machine, first: Callable[[], Any], is_now: Callable[[str, str], bool]
) -> None:
    """Check that a driver that sleeps while another one goes on changes nothing when it wakes."""
    seen = dict[str, bytes]()

    def second() -> None:
        run_hub(RUN)
        seen.update(named_files(machine))

    slept, error = overtake(machine, first, second, is_now)
    assert slept, "it never came to this change"
    assert isinstance(error, FencedError), f"asleep before {slept}: {error!r}"
    assert re.fullmatch(r"[^\n]+ has taken over the run in /run\S*; this driver stops", f"{error}")
    after = named_files(machine)
    changed = {n for n in seen | after if seen.get(n) != after.get(n) and not _is_left(n, seen)}
    if "events.jsonl" in slept:  # it has passed the check; the next start rewrites the file
        changed = {name for name in changed if not name.endswith("events.jsonl")}
    assert not changed, f"asleep before {slept}: {sorted(changed)}"
    assert_right(RUN)


def _is_left(name: str, seen: Mapping[str, bytes]) -> bool:
    """Return whether a file is new and has a name of its own, so that the next start removes it."""
    return name not in seen and (is_run_file(Path(name).name) or is_temporary(Path(name).name))


def named_files(machine: Machine) -> dict[str, bytes]:
    """Return the files of a hub that a commit names or may name later."""
    state = stored_state(RUN)
    assert state is not None
    operators = tuple(f"operators/{pin.folder}/" for pin in state.operators.values())
    history = {f"history/{f.name}" for files in state.backfill_batches.values() for f in files}
    return {
        name: body
        for name, body in machine.content(str(RUN)).items()
        if (name.startswith(operators) or not name.startswith("operators/"))
        and (name in history or not name.startswith("history/"))
        and name != ".lock"
    }


def test_the_second_of_two_drivers_that_append_an_entry_is_refused(tmp_path: Path) -> None:
    one = step_to(SteppedHub(tmp_path, DATA), -1)
    one.submit(WIDE, "wide")
    step_to(one, 1)
    two = SteppedHub(tmp_path, DATA)
    for act in (
        one.step,
        lambda: one.submit(LONG, "late"),
        lambda: one.registry.withdraw_query("wide"),
    ):
        with pytest.raises(FencedError, match=r"has taken over the run in \S+; this driver stops"):
            act()
    step_to(two, BATCHES - 1)
    assert [q.name for q in two.registry.ledger.queries] == ["wide"]
    assert two.answered("wide") == expect_rows(DATA, WIDE)


def test_an_operator_ahead_of_its_pin_goes_back_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver is killed after the commits of the operators and before that of the hub."""
    hub = SteppedHub(tmp_path, DATA)
    hub.submit(WIDE, "wide")
    step_to(hub, 2)
    pins = hub.registry.ledger.operators
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(HubLog, "append_state", lambda *_: _interrupt())
        hub.step()
    (pin,) = pins.values()
    ahead = open_operator(tmp_path, pin)
    assert ahead.log.committed_batches()[-1] == pin.batch + 1
    again = SteppedHub(tmp_path, DATA)
    assert again.registry.ledger.operators == pins
    assert open_operator(tmp_path, pin).log.committed_batches()[-1] == pin.batch
    assert step_to(again, BATCHES - 1).answered("wide") == expect_rows(DATA, WIDE)


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_an_operator_of_another_hub_is_not_taken_for_the_one_that_a_pin_names(
    tmp_path: Path,
) -> None:
    """Its log is intact, and its tuples are others."""
    hubs = [SteppedHub(tmp_path / f"{seed}", make_hub_tables(seed)) for seed in (1, 2)]
    folders = []
    for hub in hubs:
        hub.submit(WIDE, "wide")
        step_to(hub, 3)
        (pin,) = hub.registry.ledger.operators.values()
        folders.append(hub.registry.path / "operators" / pin.folder)
    shutil.rmtree(folders[0])
    shutil.copytree(folders[1], folders[0])
    asked = [hubs[0].answered, lambda _: SteppedHub(tmp_path / "1", make_hub_tables(1))]
    for ask in asked:
        refused = _catch(ask, "wide")
        assert isinstance(refused, DamagedRunError), "an answer of other tuples"
        assert f"{folders[0]}/commits/" in str(refused) and "is damaged: its" in str(refused)
    assert "the answer to 'wide' needs it" in str(_catch(hubs[0].answered, "wide"))


def _catch(ask: Callable[[str], Any], name: str) -> BaseException | None:
    try:
        ask(name)
    except DamagedRunError as damaged:
        return damaged
    return None


def test_files_of_the_backfill_buffer_are_on_disk_before_the_entry_that_names_them() -> None:
    machine, checked = Machine(), list[str]()

    def before(operation: str, path: str) -> None:
        if operation != "link" or not path.startswith(f"{RUN}/commits/"):
            return
        newest = max(machine.content(f"{RUN}/commits"), key=lambda n: (n.startswith("state-"), n))
        done = [step for step in machine.steps if step[0] in ("force", "sync")]
        for name in machine.content(f"{RUN}/history"):
            assert ("force", f"{RUN}/history/{name}") in done, "a file of the buffer"
            checked.append(name)
        assert not newest.startswith("state-") or ("force", f"{RUN}/commits/{newest}") in done
        if checked:
            assert ("sync", f"{RUN}/history") in done and ("sync", f"{RUN}/commits") in done

    machine.before = before
    with machine.simulated():
        run_hub(RUN, queries={"wide": WIDE})
    assert len(checked) > 6


def test_nothing_is_removed_unless_the_last_entry_verifies(tmp_path: Path) -> None:
    hub = SteppedHub(tmp_path, DATA)
    hub.submit(WIDE, "wide")
    step_to(hub, 2)
    state = max((tmp_path / "commits").glob("state-*.json"))
    body = state.read_bytes()
    before = {*list_files(tmp_path)}
    state.write_bytes(body.replace(b'"epoch":2', b'"epoch":1', 1))
    with pytest.raises(DamagedRunError, match=f"{state.name} is damaged: its checksum is"):
        SteppedHub(tmp_path, DATA)
    assert before <= {*list_files(tmp_path)}, "files were removed"
    state.write_bytes(body)
    assert step_to(SteppedHub(tmp_path, DATA), BATCHES - 1).answered("wide") == expect_rows(
        DATA, WIDE
    )


@pytest.mark.parametrize("back", [1, None])
def test_a_hub_goes_back_by_a_commit_or_to_its_beginning(tmp_path: Path, back: int | None) -> None:
    run = run_hub(tmp_path, queries={"wide": WIDE, "long": LONG})
    last = run.store.log.batch_count - 1
    with pytest.raises(ValueError, match=f"it can to 0, {last}, {last + 1}$"):
        repair_run(tmp_path, 0)
    repair_run(tmp_path, -1 if back is None else last - back)
    again = run_hub(tmp_path, queries={"wide": WIDE, "long": LONG})
    for name, sql in (("wide", WIDE), ("long", LONG)):
        assert query_rows(again, name) == expect_rows(DATA, sql), name
    assert check_run(tmp_path)[0] == []


def test_files_of_a_user_in_the_folder_of_a_hub_remain(tmp_path: Path) -> None:
    run_hub(tmp_path, queries={"wide": WIDE})
    folders = ("history", "operators", "blocks", "results", "commits", "input")
    mine = [tmp_path / folder / "notes.txt" for folder in folders]
    left = [
        tmp_path / "history" / "000001-flights-0000cafe.parquet",
        tmp_path / "operators" / "0007-000-0000cafe",
    ]
    for file in [*mine, *left]:
        file.parent.mkdir(exist_ok=True)
        file.touch()
    run_hub(tmp_path)
    assert [file.exists() for file in mine] == [True] * len(mine)
    assert [file.exists() for file in left] == [False, False]


def test_an_old_hub_refuses_queries_that_it_was_not_asked(tmp_path: Path) -> None:
    run_hub(tmp_path, queries={"wide": WIDE, "long": {"sql": LONG}})
    run_hub(tmp_path, queries={"wide": WIDE, "long": LONG})
    run_hub(tmp_path)
    refused: dict[str, dict[str, Any]] = {
        "holds a hub with another query 'wide': sql is ": {"wide": LONG},
        "holds a hub with another query 'wide': lifetime is None there and ": {
            "wide": {"sql": WIDE, "lifetime": "1 hour"}
        },
        "has not been asked query 'new'; start it without": {"wide": WIDE, "new": LONG},
        "nonsense": {"wide": "nonsense"},
    }
    for sentence, queries in refused.items():
        with pytest.raises(ValueError, match=sentence):
            run_hub(tmp_path, queries=queries)


def test_the_log_of_a_hub_is_put_into_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_checkpointer, "_EVERY", 3)
    hub = SteppedHub(tmp_path, DATA)
    hub.submit(WIDE, "wide")
    step_to(hub, 3)
    again = SteppedHub(tmp_path, DATA)
    assert again.registry.log.store.log.checkpoint is not None
    assert again.registry.log.store.events.read_since(
        0
    ) == hub.registry.log.store.events.read_since(0)
    assert step_to(again, BATCHES - 1).answered("wide") == expect_rows(DATA, WIDE)
    assert len([*(tmp_path / "commits").glob("[0-9]*.json")]) < BATCHES + 4
    assert len([*(tmp_path / "commits").glob("state-*.json")]) == 2


def test_new_events_cost_what_is_new_however_long_the_log_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of thousands of events, a poll decodes those that are new, and reads no more bytes."""
    log = event_log.EventLog(tmp_path / "events.jsonl")
    log.begin_log([])
    event = HubBatchCommitted(0, {}, {}, (), (), 0.0, 0.0)
    for _ in range(40):
        log.append_events([event] * 100)
    decoded, real = list[bytes](), event_log.decode_event

    def count(line: bytes, *source: object) -> Any:
        decoded.append(line)
        return real(line, *source)

    monkeypatch.setattr(event_log, "decode_event", count)
    assert log.read_since(4000) == [] and log.read_since(3998) == [event] * 2
    assert decoded == [], "recent events are in memory"
    reopened = event_log.EventLog(log.path)
    reopened.open_prefix(log.describe_prefix(None, 4000, log.size_bytes))
    assert reopened.read_since(3998) == [event] * 2 and len(decoded) == 2
    assert reopened.read_since(4000) == [] and len(decoded) == 2


def test_a_hub_whose_entry_may_not_be_on_disk_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forcing the entry's name to disk fails. The entry holds, if no power cut takes it."""
    hub, real = SteppedHub(tmp_path, DATA), durable_files.fsync_path
    calls = iter([False, True])

    def fail_once(path: Path) -> None:
        if path == tmp_path / "commits" and next(calls, False):
            raise OSError("disk error")
        real(path)

    monkeypatch.setattr(durable_files, "fsync_path", fail_once)
    with pytest.raises(OSError, match="disk error"):
        hub.submit(WIDE, "wide")
    for act in (hub.step, lambda: hub.submit(WIDE, "wide")):
        with pytest.raises(RuntimeError, match="was appended, but may not be on disk; start again"):
            act()
    again = SteppedHub(tmp_path, DATA)
    assert step_to(again, BATCHES - 1).answered("wide") == expect_rows(DATA, WIDE)
