"""The answer of a run: what its events say in a heading, three figures, a picture and findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any

from braid.core.run_events import BatchCommitted, BatchShed, RunStarted
from braid.papers.theta.mapping import input_load_factor
from braid.papers.theta.run_events import MappingChanged, MigrationEnded, MigrationStarted

from braid_lab.reports.line_picture import Band, Curve, LinePicture
from braid_lab.reports.report_figures import Figure


@dataclass(frozen=True, slots=True)
class RunDescription:
    """The first statements of a report about a run."""

    answer: str
    figures: list[Figure]
    picture: LinePicture
    findings: list[tuple[str, str]] = field(default_factory=list)


def describe_run(events: Sequence[Any]) -> RunDescription:
    """Return the description of a run: of its grid, of its shedding, or of its hosts.

    Raises ValueError if no batch has been committed.
    """
    facts = _RunFacts(events)
    if not facts.commits:
        raise ValueError("the run has no committed batch; a report describes what batches did")
    if facts.sheds:
        return _describe_shedding_run(facts)
    return _describe_grid_run(facts) if facts.grids else _describe_hosts_of_run(facts)


class _RunFacts:
    """The events of a run by kind, and numbers that all descriptions use."""

    def __init__(self, events: Sequence[Any]) -> None:
        self.events = events
        self.start = next((e for e in events if isinstance(e, RunStarted)), None)
        self.commits = [e for e in events if isinstance(e, BatchCommitted)]
        self.sheds = [e for e in events if isinstance(e, BatchShed)]
        self.grids = [e for e in events if isinstance(e, MappingChanged)]

    @cached_property
    def batch_numbers(self) -> tuple[float, ...]:
        """The numbers of the batches, from 1."""
        return tuple(c.batch + 1 for c in self.commits)

    @cached_property
    def fullest_rows(self) -> tuple[int, ...]:
        """Return the rows on the fullest host, by batch."""
        return tuple(
            max((h.stored_tuples for h in c.host_metrics), default=0) for c in self.commits
        )

    @cached_property
    def mean_rows(self) -> tuple[float, ...]:
        """Return the mean of all hosts' rows, by batch."""
        return tuple(
            sum(h.stored_tuples for h in c.host_metrics) / max(len(c.host_metrics), 1)
            for c in self.commits
        )

    @property
    def moved_rows(self) -> int:
        return sum(h.migrated_tuples for c in self.commits for h in c.host_metrics)

    @property
    def total_results(self) -> int:
        return sum(c.results for c in self.commits)

    def make_figures(self) -> Iterator[Figure]:
        """Yield the figures of any run: rows, seconds or copies, and rows moved or results."""
        yield Figure("rows on the fullest host", max(self.fullest_rows), "rows", "less")
        seconds = [
            c.seconds_by_phase["total"] for c in self.commits if "total" in c.seconds_by_phase
        ]
        if seconds:
            yield Figure("median seconds of a batch", round(median(seconds), 4), "s", "less")
        else:
            received = sum(sum(c.received_tuples) for c in self.commits)
            sent = sum(h.received_tuples for c in self.commits for h in c.host_metrics)
            yield Figure("copies sent of a row", round(sent / max(received, 1), 3), "", "less")
        if self.moved_rows:
            yield Figure("rows moved between hosts", self.moved_rows, "rows", "less")
        yield Figure("results", self.total_results, "results")


def _describe_hosts_of_run(facts: _RunFacts) -> RunDescription:
    peak = max(range(len(facts.fullest_rows)), key=facts.fullest_rows.__getitem__)
    rows, even = facts.fullest_rows[peak], facts.mean_rows[peak]
    hosts = len(facts.commits[peak].host_metrics)
    name = facts.start.placement if facts.start else "The placement"
    times = f"{rows / (even or 1):.2f} times the mean"
    answer = f"The fullest of {hosts} hosts holds {rows:,} rows: {times}."
    if hosts == 1:
        answer = f"One host holds at most {rows:,} rows and finds {facts.total_results:,} results."
    curves = [Curve("fullest host", facts.fullest_rows)]
    if hosts > 1:
        curves.append(Curve("mean of the hosts", facts.mean_rows, "mean"))
    title = f"Rows on the fullest host, batch by batch ({name})."
    return RunDescription(
        answer, list(facts.make_figures()), LinePicture(title, facts.batch_numbers, tuple(curves))
    )


