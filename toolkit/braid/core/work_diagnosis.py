"""Rules of a diagnosis about the work of batches: pairs, hosts, and where the seconds go.

Each finds its symptom in the last batches of a run (``core.run_diagnosis``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from braid.core.batch_symptoms import FrequentValue
from braid.core.run_events import BatchCommitted
from braid.core.run_record import FEW_SECONDS, FEW_TUPLES, Finding, RunRecord
from braid.core.step_counts import CheckCounts
from braid.util.durations import format_duration

_PAIRS_PER_MATCH, _MANY_PAIRS = 100, 1_000_000


def find_wide_steps(run: RunRecord) -> Iterator[Finding]:
    """Yield steps that compare many pairs for each match."""
    kernels = run.sum_seconds("kernels")
    for step in run.steps:
        ratio = step.candidate_pairs / max(1, step.matches)
        is_wide = ratio > _PAIRS_PER_MATCH and step.candidate_pairs > _MANY_PAIRS
        if not is_wide or kernels < 0.3 * run.seconds or step.access == "all pairs":
            continue
        ids = sorted({id for ids in step.part_ids for id in ids})
        yield Finding(
            "wide",
            "warning",
            f"compares {ratio:,.0f} pairs for each match in {run.name_parts(ids)} ({step.access})",
            "give the comparisons that are only checked an equality, a bound or a window; "
            "explain() names those that find pairs and those that check them",
            ratio,
            _PAIRS_PER_MATCH,
            step.seconds,
        )


def find_unindexed_steps(run: RunRecord) -> Iterator[Finding]:
    """Yield steps that compare all pairs."""
    for step in run.steps:
        pairs = step.candidate_pairs / len(run.batches)
        if step.access == "all pairs" and pairs > _MANY_PAIRS:
            ids = sorted({id for ids in step.part_ids for id in ids})
            yield Finding(
                "unindexed",
                "warning",
                f"compares all pairs, {pairs:,.0f} a batch, in {run.name_parts(ids)}",
                "write an equality, a comparison of one column of each stream, or a window; the "
                "page on conditions lists what finds pairs without comparing all",
                pairs,
                _MANY_PAIRS,
                step.seconds,
            )


def find_costly_residuals(run: RunRecord) -> Iterator[Finding]:
    """Yield expressions whose evaluation for each pair takes long."""
    checks = [check for step in run.steps for check in step.checks if check.reached == "residual"]
    seconds = sum(check.seconds for check in checks)
    if checks and seconds > max(FEW_SECONDS, 0.2 * run.seconds):
        worst: CheckCounts = max(checks, key=lambda check: check.seconds)
        yield Finding(
            "cast",
            "warning",
            f"evaluates {run.name_parts(worst.parts)} for each of {worst.pairs_in:,} pairs, "
            f"{seconds / run.seconds:.0%} of the time",
            "compute what it casts or calls in a column of the stream, or compare whole numbers",
            seconds / run.seconds,
            0.2,
            seconds,
        )


def find_skew(run: RunRecord) -> Iterator[Finding]:
    """Yield the host that does far more than the others."""
    sums: dict[int, list[float]] = {}
    for commit in run.batches:
        for host, metrics in enumerate(commit.host_metrics):
            total = sums.setdefault(host, [0.0, 0.0])
            total[0] += metrics.compared_pairs
            total[1] += metrics.seconds
    if len(sums) < 2:
        return
    pairs, seconds = (np.array([each[n] for each in sums.values()]) for n in (0, 1))
    ratio = pairs.max() / max(1e-9, pairs.mean())
    slow = seconds[pairs.argmax()] / max(1e-9, seconds.mean())
    frequent = run.batches[-1].symptoms.frequent
    if ratio > 2 and slow > 1.5 and pairs.sum() > _MANY_PAIRS:
        host = [*sums][int(pairs.argmax())]
        yield Finding(
            "skew",
            "warning",
            f"host {host} compares {ratio:.1f} times the mean of {len(sums)} hosts"
            f"{_describe_frequent_value(run, frequent)}",
            "use AdaptiveGrid, or HotKeys for an equality whose values are skewed",
            float(ratio),
            2,
            float(seconds.max() - seconds.mean()),
        )


def _describe_frequent_value(run: RunRecord, frequent: FrequentValue | None) -> str:
    """Return the most frequent join value, as far as it is known, as the end of a sentence."""
    if frequent is None:
        return ""
    name = run.frequent_value or "the most frequent join value"
    return f"; {name} is {frequent.share:.0%} of {run.start.streams[frequent.stream]}"


def find_tiny_batches(run: RunRecord) -> Iterator[Finding]:
    """Yield batches whose overhead is greater than their join."""
    tuples = sum(run.received) / len(run.batches)
    kernels = run.sum_seconds("kernels")
    if 0 < tuples < FEW_TUPLES and kernels < 0.2 * run.seconds and run.is_endless:
        yield Finding(
            "tiny",
            "advice",
            f"batches of {tuples:,.0f} tuples take {run.seconds / len(run.batches):.2f} s, "
            f"{kernels / run.seconds:.0%} of it for the join",
            'take more tuples at a time: a longer trigger (processingTime="5 seconds"), or a '
            "greater maxFilesPerTrigger or maxOffsetsPerTrigger",
            tuples,
            FEW_TUPLES,
            run.seconds - kernels,
        )


def find_lag(run: RunRecord) -> Iterator[Finding]:
    """Yield a run that takes longer and longer for a second of event time."""
    clocks = [max((t for t in c.clocks if t is not None), default=None) for c in run.batches]
    clocked = [
        (clock, c) for clock, c in zip(clocks, run.batches, strict=True) if clock is not None
    ]
    if not run.is_endless or len(clocked) < 10:
        return
    middle = len(clocked) // 2
    halves = [_measure_pace(half) for half in (clocked[: middle + 1], clocked[middle:])]
    if halves[1] > 1 and halves[1] > halves[0]:
        yield Finding(
            "behind",
            "warning",
            f"an hour of event time takes {format_duration(3600e6 * halves[1])}, more than before",
            "use more hosts and cores, or shed=Shed(seconds=...) so that the join keeps up",
            halves[1],
            1,
            run.seconds,
        )


def _measure_pace(part: Sequence[tuple[int, BatchCommitted]]) -> float:
    """Return the seconds that a second of event time takes."""
    passed = (part[-1][0] - part[0][0]) / 1e6
    spent = sum(commit.seconds_by_phase["total"] for _, commit in part[1:])
    return spent / passed if passed > 0 else 0.0


def find_slow_sink(run: RunRecord) -> Iterator[Finding]:
    """Yield a ``foreachBatch`` that takes most of the time."""
    seconds = sum(commit.previous_sink_seconds for commit in run.batches)
    share = seconds / (run.seconds + seconds)
    if share > 0.5 and seconds > FEW_SECONDS:
        yield Finding(
            "sink",
            "warning",
            f"foreachBatch takes {seconds / len(run.batches):.2f} s a batch, {share:.0%} of all",
            "write many rows at a time, or take fewer and larger batches",
            share,
            0.5,
            seconds,
        )


def find_many_hosts(run: RunRecord) -> Iterator[Finding]:
    """Yield a number of hosts that the cores, if their number is known, cannot serve."""
    overhead = run.sum_seconds("planning", "transfer", "commit")
    in_process = run.cores > 0 and all(commit.executor == "process" for commit in run.batches)
    if in_process and run.start.hosts > 4 * run.cores and overhead > 0.5 * run.seconds:
        yield Finding(
            "shape",
            "advice",
            f"{run.start.hosts} hosts on {run.cores} cores: planning and hand-over take "
            f"{overhead / run.seconds:.0%} of the time",
            f"give the placement hosts={4 * run.cores} or fewer",
            run.start.hosts,
            4 * run.cores,
            overhead,
        )
