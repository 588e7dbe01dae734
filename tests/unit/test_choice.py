"""The choice of the executor from generated batches: no Spark, no clock."""

from __future__ import annotations

import ctypes
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from braid.execution.executor_choice import (
    COPIES,
    BatchTiming,
    Parallelism,
    choose_executor,
    expected_bytes,
    recent_timings,
)
from braid.execution.executors import check_executor
from braid.util.machine import (
    _MALLOC_OPTIONS,
    available_cores,
    machine_memory,
    parse_memory_limit,
    retain_freed_memory,
)
from hypothesis import given
from hypothesis import strategies as st
from unit.scripted import make_commit

MB = 10**6
HERE = Parallelism(threads=2, slots=2, is_local=True, memory=COPIES * 100 * MB)
CLUSTER = replace(HERE, slots=200, is_local=False)

batches = st.builds(
    BatchTiming,
    st.sampled_from(["process", "spark"]),
    st.integers(1, 10**11),
    st.integers(0, 10**11),
    st.floats(0.01, 1000),
    st.floats(0, 0.01),
    st.floats(0, 1000),
    st.integers(0, 8),
    st.sampled_from([HERE.describe, CLUSTER.describe, ""]),
)


def took(
    way: str, size: int, seconds: float, work: float = 0.0, lanes: int = 2, on: Parallelism = HERE
) -> BatchTiming:
    kernels = work / lanes
    return BatchTiming(way, size, size, seconds + kernels, kernels, work, lanes, on.describe)


def way(before: list[BatchTiming], size: int, machine: Parallelism = HERE, hosts: int = 16) -> str:
    return choose_executor(before, size, hosts, machine).executor


def test_small_work_stays_here_before_anything_is_known() -> None:
    assert way([], 0) == way([], MB) == way([], 20 * MB) == "process"


def test_what_announces_nothing_is_taken_to_be_as_large_as_the_largest_lately() -> None:
    before = [took("process", n * MB, 1) for n in (30, 3, 9)]
    assert expected_bytes(before, 0) == 30 * MB
    assert expected_bytes([], 0) == 0


def test_an_announcement_is_scaled_by_what_came_for_the_last_ones() -> None:
    before = [
        BatchTiming("process", 6 * MB, 2 * MB, 1.0, 0.5, 0.5),
        BatchTiming("spark", MB, MB, 1.0, 0.5, 0.5),
    ]
    assert expected_bytes(before, 5 * MB) == 15 * MB


def test_the_faster_way_is_taken_once_both_are_known() -> None:
    slow = [took("process", MB, 0.9), took("spark", MB, 0.3)]
    fast = [took("process", MB, 0.3), took("spark", MB, 0.9)]
    assert way(slow, MB) == "spark" and way(fast, MB) == "process"


def test_one_cold_batch_does_not_count() -> None:
    cold = [took("process", MB, 9.0), took("process", MB, 0.1), took("spark", MB, 0.3)]
    assert way(cold, MB) == "process"


