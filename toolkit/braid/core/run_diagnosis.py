"""Diagnose a run: rules that find a symptom in its last batches, and say what to do about it.

A rule looks at the last twenty committed batches, but not at the first two of a run, and finds
nothing in fewer than five. The functions are pure: they read events, no tuple and no time of day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np

from braid.core.facts import AGES
from braid.core.run_events import BatchCommitted
from braid.core.run_record import Finding, RunRecord
from braid.core.step_counts import CheckCounts
from braid.util.durations import format_duration

_PAIRS_PER_MATCH, _MANY_PAIRS = 100, 1_000_000
_FEW_TUPLES, _MANY_TUPLES = 1_000, 100_000
_MANY_FILES, _LATE_BATCHES = 20, 5
_FEW_SECONDS = 1.0
"""Seconds below which the time of a part is not worth a finding."""
_LEVELS = ("fault", "warning", "advice")


def diagnose_run(run: RunRecord, rules: Sequence[str] | None = None) -> list[Finding]:
    """Return the symptoms of a run: faults first, and those that take longest.

    ``rules``: names of the rules to apply. Default: all.

    Raises ValueError for an unknown rule.
    """
    unknown = [name for name in rules or () if name not in RULES]
    if unknown:
        raise ValueError(f"there is no rule {unknown[0]!r}; rules are {', '.join(RULES)}")
    if not run.can_be_judged:
        return []
    chosen = RULES if rules is None else rules
    findings = [
        replace(each, batch=_find_worst_batch(run, name))
        for name in chosen
        for each in RULES[name](run)
    ]
    return sorted(findings, key=lambda each: (_LEVELS.index(each.level), -each.seconds))


def _find_worst_batch(run: RunRecord, rule: str) -> int:
    """Return the batch in which the symptom of a rule is strongest, the last of several."""
    measure: Callable[[BatchCommitted], float] = _STRENGTHS.get(rule, attrgetter("batch"))
    return max(run.batches, key=lambda commit: (measure(commit), commit.batch)).batch


def _find_wide_steps(run: RunRecord) -> Iterator[Finding]:
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


def _find_unindexed_steps(run: RunRecord) -> Iterator[Finding]:
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


def _find_costly_residuals(run: RunRecord) -> Iterator[Finding]:
    checks = [check for step in run.steps for check in step.checks if check.reached == "residual"]
    seconds = sum(check.seconds for check in checks)
    if checks and seconds > max(_FEW_SECONDS, 0.2 * run.seconds):
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


def _find_growth(run: RunRecord) -> Iterator[Finding]:
    if not run.is_endless or all(window is not None for window in run.windows):
        return
    held = np.array([sum(commit.live_tuples) for commit in run.batches], float)
    at = np.arange(len(held))
    fit = np.corrcoef(at, held)[0, 1] if held.std() else 0.0
    growth = float(np.polyfit(at, held, 1)[0])
    if held[-1] > _MANY_TUPLES and fit > 0 and fit * fit > 0.98 and growth > 0:
        yield Finding(
            "unbounded",
            "warning",
            f"holds {held[-1]:,.0f} tuples and {growth:,.0f} more after each batch, for no window "
            "bounds them",
            "give windows=, or leave it if full history is meant",
            growth,
            0,
        )


def _find_late_tuples(run: RunRecord) -> Iterator[Finding]:
    for stream, name in enumerate(run.start.streams):
        counts = [
            (c.late_tuples[stream], c.received_tuples[stream]) for c in run.batches if c.late_tuples
        ]
        many = [late for late, received in counts if late > 0.01 * received]
        total = sum(late for late, _ in counts)
        if len(many) >= _LATE_BATCHES:
            share = total / max(1, run.received[stream])
            yield Finding(
                "late",
                "warning",
                f"{share:.1%} of {name} came later than its lateness allows, so that they may miss "
                "partners",
                f'give lateness={{"{name}": ...}}; late() says how far each tuple is behind',
                share,
                0.01,
            )


def _find_wide_windows(run: RunRecord) -> Iterator[Finding]:
    young = AGES // 4
    for stream, name in enumerate(run.start.streams):
        window = run.windows[stream] if stream < len(run.windows) else None
        ages = [
            (age, matches)
            for ((_, probed), age), (_, matches) in run.matches.items()
            if probed == stream
        ]
        total = sum(matches for _, matches in ages)
        near = sum(matches for age, matches in ages if age < young)
        if window is not None and total > _FEW_TUPLES and near > 0.95 * total:
            yield Finding(
                "window",
                "advice",
                f"{near / total:.0%} of the matches of {name} are in the youngest quarter of its "
                f"window of {format_duration(window)}",
                f'windows={{"{name}": "{format_duration(window / 4)}"}} would hold a quarter of '
                "the tuples, and lose the other matches",
                near / total,
                0.95,
            )


def _find_skew(run: RunRecord) -> Iterator[Finding]:
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
    if ratio > 2 and slow > 1.5 and pairs.sum() > _MANY_PAIRS:
        host = [*sums][int(pairs.argmax())]
        yield Finding(
            "skew",
            "warning",
            f"host {host} compares {ratio:.1f} times the mean of {len(sums)} hosts",
            "use AdaptiveGrid, or HotKeys for an equality whose values are skewed",
            float(ratio),
            2,
            float(seconds.max() - seconds.mean()),
        )


def _find_tiny_batches(run: RunRecord) -> Iterator[Finding]:
    tuples = sum(run.received) / len(run.batches)
    kernels = run.sum_seconds("kernels")
    if 0 < tuples < _FEW_TUPLES and kernels < 0.2 * run.seconds and run.is_endless:
        yield Finding(
            "tiny",
            "advice",
            f"batches of {tuples:,.0f} tuples take {run.seconds / len(run.batches):.2f} s, "
            f"{kernels / run.seconds:.0%} of it for the join",
            'take more tuples at a time: a longer trigger (processingTime="5 seconds"), or a '
            "greater maxFilesPerTrigger or maxOffsetsPerTrigger",
            tuples,
            _FEW_TUPLES,
            run.seconds - kernels,
        )


def _find_many_files(run: RunRecord) -> Iterator[Finding]:
    counts = [run.result_files.get(commit.batch, 0) for commit in run.batches]
    mean = sum(counts) / len(counts)
    if mean > _MANY_FILES:
        yield Finding(
            "files",
            "advice",
            f"writes {mean:,.0f} files of results a batch",
            "give fewer partitions=, or read results(), which takes compacted files",
            mean,
            _MANY_FILES,
        )


def _find_idle_streams(run: RunRecord) -> Iterator[Finding]:
    recent = run.batches[-10:]
    if not run.is_endless or len(recent) < 10:
        return
    totals = [sum(c.received_tuples[s] for c in recent) for s in range(len(run.start.streams))]
    for stream, name in enumerate(run.start.streams):
        if not totals[stream] and max(totals) > _FEW_TUPLES:
            yield Finding(
                "idle",
                "warning",
                f"{name} has sent nothing in the last {len(recent)} batches, so the other streams "
                "are held for it",
                f'look at the source of {name}, or give idle="10 minutes" so that they do not wait',
                0,
                1,
            )


def _find_lag(run: RunRecord) -> Iterator[Finding]:
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


def _find_slow_sink(run: RunRecord) -> Iterator[Finding]:
    seconds = sum(commit.previous_sink_seconds for commit in run.batches)
    share = seconds / (run.seconds + seconds)
    if share > 0.5 and seconds > _FEW_SECONDS:
        yield Finding(
            "sink",
            "warning",
            f"foreachBatch takes {seconds / len(run.batches):.2f} s a batch, {share:.0%} of all",
            "write many rows at a time, or take fewer and larger batches",
            share,
            0.5,
            seconds,
        )


def _find_stale_input(run: RunRecord) -> Iterator[Finding]:
    for name, changed in run.changed_files.items():
        if changed:
            yield Finding(
                "stale",
                "warning",
                f"files of {name} that changed, came or went since the run copied them: "
                f"{changed:,}; it joins the rows of that time",
                "begin a new folder to join the present rows",
                changed,
                0,
            )


def _find_full_disk(run: RunRecord) -> Iterator[Finding]:
    commits = sum(commit.previous_commit_seconds for commit in run.batches)
    if run.disk_free < 0.1:
        yield Finding(
            "disk",
            "warning",
            f"{run.disk_free:.0%} of the disk of the run is free",
            'make room, or give keep="30 days" so that old results are removed',
            run.disk_free,
            0.1,
        )
    elif commits > 0.3 * (run.seconds + commits) and commits > len(run.batches) * 0.1:
        yield Finding(
            "disk",
            "advice",
            f"commits take {commits / (run.seconds + commits):.0%} of the time",
            'use a faster disk, or durability="process" if a power cut may cost the last batches',
            commits / (run.seconds + commits),
            0.3,
            commits,
        )


def _find_many_hosts(run: RunRecord) -> Iterator[Finding]:
    overhead = run.sum_seconds("planning", "transfer", "commit")
    in_process = all(commit.executor == "process" for commit in run.batches)
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


def _find_other_versions(run: RunRecord) -> Iterator[Finding]:
    for package, (written, present) in run.versions.items():
        if written.partition(".")[0] != present.partition(".")[0]:
            yield Finding(
                "version",
                "warning",
                f"the run was written with {package} {written}; this is {present}",
                f"resume it with {package} {written.partition('.')[0]}, or begin a new folder",
                0,
                0,
            )


RULES: Mapping[str, Callable[[RunRecord], Iterator[Finding]]] = {
    "wide": _find_wide_steps,
    "unindexed": _find_unindexed_steps,
    "cast": _find_costly_residuals,
    "unbounded": _find_growth,
    "late": _find_late_tuples,
    "window": _find_wide_windows,
    "skew": _find_skew,
    "tiny": _find_tiny_batches,
    "files": _find_many_files,
    "idle": _find_idle_streams,
    "behind": _find_lag,
    "sink": _find_slow_sink,
    "disk": _find_full_disk,
    "shape": _find_many_hosts,
    "stale": _find_stale_input,
    "version": _find_other_versions,
}
"""The rules by name."""

_STRENGTHS: Mapping[str, Callable[[BatchCommitted], float]] = {
    "wide": lambda commit: sum(step.candidate_pairs for step in commit.step_counts),
    "unindexed": lambda commit: sum(step.candidate_pairs for step in commit.step_counts),
    "cast": lambda commit: sum(c.seconds for step in commit.step_counts for c in step.checks),
    "late": lambda commit: sum(commit.late_tuples),
    "skew": lambda commit: max(host.compared_pairs for host in commit.host_metrics),
    "tiny": lambda commit: -sum(commit.received_tuples),
    "behind": lambda commit: commit.seconds_by_phase["total"],
    "sink": lambda commit: commit.previous_sink_seconds,
    "shape": lambda commit: commit.seconds_by_phase["total"],
}
"""By rule, what makes its symptom strong in a batch; of the others, the last batch is shown."""
