"""``doctor``: each rule finds its planted symptom and no other, and sound runs have none."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import braid
import duckdb
import pyarrow as pa
import pytest
from braid import StreamJoin
from braid.cli import main
from braid.core.batch_report import HostMetrics
from braid.core.batch_symptoms import BatchSymptoms, FrequentValue
from braid.core.run_diagnosis import RULES, diagnose_run
from braid.core.run_events import BatchCommitted, RunStarted
from braid.core.run_record import RunRecord
from braid.core.step_counts import CheckCounts, StepCounts
from braid.core.touch_events import SettingChanged
from braid.papers.baselines.centralized import Centralized
from braid.papers.hotkeys.hot_keys import HotKeys
from braid.run_doctor import diagnose_events, name_frequent_value, read_record
from braid.storage.run_store import RunStore
from braid.storage.source_files import count_changes, list_files
from braid.stored_tuples import read_last_state
from braid.util.file_system import FileSystem
from braid.util.machine import available_cores
from kind_runs import draw_case

SECOND = 1_000_000
START = RunStarted(
    ("a", "b"), "a.k = b.k AND f(a.x) < b.y", {"a": "1 hour", "b": "1 hour"}, "Centralized", {}, 1,
    1, None, condition_parts=("a.k = b.k", "f(a.x) < b.y"),
)  # fmt: skip
STEP = StepCounts((0,), 1, "equality", (0,), 5_000, 20_000, 10_000, 0.5)


def make_commit(batch: int, **fields: Any) -> BatchCommitted:
    """Return a sound batch: 10,000 tuples in a second, of a minute of event time."""
    phases = {"source": 0.1, "planning": 0.1, "transfer": 0.1, "kernels": 0.6, "commit": 0.1}
    values: dict[str, Any] = {
        "received_tuples": (5_000, 5_000),
        "total_received_tuples": (5_000 * (batch + 1),) * 2,
        "live_tuples": (100_000, 100_000),
        "results": 10_000,
        "seconds_by_phase": phases | {"total": 1.0},
        "changed_blocks": (),
        "dropped_block_ids": (),
        "host_metrics": tuple(HostMetrics(compared_pairs=100_000, seconds=0.1) for _ in range(4)),
        "late_tuples": (0, 0),
        "clocks": (batch * 60 * SECOND,) * 2,
        "executor": "process",
        "previous_commit_seconds": 0.02,
        "step_counts": (STEP,),
    }
    return BatchCommitted(batch, **values | fields)


def make_record(change: Callable[[int], dict[str, Any]] = lambda batch: {}) -> RunRecord:
    """Return the record of a run; ``change``: fields of a batch by number."""
    commits = [make_commit(batch, **change(batch)) for batch in range(30)]
    hour = 3600 * SECOND
    return RunRecord(START, commits, windows=(hour, hour), cores=2, result_files={3: 1, 4: 1})


def make_skewed_hosts(batch: int) -> dict[str, Any]:
    busy = HostMetrics(compared_pairs=1_000_000, seconds=1.0)
    return {"host_metrics": (busy, *(HostMetrics(compared_pairs=100, seconds=0.1),) * 3)}


def make_slower_batches(batch: int) -> dict[str, Any]:
    return {"seconds_by_phase": {"kernels": 50.0 + batch, "total": 55.0 + batch}}


TINY = {"source": 0.2, "kernels": 0.05, "total": 0.5}
YOUNG = BatchSymptoms(spread={1: (5_000, 0, 0, 0, 0, 0, 0, 10)})
PLANTED = {
    "wide": make_record(lambda batch: {"step_counts": (STEP._replace(candidate_pairs=9_000_000),)}),
    "unindexed": make_record(
        lambda batch: {
            "step_counts": (STEP._replace(access="all pairs", candidate_pairs=9_000_000),)
        }
    ),
    "cast": make_record(
        lambda batch: {
            "step_counts": (
                STEP._replace(checks=(CheckCounts((1,), "residual", 20_000, 10_000, 0.4),)),
            )
        }
    ),
    "unbounded": replace(
        make_record(lambda batch: {"live_tuples": (90_000 + 5_000 * batch,) * 2}),
        windows=(None, None),
    ),
    "late": make_record(lambda batch: {"late_tuples": (0, 200)}),
    "window": make_record(lambda batch: {"symptoms": YOUNG}),
    "skew": make_record(make_skewed_hosts),
    "tiny": make_record(lambda batch: {"received_tuples": (40, 0), "seconds_by_phase": TINY}),
    "files": replace(make_record(), result_files=dict.fromkeys(range(30), 80)),
    "idle": make_record(lambda batch: {"received_tuples": (5_000, 0)}),
    "behind": make_record(make_slower_batches),
    "sink": make_record(lambda batch: {"previous_sink_seconds": 1.5}),
    "stale": replace(make_record(), changed_files={"a": 0, "b": 2}),
    "disk": replace(make_record(), disk_free=0.05),
    "shape": replace(
        make_record(
            lambda batch: {"seconds_by_phase": {"planning": 0.6, "kernels": 0.3, "total": 1.0}}
        ),
        start=replace(START, hosts=64),
    ),
    "version": replace(make_record(), versions={"duckdb": ("1.5.0", "2.0.0")}),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_finds_its_symptom_and_no_other(rule: str) -> None:
    findings = diagnose_run(PLANTED[rule])
    assert [finding.rule for finding in findings] == [rule]
    assert findings[0].sentence and findings[0].remedy


def test_a_sound_run_and_a_short_one_have_no_findings() -> None:
    assert diagnose_run(make_record()) == []
    few = replace(PLANTED["wide"], commits=PLANTED["wide"].commits[:6])
    assert diagnose_run(few) == []


def find_sentence(record: RunRecord) -> str:
    """Return level and sentence of the only finding."""
    (finding,) = diagnose_run(record)
    return f"{finding.level}: {finding.sentence}"


def test_lateness_is_measured_by_its_95th_percentile() -> None:
    symptoms = BatchSymptoms(late_by={1: 180 * SECOND})
    record = make_record(lambda batch: {"late_tuples": (0, 200), "symptoms": symptoms})
    assert ", by 3 min at the 95th percentile, so" in find_sentence(record)
    assert 'lateness={"b": ...} by 3 min in a new run' in diagnose_run(record)[0].remedy


def test_matches_at_the_edge_of_a_window_are_advice() -> None:
    symptoms = BatchSymptoms(spread={0: (10, 0, 0, 0, 0, 0, 0, 90)})
    sentence = find_sentence(make_record(lambda batch: {"symptoms": symptoms}))
    assert (
        sentence == "advice: 90% of the matches of a are in the oldest eighth of its window of 1 h"
    )


def test_the_value_that_makes_a_host_slow_is_named() -> None:
    symptoms = BatchSymptoms(frequent=FrequentValue(0, 77, 0.18))
    record = make_record(lambda batch: {**make_skewed_hosts(batch), "symptoms": symptoms})
    assert find_sentence(record).endswith("; the most frequent join value is 18% of a")
    assert find_sentence(replace(record, frequent_value="a.k = 42")).endswith(
        "; a.k = 42 is 18% of a"
    )


def test_a_disk_that_fills_up_is_reported_with_the_time_that_is_left() -> None:
    record = make_record(lambda batch: {"disk_free": 0.9 - 0.001 * batch})
    assert find_sentence(record).startswith("warning: the disk of the run is full in 14 min 31 s")
    slow = replace(record, start=replace(START, interval_seconds=3600.0))
    assert diagnose_run(slow) == []
    changed = SettingChanged(0, "interval", 0.0, 3600.0)
    for events, count in (([START], 1), ([START, changed], 0)):
        diagnosis = diagnose_events("run", [*events, *record.commits])
        assert diagnosis is not None and len(diagnosis.findings) == count
    for last in (0.9, 0.95):
        shares = [*(0.9 - 0.001 * batch for batch in range(29)), last]
        freed = make_record(lambda batch, shares=shares: {"disk_free": shares[batch]})
        assert diagnose_run(freed) == [], "files that are removed make up for all growth"


def test_small_source_files_are_advice() -> None:
    record = replace(make_record(), source_files=dict.fromkeys(range(30), (620, 620 * 80_000)))
    assert find_sentence(record) == "advice: reads 620 files of 80 kB a batch"
    large = dict.fromkeys(range(30), (620, 620 * 80_000_000))
    assert diagnose_run(replace(record, source_files=large)) == []


def test_a_minor_version_below_1_and_a_major_one_above_differ() -> None:
    versions = {"Braid": ("0.1.0", "0.2.0"), "numpy": ("2.3.1", "2.4.6"), "pyarrow": ("25.0", "26")}
    findings = diagnose_run(replace(make_record(), versions=versions))
    assert [(f.level, f.sentence) for f in findings] == [
        ("warning", "the run was started with Braid 0.1.0; this is 0.2.0"),
        ("advice", "the run was started with pyarrow 25.0; this is 26"),
    ]


def test_events_alone_know_the_cores_of_a_run_or_do_not_judge_its_hosts() -> None:
    """64 hosts are too many for 2 cores, and few enough for 16."""
    slow, verdicts = PLANTED["shape"], []
    for cores in (2, 16, 0):
        start = replace(slow.start, cores=cores)
        diagnosis = diagnose_events("the run", [start, *slow.commits])
        assert diagnosis is not None
        verdicts.append([(each.rule, each.limit) for each in diagnosis.findings])
    assert verdicts == [[("shape", 8)], [], []]


def test_an_ended_symptom_is_not_reported() -> None:
    commits = [*PLANTED["late"].commits[:10], *make_record().commits[10:]]
    assert diagnose_run(replace(make_record(), commits=commits)) == []


def test_a_finding_names_the_batch_in_which_it_is_strongest() -> None:
    record = make_record(lambda batch: {"late_tuples": (0, 900 if batch == 17 else 200)})
    assert [finding.batch for finding in diagnose_run(record)] == [17]
    assert diagnose_run(PLANTED["disk"])[0].batch == 29


def test_commits_that_take_long_are_advice() -> None:
    record = make_record(lambda batch: {"previous_commit_seconds": 2.0})
    assert [(each.rule, each.level) for each in diagnose_run(record)] == [("disk", "advice")]


def test_fifty_random_sound_runs_have_no_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their lateness is as great as their tuples are late, and their disk is half empty."""
    monkeypatch.setattr(FileSystem, "measure_free_share", lambda system, folder: 0.5)
    judged = 0
    for seed in range(50):
        drawn, path = draw_case(seed, ("inner", "left", "semi")), tmp_path / f"{seed}"
        case = replace(drawn, lateness=(90, 90))
        case.make_join().start(path, batches="batch", durability="process").awaitTermination()
        diagnosis = braid.doctor(path)
        assert diagnosis.is_sound, str(diagnosis)
        judged += bool(diagnosis.batches)
    assert judged > 25