def test_much_work_goes_to_a_cluster_and_stays_on_one_machine() -> None:
    heavy = [took("process", 10 * MB, 0.2, work=60.0)]
    assert way(heavy, 10 * MB) == "process"
    heavy = [took("process", 10 * MB, 0.2, work=60.0, on=CLUSTER)]
    assert way(heavy, 10 * MB, CLUSTER) == "spark"
    assert way(heavy, 10 * MB, CLUSTER, hosts=1) == "process", "one host works on one machine"
    light = [took("process", MB // 10, 0.1, work=0.01, on=CLUSTER)]
    assert way(light, MB // 10, CLUSTER) == "process"


def test_work_that_threads_share_badly_is_tried_on_spark_in_the_end() -> None:
    bad = [took("process", 10 * MB, 0.2, work=60.0)] * 100
    assert way(bad[:99], 10 * MB) == "process" and way(bad, 10 * MB) == "spark"
    learned = [*bad, took("spark", 10 * MB, 0.6, work=20.0)]
    assert way(learned, 10 * MB) == "spark"
    light = [took("process", 10 * MB, 0.2, work=0.02)] * 200
    assert way(light, 10 * MB) == "process", "where carriage is most of it, Spark is no faster"


def test_this_process_is_tried_again_and_what_it_took_long_ago_is_forgotten() -> None:
    """A few batches on a busy machine must not keep the run on Spark forever."""
    slow, fast = took("process", MB, 2.0, work=0.1), took("process", MB, 0.1, work=0.1)
    there = took("spark", MB, 0.5, work=0.1)
    before, taken = [slow, slow, there], list[str]()
    for _ in range(300):
        taken.append(way(before, MB))
        before.append(fast if taken[-1] == "process" else there)
    assert taken[:99] == ["spark"] * 99
    assert taken[100:] == ["process"] * 200
    heavy = took("spark", MB, 0.5, work=60.0, lanes=200, on=CLUSTER)
    assert way([heavy] * 200, MB, CLUSTER) == "spark", "no try that cannot win"


def test_seconds_of_another_machine_tell_nothing_and_bytes_do() -> None:
    elsewhere = [took("process", MB, 9.0, on=CLUSTER), took("spark", MB, 0.1, on=CLUSTER)] * 9
    assert choose_executor(elsewhere, MB, 16, HERE) == choose_executor([], MB // 4, 16, HERE)
    assert way(elsewhere, MB, CLUSTER) == "spark"


def test_work_on_one_thread_is_expected_to_be_shared() -> None:
    """A small batch uses one thread until it is known to be much work."""
    alone = took("process", MB // 2, 0.1, work=1.0, lanes=1)
    assert way([alone] * 3, MB // 2) == "process"


def test_state_that_is_made_anew_counts_as_tuples_do() -> None:
    choice = choose_executor([], 5 * MB, 16, HERE, derived=90 * MB)
    assert choice.executor == "spark"
    assert choice.reason == (
        "20 MB of tuples and 90 MB of state take 440 MB here; the driver may hold 400 MB"
    )
    assert choose_executor([], 5 * MB, 16, HERE, derived=80 * MB).executor == "process"


@given(st.lists(batches, max_size=30), st.integers(0, 10**11), st.integers(1, 100))
def test_no_batch_over_the_bound_comes_here_and_the_choice_is_a_function(
    before: list[BatchTiming], announced: int, hosts: int
) -> None:
    for machine_ in (HERE, CLUSTER):
        choice = choose_executor(before, announced, hosts, machine_)
        assert choice == choose_executor(list(before), announced, hosts, machine_)
        if expected_bytes(before, announced) * COPIES > machine_.memory:
            assert choice.executor == "spark" and "the driver may hold 400 MB" in choice.reason


def test_batches_tell_what_they_took_unless_they_had_no_tuples_or_no_way() -> None:
    reported = replace(
        make_commit(3, (1, 1), (1, 1)),
        received_bytes=(5, 6),
        executor="process",
        announced_bytes=4,
        seconds_by_phase={"total": 2.0},
    )
    assert recent_timings(
        [reported, make_commit(4, (1, 1), (2, 2)), replace(reported, received_bytes=(0, 0))]
    ) == [BatchTiming("process", 11, 4, 2.0, 0.0, reported.total_host_metrics.seconds, 0, "")]
    shed = replace(reported, source_bytes=90, task_count=2, parallelism=HERE.describe)
    assert recent_timings([shed])[0][1:] == (
        90,
        4,
        2.0,
        0.0,
        reported.total_host_metrics.seconds,
        2,
        HERE.describe,
    )
    assert len(recent_timings([reported, *[object()] * 5000])) == 1, (
        "batches are looked at, not events"
    )


@pytest.mark.parametrize("given", ["", "2 QB", "-1", "0 MB", "GB", 0, -5])
def test_a_size_that_is_none_is_refused(given: str | int) -> None:
    with pytest.raises(ValueError, match="it must be bytes, or a size as '512 MB' or '2 GB'"):
        parse_memory_limit(given)


def test_by_default_a_batch_may_take_a_quarter_of_the_machine() -> None:
    assert parse_memory_limit() == machine_memory() // 4 > 0
    assert parse_memory_limit("2 kB") == parse_memory_limit(2000) == 2000


def test_cores_are_those_that_this_process_may_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    quota = tmp_path / "cpu.max"
    monkeypatch.setattr("braid.util.machine._QUOTA", quota)
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {1, 5, 7, 9}, raising=False)
    assert available_cores() == 4
    for text, some in (("max 100000", 4), ("250000 100000", 3), ("50000 100000", 1)):
        quota.write_text(text)
        assert available_cores() == some


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(ValueError, match="executor is 'dask'; it must be one of auto, process"):
        check_executor("dask")


@pytest.mark.parametrize(("setting", "reported"), [(None, 3), ("MALLOC_ARENA_MAX", 0)])
def test_glibc_is_told_to_keep_what_batches_free_but_for_what_the_user_has_set(
    monkeypatch: pytest.MonkeyPatch, setting: str | None, reported: int
) -> None:
    options: list[int] = []
    libc = SimpleNamespace(mallopt=lambda option, value: options.append(option))
    monkeypatch.setattr("ctypes.CDLL", lambda name: libc)
    for name in [n for n in os.environ if n.startswith(("MALLOC_", "GLIBC_TUNABLES"))]:
        monkeypatch.delenv(name)
    if setting is not None:
        monkeypatch.setenv(setting, "4")
    retain_freed_memory()
    assert len(options) == reported


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="another C library")
def test_glibc_takes_each_of_the_settings() -> None:
    assert [ctypes.CDLL(None).mallopt(*each) for each in _MALLOC_OPTIONS] == [1, 1, 1]
