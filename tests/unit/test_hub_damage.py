"""A hub with damaged files answers correctly or names the damaged file in a sentence."""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from braid.health import read_health
from braid.hub.hub import QueryHub
from braid.hub.hub_run import HubRun
from braid.papers.reuse.hub_events import HistoryLost, HubBatchCommitted, HubStarted, QuerySubmitted
from braid.storage import event_log
from braid.storage.integrity import check_run, repair_run
from braid.util.batch_numbers import read_batch_number
from damages import DAMAGES, flip_a_bit, list_files, remove_file
from hub_cases import (
    BATCHES,
    LONG,
    THREE,
    TICKED,
    WIDE,
    end_of_ticks,
    expect_rows,
    make_hub_tables,
    query_rows,
)

pytestmark = pytest.mark.unit

DATA = make_hub_tables(1)
ASKED = {"wide": WIDE, "three": THREE, "ticked": TICKED}
LATE = LONG.replace("f.terminal = 'C'", "c.seats > 0")
"""A query that no operator answers: one is built from history."""


def start_hub(folder: Path, **more: Any) -> HubRun:
    hub = QueryHub(DATA, "ts", history="1 hour")
    return hub.start(folder, "batch", **more)


def take_one_batch(folder: Path, act: Callable[[HubRun], Any] = lambda _: None, **more: Any) -> Any:
    """Start a hub, and stop it after one committed batch and an action."""
    run = start_hub(folder, pace=3600, **more)
    try:
        while run.isActive and not run.seconds:
            Event().wait(0.002)
        return act(run)
    finally:
        run.stop()
        if run.exception() is not None or (run._error and "was stopped" not in str(run._error)):
            raise run._error