def run_late_stream(path: Path) -> Any:
    """Return a run half of whose tuples of b come late."""
    rows = 40
    batch = [n // 4 for n in range(rows)]
    on_time = pa.array([n * SECOND for n in range(rows)], pa.timestamp("us"))
    late = pa.array([(n - 30 * (n % 2)) * SECOND for n in range(rows)], pa.timestamp("us"))
    streams = {
        alias: pa.table({"k": range(rows), "ts": times, "batch": batch})
        for alias, times in (("a", on_time), ("b", late))
    }
    join = StreamJoin(streams, "a.k = b.k", Centralized(), windows="5 seconds", time="ts")
    run = join.start(path, batches="batch", durability="process")
    run.awaitTermination()
    return run


def test_late_tuples_of_a_run_are_found_in_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_late_stream(tmp_path / "run")
    text = str(run.doctor(["late"]))
    assert "1 warning in batches 3 to 10" in text
    assert text.splitlines()[0].endswith(" s), of streams as they were at the start")
    late = (
        "warning  late       50.0% of b came later than its lateness allows, by 26.9 s at the 95th"
    )
    assert late in text
    assert text.endswith("0 rules found nothing")
    assert main(["doctor", str(tmp_path / "run"), "--only", "late", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["rule"] == "late"
    assert main(["doctor", str(tmp_path / "run"), "--only", "tiny"]) == 0


def test_the_record_of_a_run_has_what_only_its_folder_knows(tmp_path: Path) -> None:
    keys = [42 if n % 4 == 0 else n for n in range(400)]
    times = pa.array([n * SECOND for n in range(400)], pa.timestamp("us"))
    rows = pa.table({"k": keys, "ts": times, "batch": [n // 40 for n in range(400)]})
    join = StreamJoin({"a": rows, "b": rows}, "a.k = b.k", HotKeys(4), windows="1 hour", time="ts")
    run = join.start(tmp_path, batches="batch", durability="process")
    assert run.awaitTermination()
    store = RunStore(tmp_path)
    record = read_record(store)
    assert record.start.cores == record.cores == available_cores()
    assert name_frequent_value(store, record) in ("a.k = 42", "b.k = 42")
    frequent = record.commits[-1].symptoms.frequent
    assert frequent is not None and 0.2 < frequent.share < 0.3
    assert 0 < record.commits[-1].disk_free < 1
    assert record.versions["duckdb"] == (duckdb.__version__,) * 2
    matched = [sum(map(sum, c.symptoms.spread.values())) for c in record.commits]
    assert matched == [c.results for c in record.commits]
    for file in (tmp_path / "blocks").iterdir():
        file.unlink()
    assert "skew" not in str(run.doctor()), "a run without skew is diagnosed without its tuples"


@pytest.mark.parametrize("error", [FileNotFoundError, duckdb.IOException])
def test_files_that_a_batch_removes_meanwhile_are_read_in_the_next_state(error: type) -> None:
    states = [SimpleNamespace(batch=n) for n in (3, 4, 4)]
    store = cast(Any, SimpleNamespace(last_state=lambda: states.pop(0)))

    def read_state(state: Any) -> int:
        if state.batch == 3:
            raise error("batch 4 has removed it")
        return int(state.batch)

    assert read_last_state(store, read_state) == 4
    states[:] = [SimpleNamespace(batch=3)] * 2
    with pytest.raises(error):
        read_last_state(store, read_state)


def test_a_slow_sink_is_found_by_the_seconds_of_the_commits(tmp_path: Path) -> None:
    rows = pa.table({"k": range(20), "batch": [n // 2 for n in range(20)]})
    join = StreamJoin({"a": rows, "b": rows}, "a.k = b.k", Centralized())
    run = join.start(
        tmp_path, batches="batch", durability="process", foreachBatch=lambda rows, batch: None
    )
    assert run.awaitTermination()
    commits = [event for event in run.events() if isinstance(event, BatchCommitted)]
    assert all((c.previous_sink_seconds > 0) is (c.batch > 0) for c in commits)
    assert run.doctor(["sink", "stale"]).is_sound


def test_files_that_changed_came_or_went_are_counted(tmp_path: Path) -> None:
    for name in ("1.parquet", "2.parquet", "3.parquet"):
        (tmp_path / name).write_bytes(b"rows")
    files = list_files(str(tmp_path / f"{n}.parquet") for n in (1, 2, 3))
    stored = json.loads(json.dumps(files))
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".4.parquet.crc").touch()
    assert count_changes(stored) == 0
    (tmp_path / "1.parquet").write_bytes(b"other rows")
    (tmp_path / "2.parquet").unlink()
    (tmp_path / "4.parquet").touch()
    assert count_changes(stored) == 3
    assert count_changes({str(tmp_path / "gone" / "1.parquet"): (4, 7)}) == 1


def test_a_diagnosis_that_cannot_be_made_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="holds no run"):
        braid.doctor(tmp_path)
    run = run_late_stream(tmp_path / "run")
    with pytest.raises(ValueError, match="there is no rule 'slow'; rules are wide, unindexed"):
        run.doctor(["slow"])
    assert main(["doctor", str(tmp_path / "run"), "--only", "slow"]) == 2
    assert capsys.readouterr().err.startswith("braid: there is no rule 'slow'")
