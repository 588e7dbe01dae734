"""Diagnose a run: rules that find a symptom in its last batches, and say what to do about it.

A rule looks at the last twenty committed batches, but not at the first two of a run, and finds
nothing in fewer than five. The functions are pure: they read events, no tuple and no time of day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf
from operator import attrgetter

import numpy as np

from braid.core.run_events import BatchCommitted
from braid.core.run_record import FEW_TUPLES, Finding, RunRecord
from braid.core.work_diagnosis import (
    find_costly_residuals,
    find_lag,
    find_many_hosts,
    find_skew,
    find_slow_sink,
    find_tiny_batches,
    find_unindexed_steps,
    find_wide_steps,
)
from braid.util.durations import UNITS, format_duration
from braid.util.machine import format_bytes

_MANY_TUPLES, _LATE_BATCHES = 100_000, 5
_MANY_RESULT_FILES, _MANY_SOURCE_FILES, _SMALL_FILE = 20, 50, 1_000_000
_DAYS_LEFT = 3
"""Days until the disk is full, below which that is a finding."""
_FALLING = 0.75
"""Share of the batches after which less of the disk is free, from which it is filling up."""
_STRICT = ("Braid", "duckdb", "pyspark")
"""Packages whose other versions may give other answers or formats."""
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
        if len(many) < _LATE_BATCHES:
            continue
        share = total / max(1, run.received[stream])
        behind = max(c.symptoms.late_by.get(stream, 0) for c in run.batches)
        by = f", by {format_duration(behind)} at the 95th percentile" if behind else ""
        more = f"by {format_duration(behind)} " if behind else ""
        yield Finding(
            "late",
            "warning",
            f"{share:.1%} of {name} came later than its lateness allows{by}, so that they may miss "
            "partners",
            f'raise lateness={{"{name}": ...}} {more}in a new run; late() says how far each tuple '
            "is behind",
            share,
            0.01,
        )


def _find_wide_windows(run: RunRecord) -> Iterator[Finding]:
    for stream, name in enumerate(run.start.streams):
        window = run.windows[stream] if stream < len(run.windows) else None
        spreads = [c.symptoms.spread[stream] for c in run.batches if stream in c.symptoms.spread]
        ages = [sum(counts) for counts in zip(*spreads, strict=True)]
        if window is None or sum(ages) <= FEW_TUPLES:
            continue
        young, old = sum(ages[: len(ages) // 4]) / sum(ages), ages[-1] / sum(ages)
        if young > 0.95:
            yield Finding(
                "window",
                "advice",
                f"{young:.0%} of the matches of {name} are in the youngest quarter of its window "
                f"of {format_duration(window)}",
                f'windows={{"{name}": "{format_duration(window / 4)}"}} would hold a quarter of '
                "the tuples, and lose the other matches",
                young,
                0.95,
            )
        if old > 0.5:
            yield Finding(
                "window",
                "advice",
                f"{old:.0%} of the matches of {name} are in the oldest eighth of its window of "
                f"{format_duration(window)}",
                "if the condition has no bound there, a longer window finds more",
                old,
                0.5,
            )


def _find_many_files(run: RunRecord) -> Iterator[Finding]:
    counts = [run.result_files.get(commit.batch, 0) for commit in run.batches]
    mean = sum(counts) / len(counts)
    if mean > _MANY_RESULT_FILES:
        yield Finding(
            "files",
            "advice",
            f"writes {mean:,.0f} files of results a batch",
            "give fewer partitions=, or read results(), which takes compacted files",
            mean,
            _MANY_RESULT_FILES,
        )
    read = [run.source_files[c.batch] for c in run.batches if c.batch in run.source_files]
    count, size = (sum(each) for each in zip(*read, strict=True)) if read else (0, 0)
    if count > _MANY_SOURCE_FILES * len(read) and size < _SMALL_FILE * count:
        yield Finding(
            "files",
            "advice",
            f"reads {count / len(read):,.0f} files of {format_bytes(size // count)} a batch",
            "compact the files of the source, or write them with fewer partitions",
            count / len(read),
            _MANY_SOURCE_FILES,
            run.sum_seconds("source"),
        )


def _find_idle_streams(run: RunRecord) -> Iterator[Finding]:
    recent = run.batches[-10:]
    if not run.is_endless or len(recent) < 10:
        return
    totals = [sum(c.received_tuples[s] for c in recent) for s in range(len(run.start.streams))]
    for stream, name in enumerate(run.start.streams):
        if not totals[stream] and max(totals) > FEW_TUPLES:
            yield Finding(
                "idle",
                "warning",
                f"{name} has sent nothing in the last {len(recent)} batches, so the other streams "
                "are held for it",
                f'look at the source of {name}, or give idle="10 minutes" so that they do not wait',
                0,
                1,
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
    free = run.disk_free if run.disk_free is not None else run.batches[-1].disk_free
    days = _estimate_days_left(run)
    if free is not None and free < 0.1:
        yield Finding(
            "disk",
            "warning",
            f"{free:.0%} of the disk of the run is free",
            'make room, or give keep="30 days" so that old results are removed',
            free,
            0.1,
        )
    elif days < _DAYS_LEFT:
        yield Finding(
            "disk",
            "warning",
            f"the disk of the run is full in {format_duration(days * UNITS['day'])} if it goes on "
            "like that",
            'give keep="1 day" so that old results are removed, windows= that hold less, or a '
            "larger disk",
            days,
            _DAYS_LEFT,
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


def _estimate_days_left(run: RunRecord) -> float:
    """Return after how many days the disk is full; infinity unless it fills up batch by batch.

    Batches follow each other at the interval of the run, or without a pause.
    """
    free = [commit.disk_free for commit in run.batches if commit.disk_free is not None]
    falls = sum(after < before for before, after in pairwise(free))
    is_falling = falls > 0 and falls >= _FALLING * (len(free) - 1) and free[-1] < free[0]
    if not run.is_endless or not is_falling:
        return inf
    batches_left = free[-1] * (len(free) - 1) / (free[0] - free[-1])
    pause = run.start.interval_seconds or 0.0
    return batches_left * max(pause, run.seconds / len(run.batches)) / 86_400


def _find_other_versions(run: RunRecord) -> Iterator[Finding]:
    for package, (written, present) in run.versions.items():
        if _find_release(written) != _find_release(present):
            yield Finding(
                "version",
                "warning" if package in _STRICT else "advice",
                f"the run was started with {package} {written}; this is {present}",
                f"resume it with {package} {_find_release(written)}, or begin a new folder",
                0,
                0,
            )


def _find_release(version: str) -> str:
    """Return the part of a version that promises compatibility: the first number, or 0.x.

    >>> _find_release("2.0.1"), _find_release("0.1.3")
    ('2', '0.1')
    """
    first, _, rest = version.partition(".")
    return f"0.{rest.partition('.')[0]}" if first == "0" else first


RULES: Mapping[str, Callable[[RunRecord], Iterator[Finding]]] = {
    "wide": find_wide_steps,
    "unindexed": find_unindexed_steps,
    "cast": find_costly_residuals,
    "unbounded": _find_growth,
    "late": _find_late_tuples,
    "window": _find_wide_windows,
    "skew": find_skew,
    "tiny": find_tiny_batches,
    "files": _find_many_files,
    "idle": _find_idle_streams,
    "behind": find_lag,
    "sink": find_slow_sink,
    "disk": _find_full_disk,
    "shape": find_many_hosts,
    "stale": _find_stale_input,
    "version": _find_other_versions,
}
"""The rules by name."""

_STRENGTHS: Mapping[str, Callable[[BatchCommitted], float]] = {
    "wide": lambda commit: sum(step.candidate_pairs for step in commit.step_counts),
    "unindexed": lambda commit: sum(step.candidate_pairs for step in commit.step_counts),
    "cast": lambda commit: sum(c.seconds for step in commit.step_counts for c in step.checks),
    "late": lambda commit: sum(commit.late_tuples),
    "files": lambda commit: commit.seconds_by_phase.get("source", 0.0),
    "skew": lambda commit: max(host.compared_pairs for host in commit.host_metrics),
    "tiny": lambda commit: -sum(commit.received_tuples),
    "behind": lambda commit: commit.seconds_by_phase["total"],
    "sink": lambda commit: commit.previous_sink_seconds,
    "shape": lambda commit: commit.seconds_by_phase["total"],
}
"""By rule, what makes its symptom strong in a batch; of the others, the last batch is shown."""