def _describe_grid_run(facts: _RunFacts) -> RunDescription:
    first = facts.grids[0]
    fixed = first.mapping if not any(first.estimated_sizes) else first.previous_mapping
    changes = [e for e in facts.grids if any(e.estimated_sizes)]
    if len({e.group for e in facts.grids}) > 1:
        return _describe_hosts_of_run(facts)
    stayed = [_compute_ilf(c, fixed) for c in facts.commits]
    title = "Rows on the fullest host, batch by batch. Shaded: rows on their way to another host."
    curves = [Curve("measured", facts.fullest_rows)]
    if changes:
        curves.append(
            Curve(f"had the grid stayed {_format_grid(fixed)}", tuple(stayed), "baseline")
        )
    picture = LinePicture(title, facts.batch_numbers, tuple(curves), tuple(_list_migrations(facts)))
    answer = _make_grid_answer(facts, changes, fixed, stayed)
    return RunDescription(
        answer, list(facts.make_figures()), picture, [*_find_gain_of_change(facts, changes)]
    )


def _compute_ilf(commit: BatchCommitted, mapping: tuple[int, int]) -> float:
    """Return the rows that a host of a grid holds after a batch."""
    r, s = (*commit.live_tuples, 0, 0)[:2]
    return input_load_factor(r, s, *mapping)


def _format_grid(mapping: tuple[int, int]) -> str:
    return f"{mapping[0]} × {mapping[1]}"


def _make_grid_answer(
    facts: _RunFacts, changes: list[MappingChanged], fixed: tuple[int, int], stayed: Sequence[float]
) -> str:
    peak = max(facts.fullest_rows)
    if not changes:
        return f"The grid stayed {_format_grid(fixed)}, and no host holds more than {peak:,} rows."
    times = "once" if len(changes) == 1 else f"{len(changes)} times"
    verb = "need" if max(stayed) > peak else "do with"
    return (
        f"The grid adapted {times}, and no host holds more than {peak:,} rows. "
        f"A fixed grid would {verb} {max(stayed):,.0f}."
    )


def _list_migrations(facts: _RunFacts) -> Iterator[Band]:
    names = {e.batch: _format_grid(e.mapping).replace(" ", "") for e in facts.grids}
    began: int | None = None
    for event in facts.events:
        if isinstance(event, MigrationStarted):
            began = event.batch
        elif isinstance(event, MigrationEnded) and began is not None:
            yield Band(began + 1, event.batch + 1, names.get(began, ""))
            began = None
    if began is not None:
        yield Band(began + 1, facts.batch_numbers[-1], names.get(began, ""))


def _find_gain_of_change(
    facts: _RunFacts, changes: list[MappingChanged]
) -> Iterator[tuple[str, str]]:
    """Yield a finding on the last change of the grid, from the rows at the end of the run."""
    if not changes:
        return
    last = changes[-1]
    end = facts.commits[-1]
    old, new = (_compute_ilf(end, m) for m in (last.previous_mapping, last.mapping))
    share = f"{abs(1 - new / (old or 1)):.0%}".replace("%", " %")
    headline = "The last change pays." if new < old else "The last change does not pay yet."
    side = "below" if new < old else "above"
    yield (
        headline,
        f"It came at batch {last.batch + 1} and turned {_format_grid(last.previous_mapping)} into "
        f"{_format_grid(last.mapping)}. If rows were spread evenly, a host would hold {new:,.0f} "
        f"at the end, {share} {side} the {old:,.0f} of the grid before. All changes "
        f"together moved {facts.moved_rows:,} rows while the join went on.",
    )


def _describe_shedding_run(facts: _RunFacts) -> RunDescription:
    full = sum(e.estimated_results for e in facts.sheds)
    considered = sum(e.considered_pairs for e in facts.sheds)
    pairs = considered + sum(e.skipped_pairs for e in facts.sheds)
    share, recall = considered / (pairs or 1), min(1.0, facts.total_results / (full or 1))
    answer = (
        f"{share:.0%} of the pairs were compared, and they find {recall:.0%} of the results."
    ).replace("%", " %")
    by_batch = {e.batch: e.estimated_results for e in facts.sheds}
    curves = (
        Curve("found", tuple(c.results for c in facts.commits)),
        Curve(
            "full join, estimated", tuple(by_batch.get(c.batch) for c in facts.commits), "baseline"
        ),
    )
    figures = [
        Figure("results found, of the full join", round(100 * recall, 1), "%", "more"),
        Figure("pairs compared, of all", round(100 * share, 1), "%"),
    ]
    title = "Results found in each batch, beside the estimate of the full join."
    picture = LinePicture(title, facts.batch_numbers, curves)
    return RunDescription(answer, [*figures, *facts.make_figures()], picture)
