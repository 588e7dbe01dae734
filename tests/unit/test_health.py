"""The health of a run, read from its folder by any process."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from braid.cli import main
from braid.core.batch_history import PHASE_COLUMNS
from braid.health import RunHealth, read_health
from braid.hub.hub import HubRun, QueryHub
from braid.stream_join import StreamJoin
from braid.util.clock_and_threads import current_environment
from braid.util.file_system import current_file_system
from oracle import killed_before, make_tables, paused_after_two, wait_until
from prometheus_client.parser import text_string_to_metric_families
from scatter import Scatter

STREAMS = make_tables("ab", 60, seed=95, batches=5)
JOIN = StreamJoin(STREAMS, "a.k = b.k", Scatter())


def test_a_run_that_goes_on_says_so_to_others(tmp_path: Path) -> None:
    run = paused_after_two(lambda: JOIN.start(tmp_path / "run", batches="batch"))
    reported = (tmp_path / "run" / "events.jsonl").stat().st_mtime
    found = read_health(tmp_path / "run", lambda: reported + 7.25)
    assert found.state == "running" and found.is_healthy and found.seconds_since_commit == 7.25
    assert (found.committed_batches, found.planned_batches) == (2, 5)
    assert found.received_tuples == run.status["tuples"] and found.live_tuples > 0
    line = (
        f"a ⋈ b, Scatter: running; batch {found.committed_batches} of 5, 7.2 s ago; the last took "
    )
    assert str(found).startswith(line) and str(run.health()).startswith(line[:38])
    shutil.copytree(tmp_path / "run", tmp_path / "died")  # as kill -9 leaves it: the lock is free
    died = read_health(tmp_path / "died")
    assert died.state == "died" and not died.is_healthy and died.seconds_since_commit == 0
    assert (died.committed_batches, died.received_tuples) == (
        found.committed_batches,
        found.received_tuples,
    )
    run.stop()
    assert read_health(tmp_path / "run").state == "stopped" and run.health().is_healthy
    StreamJoin.resume(tmp_path / "run", STREAMS).awaitTermination()
    assert (
        found := read_health(tmp_path / "run")
    ).state == "completed" and found.committed_batches == 5


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ({"total": 0.004, "probe": 0.003}, "; the last took 0.00 s; 3 tuples"),
        ({"total": 0.5, "probe": 0.25, "take": 0.004}, "; the last took 0.50 s (probe 0.25); 3 t"),
        ({}, "batch 1; 3 tuples"),
    ],
)
def test_a_line_has_no_empty_parentheses(seconds: dict[str, float], said: str) -> None:
    line = str(RunHealth("a ⋈ b", "Scatter", "stopped", None, 0, 1, 3, seconds_by_phase=seconds))
    assert said in line and "()" not in line


def test_batches_that_only_answer_are_not_counted_as_planned_ones(tmp_path: Path) -> None:
    join = StreamJoin(STREAMS, "a.k = b.k", how="left")
    join.start(tmp_path / "run", batches="batch").awaitTermination()
    assert "; batch 5 of 5, and 1 without tuples" in str(read_health(tmp_path / "run"))


def test_json_and_prometheus_say_what_the_line_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = JOIN.start(tmp_path, batches="batch")
    run.awaitTermination()
    assert main(["health", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("a ⋈ b, Scatter: completed; batch 5 of 5; the last")
    assert main(["health", str(tmp_path), "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert (
        output["state"] == "completed"
        and output["is_healthy"]
        and output["received_tuples"] == run.status["tuples"]
    )
    assert main(["health", str(tmp_path), "--prometheus"]) == 0
    families = text_string_to_metric_families(capsys.readouterr().out)
    values = {s.name: s for f in families for s in f.samples if "part" not in s.labels}
    assert (
        values["braid_received_tuples"].value == output["received_tuples"]
        and values["braid_up"].value == 0
    )
    assert values["braid_well"].value == 1 and values["braid_batches"].value == 5
    assert all(s.labels == {"run": "a ⋈ b"} for s in values.values())
    parts = run.metrics(by="batch").iloc[-1]
    assert output["seconds_by_phase"] == {
        part: parts[PHASE_COLUMNS[part]] for part in output["seconds_by_phase"]
    }


def test_a_run_that_failed_is_not_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with killed_before(3):
        run = JOIN.start(tmp_path, batches="batch")
        with pytest.raises(OSError, match="killed"):
            run.awaitTermination()
    assert main(["health", str(tmp_path)]) == 1
    assert "failed: OSError: killed; batch 3 of 5; " in capsys.readouterr().out


def test_of_long_files_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = JOIN.start(tmp_path, batches="batch")
    run.awaitTermination()
    whole = read_health(tmp_path)
    for tail in (10, 300, 5000):
        monkeypatch.setattr("braid.recent_events._TAIL", tail)
        assert read_health(tmp_path) == whole


def test_who_asks_does_not_keep_others_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A starting driver waits for the moment in which a reader checks the lock."""
    JOIN.start(tmp_path, batches="batch").awaitTermination()
    asking = current_file_system().lock_file(tmp_path / ".lock", shared=True)
    assert asking is not None
    monkeypatch.setattr(type(current_environment()), "wait_seconds", lambda *_: asking.close())
    assert StreamJoin.resume(tmp_path, STREAMS).awaitTermination()