@pytest.fixture(scope="module")
def halfway(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a hub that was stopped after half of its batches."""
    folder = tmp_path_factory.mktemp("halfway") / "hub"
    take_one_batch(folder, queries=ASKED)
    for _ in range(BATCHES // 2 - 1):
        take_one_batch(folder)
    return folder


@cache
def expect_answer(name: str) -> Counter[Any]:
    return expect_rows(DATA, ASKED[name], until=end_of_ticks(DATA, ASKED[name]))


def assert_right_answers(run: HubRun) -> None:
    for name in ASKED:
        assert query_rows(run, name) == expect_answer(name), name
    batches = [e.epoch for e in run.events() if isinstance(e, HubBatchCommitted)]
    assert batches == [*range(BATCHES)]
    assert isinstance(run.events()[0], HubStarted)


def assert_right_late_answer(run: HubRun) -> str:
    """Check the late query's answer; return whether it is declared incomplete."""
    submitted = [e for e in run.events() if isinstance(e, QuerySubmitted) and e.name == "late"]
    first, complete = submitted[0].epoch + 1, run.query("late").complete_since
    found = query_rows(run, "late")
    assert not found - expect_rows(DATA, LATE, first)
    assert not expect_rows(DATA, LATE, first, complete=complete) - found
    lost = [e for e in run.events() if isinstance(e, HistoryLost)]
    assert bool(lost) == any(t is not None for t in complete.values())
    assert all("is missing" in e.reason or "is damaged" in e.reason for e in lost)
    return "flagged" if lost else "right"


def judge_resume(folder: Path) -> str:
    """Return how a hub resumes in a folder: right, refused or flagged."""
    try:
        take_one_batch(folder, lambda run: run.submit(LATE, "late"))
        run = start_hub(folder)
        run.awaitTermination()
        assert_right_answers(run)
        return assert_right_late_answer(run)
    except (ValueError, RuntimeError) as error:
        said = str(error)
        assert str(folder) in said and "\n" not in said, said
        return "refused"


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_hub_that_goes_on_with_a_damaged_file_is_right_or_says_so(
    halfway: Path, tmp_path: Path, damage: str
) -> None:
    """One of four files, different ones by damage: with the next test, more than 200 damages."""
    rng, verdicts = random.Random(damage), Counter[str]()
    some = list_files(halfway)[[*DAMAGES].index(damage) :: 4]
    for n, name in enumerate(some):
        folder = tmp_path / str(n)
        shutil.copytree(halfway, folder)
        DAMAGES[damage](folder / name, rng)
        verdicts[judge_resume(folder)] += 1
        shutil.rmtree(folder)
    assert verdicts["refused"] > len(some) / 4, verdicts


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_live_handle_of_a_damaged_hub_is_right_or_says_so(
    halfway: Path, tmp_path: Path, damage: str
) -> None:
    folder, rng = tmp_path / "hub", random.Random(damage)
    shutil.copytree(halfway, folder)
    run, refused = start_hub(folder), 0
    run.awaitTermination()
    files = [f for f in list_files(folder) if f.parts[0] == "operators"]
    for name in files[[*DAMAGES].index(damage) % 2 :: 2]:
        body = (folder / name).read_bytes()
        DAMAGES[damage](folder / name, rng)
        for query in ASKED:
            try:
                assert query_rows(run, query) == expect_answer(query), f"{damage} of {name}"
            except ValueError as error:
                assert str(folder) in str(error) and "\n" not in str(error)
                refused += 1
        (folder / name).write_bytes(body)
    assert refused > 3
    assert_right_answers(run)


def last_entry(folder: Path) -> Path:
    """Return the entry of the last commit of a hub. Entries after it are starts of drivers."""
    entries = sorted((folder / "commits").glob("[0-9]*.json"))
    return next(e for e in entries[::-1] if b'"state":' in e.read_bytes())


@pytest.mark.parametrize("lost", ["commits", "entries"])
def test_a_hub_without_its_log_is_refused_and_nothing_is_removed(
    halfway: Path, tmp_path: Path, lost: str
) -> None:
    folder = tmp_path / "hub"
    shutil.copytree(halfway, folder)
    if lost == "commits":
        shutil.rmtree(folder / "commits")
    else:
        for file in (folder / "commits").glob("[0-9]*.json"):
            file.unlink()
    before = list_files(folder)
    assert any(f.parts[0] == "operators" for f in before)
    with pytest.raises(ValueError, match=r"commits has no commit, without which the hub in"):
        start_hub(folder)
    assert list_files(folder) == before


@pytest.mark.parametrize("what", ["entry", "state"])
def test_a_damaged_last_commit_is_refused_by_one_sentence_and_nothing_is_removed(
    halfway: Path, tmp_path: Path, what: str
) -> None:
    """The sentence names the command that goes back by one change, and then all is right."""
    folder = tmp_path / "hub"
    shutil.copytree(halfway, folder)
    file = last_entry(folder)
    if what == "state":
        file = max((folder / "commits").glob("state-*.json"))
    file.write_text(file.read_text().replace('"epoch":2', '"epoch":1', 1))
    before = {*list_files(folder)}
    for ask in (start_hub, read_health):
        with pytest.raises(ValueError, match=rf"{file.name} is damaged: its ") as refused:
            ask(folder)
        assert "\n" not in str(refused.value)
    assert before <= {*list_files(folder)}
    offered = re.search(r"`braid repair \S+ --to-batch (\d+)` goes back", check_hint(folder))
    assert offered is not None
    repair_run(folder, read_batch_number(int(offered[1])))
    take_one_batch(folder)
    run = start_hub(folder)
    run.awaitTermination()
    assert_right_answers(run)


def check_hint(folder: Path) -> str:
    """Return the advice of a start that is refused."""
    with pytest.raises(ValueError) as refused:
        start_hub(folder)
    return str(refused.value)


def test_a_bit_that_flips_in_a_result_file_is_no_answer(halfway: Path, tmp_path: Path) -> None:
    """The file keeps its length, and most bits change only a value."""
    folder = tmp_path / "hub"
    shutil.copytree(halfway, folder)
    run = start_hub(folder)
    run.awaitTermination()
    rng, files = random.Random(3), sorted((folder / "operators").glob("*/results/*.parquet"))
    for file in rng.sample(files, 6):
        body = file.read_bytes()
        flip_a_bit(file, rng)
        named = re.escape(str(file))
        with pytest.raises(ValueError, match=f"^{named} is damaged: its checksum is"):
            for name in ASKED:
                run.query(name).results()
        file.write_bytes(body)
    assert_right_answers(run)


def test_an_operator_whose_last_commit_is_lost_is_not_taken_for_one_that_found_nothing(
    halfway: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "hub"
    shutil.copytree(halfway, folder)
    run = start_hub(folder)
    run.awaitTermination()
    log = min((folder / "operators").glob("*/commits"))
    max(log.glob("[0-9]*.json")).unlink()
    said = rf"{re.escape(str(log))}/\d+\.json is missing"
    with pytest.raises(ValueError, match=said):
        for name in ASKED:
            run.query(name).results()
    with pytest.raises(ValueError, match=said):
        start_hub(folder)


@pytest.mark.parametrize("stream", ["flights", "checkins"])
def test_lost_history_costs_the_completeness_of_queries_that_need_it_and_no_other(
    halfway: Path, tmp_path: Path, stream: str
) -> None:
    folder = tmp_path / "hub"
    shutil.copytree(halfway, folder)
    (file,) = (folder / "history").glob(f"000001-{stream}-*.parquet")
    flip_a_bit(file, random.Random(4))

    def submit(run: HubRun) -> None:
        assert all(t is None for t in run.query("wide").complete_since.values())
        complete = run.submit(LATE, "late").complete_since
        other = ({"flights", "checkins"} - {stream}).pop()
        assert complete[stream] is not None and complete[other] is None
        (lost,) = [e for e in run.events() if isinstance(e, HistoryLost)]
        assert (lost.stream, lost.batch, lost.since) == (stream, 1, complete[stream])
        assert f"{file.name} is damaged: its checksum is" in lost.reason
        assert all(t is None for t in run.query("three").complete_since.values())

    take_one_batch(folder, submit)
    run = start_hub(folder)
    run.awaitTermination()
    assert_right_answers(run)
    assert assert_right_late_answer(run) == "flagged"


def test_lost_history_is_said_of_a_query_whose_operator_is_built_anew(
    halfway: Path, tmp_path: Path
) -> None:
    """WIDE is served by an operator that is relaxed for longer windows."""
    folder = tmp_path / "hub"
    shutil.copytree(halfway, folder)
    for file in (folder / "history").glob("*-flights-*.parquet"):
        remove_file(file, random.Random(0))
    longer = WIDE.replace("90 SECONDS", "100 SECONDS")

    def submit(run: HubRun) -> dict[str, int | None]:
        assert run.submit(longer, "longer").reuse_kind == "relaxed"
        return run.query("wide").complete_since

    complete = take_one_batch(folder, submit)
    assert complete["flights"] is not None and complete["checkins"] is None
    run = start_hub(folder)
    run.awaitTermination()
    found = query_rows(run, "wide")
    assert not found - expect_answer("wide")
    assert not expect_rows(DATA, WIDE, complete=complete) - found


def test_what_killed_drivers_were_about_to_name_goes(halfway: Path, tmp_path: Path) -> None:
    """Also files of operators that no longer run."""
    folder = tmp_path / "hub"
    shutil.copytree(halfway, folder)
    take_one_batch(folder, lambda run: (run.withdraw("three"), run.withdraw("ticked")))
    (old,) = [f for f in (folder / "operators").iterdir() if not (f / "blocks").exists()]
    log = old / "results" / "_spark_metadata"
    left = [
        folder / "commits" / ".000001.json.0a1b2c3d",
        folder / ".run.json.0a1b2c3d",
        log / ".1.0a1b2c3d",
    ]
    for file in left:
        file.write_bytes(b"half")
    run = start_hub(folder)
    run.awaitTermination()
    assert not any(file.exists() for file in left)
    assert query_rows(run, "wide") == expect_answer("wide")


def test_two_hubs_in_one_folder_are_one_too_many(halfway: Path, tmp_path: Path) -> None:
    folder = tmp_path / "hub"
    shutil.copytree(halfway, folder)

    def start_another(run: HubRun) -> None:
        before = list_files(folder)
        with pytest.raises(RuntimeError, match="is in use by a run that has not ended"):
            start_hub(folder)
        assert list_files(folder) == before

    take_one_batch(folder, start_another)
    run = start_hub(folder)
    run.awaitTermination()
    assert_right_answers(run)


def test_a_hub_whose_lock_another_process_has_commits_nothing(
    halfway: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "hub"
    shutil.copytree(halfway, folder)

    def lose_lock(run: HubRun) -> None:
        (folder / ".lock").unlink()
        before = list_files(folder)
        with pytest.raises(RuntimeError, match=r"\.lock has been removed or replaced, so that"):
            run.withdraw("wide")
        assert list_files(folder) == before

    take_one_batch(folder, lose_lock)


def test_events_are_read_from_an_offset_not_from_the_start(
    halfway: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "hub"
    shutil.copytree(halfway, folder)
    run = start_hub(folder)
    run.awaitTermination()
    every, decoded = run.events(), list[bytes]()
    real = event_log.decode_event

    def count(line: bytes, *source: object) -> Any:
        decoded.append(line)
        return real(line, *source)

    monkeypatch.setattr(event_log, "decode_event", count)
    assert run.events(len(every) - 2) == every[-2:]
    assert run.events(len(every)) == [] and run.events(-1) == every[-1:]
    assert len(decoded) <= 2 < len(every)


@pytest.mark.parametrize(
    "extra", ["not an event", '{"format_version":1,"type":"NodeRestored","epoch":1}']
)
def test_events_that_were_not_committed_go_and_damaged_ones_are_written_again(
    halfway: Path, tmp_path: Path, extra: str
) -> None:
    folder = tmp_path / "hub"
    shutil.copytree(halfway, folder)
    log = folder / "events.jsonl"
    before = log.read_text()
    log.write_text(before.replace('"epoch":1', '"epoch":0', 1) + extra)
    take_one_batch(folder)
    assert log.read_text().startswith(before[: before.rindex('{"format_version"')])
    assert extra not in log.read_text()


def test_ticks_go_on_until_the_last_match_is_over(tmp_path: Path) -> None:
    """Also after the last event time and after a restart, but not before the last batch."""
    last = max(int(DATA[s]["ts"].cast("int64").to_numpy().max()) for s in ("flights", "checkins"))
    run = start_hub(tmp_path / "hub", queries={"ticked": TICKED})
    run.awaitTermination()
    again = start_hub(tmp_path / "hub")
    again.awaitTermination()
    truth = expect_answer("ticked")
    assert any(tick > last for tick, *_ in truth), "some ticks are after all tuples"
    assert query_rows(run, "ticked") == query_rows(again, "ticked") == truth


def test_ticks_of_a_hub_that_was_stopped_are_those_that_are_final(
    halfway: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "hub"
    shutil.copytree(halfway, folder)
    run = take_one_batch(folder, lambda run: run)
    until = run._registry.event_time_progress(["flights", "checkins"])
    assert query_rows(run, "ticked") == expect_rows(DATA, TICKED, until=until)


@pytest.mark.parametrize(
    "name",
    [
        *("commits/[0-9]*.json", "commits/state-*.json", "history/000001-flights-*.parquet"),
        *("operators/*/commits/[0-9]*.json", "operators/*/results/*.parquet"),
    ],
)
def test_a_check_of_a_hub_names_each_of_its_files_that_is_damaged(
    halfway: Path, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "hub"
    shutil.copytree(halfway, folder)
    assert check_run(folder)[0] == []
    file = max(folder.glob(name))
    size = file.stat().st_size
    file.write_bytes(b"\0" * (size // 2) + file.read_bytes()[size // 2 :])
    faults = check_run(folder)[0]
    assert any(str(file) in fault and "is damaged: " in fault for fault in faults), faults