def test_what_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", str(tmp_path)]) == 2
    assert "holds no run that has begun" in capsys.readouterr().err


ASKED = "SELECT a.id FROM a [RANGE '5 minutes'] JOIN b [RANGE '5 minutes'] ON a.k = b.k"


def test_a_hub_says_how_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """During the run, after it was killed, stopped or failed, and at its end."""
    real = HubRun._join_batch

    def joined_and_paused(run: HubRun, source: Any, epoch: int) -> None:
        real(run, source, epoch)
        if run.store.path == folder and epoch == 1:
            run.pause()

    monkeypatch.setattr(HubRun, "_join_batch", joined_and_paused)
    joined, folder = QueryHub(STREAMS, "ts"), tmp_path / "hub"
    asked = {"x": ASKED, "y": ASKED.replace("5", "2")}
    hub = joined.start(folder, "batch", queries=asked)
    wait_until(lambda: hub.isPaused, "pause after two batches")
    with hub._turn:
        reported = (folder / "events.jsonl").stat().st_mtime
        found = read_health(folder, lambda: reported + 7.25)
        assert (found.state, found.is_healthy, found.seconds_since_commit, found.queries) == (
            "running",
            True,
            7.25,
            2,
        )
        assert found.committed_batches == hub.state.epoch + 1 == 2
        assert found.received_tuples == sum(n for n, _ in hub.state.received_counts.values()) > 0
        did = hub.events()[-1].operator_metrics
        assert found.live_tuples == sum(d.live_tuples for d in did) > 0
        assert found.seconds_by_phase[f"operator {did[0].operator}"] == did[0].seconds
        assert did[0].seconds <= found.seconds_by_phase["total"]
        assert str(found).startswith(
            f"a, b, QueryHub: running; batch {found.committed_batches} of 5, 7.2 s"
        )
        assert f"2 queries; {found.received_tuples:,} tuples so far" in str(hub.health())
        shutil.copytree(folder, tmp_path / "died")
    assert read_health(tmp_path / "died").state == "died"
    assert main(["health", str(tmp_path / "died")]) == 1
    hub.unpause()
    assert hub.awaitTermination() and hub.health().state == "completed"
    capsys.readouterr()
    assert main(["health", str(folder), "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert (reported["state"], reported["queries"], reported["committed_batches"]) == (
        "completed",
        2,
        5,
    )
    assert main(["health", str(folder), "--prometheus"]) == 0
    families = text_string_to_metric_families(capsys.readouterr().out)
    values = {s.name: s.value for f in families for s in f.samples if "part" not in s.labels}
    assert values["braid_queries"] == 2 and values["braid_live_tuples"] == reported["live_tuples"]
    again = joined.start(tmp_path / "died", "batch")
    assert again.awaitTermination() and again.health().state == "completed"
    assert [type(e).__name__ for e in again.events()].count("RunEnded") == 1


def test_a_hub_that_failed_or_was_stopped_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(registry: object, source: object, epoch: int) -> None:
        raise OSError("no more")

    with monkeypatch.context() as patch:
        patch.setattr("braid.hub.hub_batch_loop.run_batch", fails)
        hub = QueryHub(STREAMS, "ts").start(tmp_path, "batch", queries={"x": ASKED})
        with pytest.raises(OSError, match="no more"):
            hub.awaitTermination()
    found = hub.health()
    assert (found.state, found.error, found.committed_batches) == ("failed", "OSError: no more", 0)
    hub = QueryHub(STREAMS, "ts").start(tmp_path, "batch", pace=30)
    wait_until(lambda: hub.state.epoch >= 0, "a batch")
    hub.stop()
    assert hub.health().state == "stopped" and hub.health().is_healthy
