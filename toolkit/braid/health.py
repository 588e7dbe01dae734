"""The health of a run or a hub, for monitoring: a line of text, JSON, or Prometheus's text.

All of it is read from the run's folder, so any process can ask.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import msgspec

from braid.core.answer_events import TuplesAnswered
from braid.core.bundle_parts import HEALTH, is_bundle, read_bundle_part
from braid.core.comparison_watch import describe_comparisons
from braid.core.run_events import BatchCommitted, RunStarted
from braid.core.stream_clocks import IrregularCounts, find_other_times
from braid.papers.reuse.hub_events import HubBatchCommitted
from braid.recent_events import read_recent_events
from braid.storage.hub_files import read_last_hub_state
from braid.storage.remote_medium import is_object_store_url
from braid.storage.run_store import RunStore

if TYPE_CHECKING:
    from prometheus_client.core import Metric

State = Literal["running", "completed", "stopped", "failed", "died"]


@dataclass(frozen=True)
class RunHealth:
    """The health of a run or a hub.

    - ``run``: names of the streams.
    - ``state``: "died" if no process runs it and its end was not recorded; resume it to continue.
    - ``planned_batches``: total number of batches; None: unknown.
    - ``seconds_since_commit``: while the run is active; otherwise 0.
    - ``received_tuples``: tuples since the start.
    - ``live_tuples``: tuples held now; for a hub, of all operators.
    - ``results``, ``missed_combinations``: of the last batch.
    - ``late_tuples``, ``untimed``, ``ahead``: by stream, since the start (see
      ``core.stream_clocks.IrregularCounts``).
    - ``watermark_seconds``: by stream, the earliest event time still expected of the others, in
      seconds since 1970; the end of the year 9999: they have ended.
    - ``waiting_tuples``: by preserved stream, tuples that are not final; none in an inner join.
    - ``waiting_by_query``: the same by query of a shared join or a hub, then by stream.
    - ``irregular_counts``: these counts and the jumps of clocks, in words.
    - ``comparisons``: the part of the condition that compares many pairs for a match, in words.
    - ``seconds_by_phase``: durations of the last batch by phase, and "total"; for a hub, by
      operator.
    - ``error``: error of a failed run.
    - ``queries``: active queries of a hub; None: not a hub.
    """

    run: str
    placement: str
    state: State
    planned_batches: int | None
    seconds_since_commit: float = 0.0
    committed_batches: int = 0
    received_tuples: int = 0
    live_tuples: int = 0
    results: int = 0
    missed_combinations: int = 0
    late_tuples: dict[str, int] = field(default_factory=dict)
    untimed_tuples: dict[str, int] = field(default_factory=dict)
    ahead_tuples: dict[str, int] = field(default_factory=dict)
    watermark_seconds: dict[str, float] = field(default_factory=dict)
    waiting_tuples: dict[str, int] = field(default_factory=dict)
    waiting_by_query: dict[str, dict[str, int]] = field(default_factory=dict)
    irregular_counts: str = ""
    comparisons: str = ""
    seconds_by_phase: dict[str, float] = field(default_factory=dict)
    error: str = ""
    queries: int | None = None

    @property
    def is_healthy(self) -> bool:
        """Whether the run has neither failed nor died."""
        return self.state not in ("failed", "died")

    def __str__(self) -> str:
        done = self._describe_progress()
        parts = ", ".join(
            f"{k} {s:.2f}" for k, s in self.seconds_by_phase.items() if k != "total" and s >= 0.005
        )
        split = f" ({parts})" if parts else ""
        took = (
            f"; the last took {self.seconds_by_phase['total']:.2f} s{split}"
            if self.seconds_by_phase
            else ""
        )
        lag = (
            f", {self.seconds_since_commit:.1f} s ago"
            if self.state == "running" and self.committed_batches
            else ""
        )
        error = f": {self.error}" if self.error else ""
        notes = "".join(f"; {note}" for note in (self.irregular_counts, self.comparisons) if note)
        queries = f"; {self.queries:,} queries" if self.queries is not None else ""
        return (
            f"{self.run}, {self.placement}: {self.state}{error}; batch {done}{lag}"
            f"{took}{queries}; {self.received_tuples:,} tuples so far, {self.live_tuples:,} "
            f"held{notes}"
        )

    def _describe_progress(self) -> str:
        """Return the number of committed batches; those after the planned ones have no tuples."""
        planned = self.planned_batches
        if planned is None:
            return f"{self.committed_batches:,}"
        more = max(0, self.committed_batches - planned)
        extra = f", and {more:,} without tuples" if more else ""
        return f"{self.committed_batches - more:,} of {planned:,}{extra}"

    def to_json(self) -> str:
        """Return the health as a JSON object."""
        return msgspec.json.encode({**asdict(self), "is_healthy": self.is_healthy}).decode()

    def to_prometheus(self) -> str:
        """Return the health as Prometheus's text, for a node's textfile collector."""
        return format_prometheus({self.run: self})


class Sample(NamedTuple):
    """A value of a metric.

    - ``name``: without "braid_". ``about``: what it counts.
    - ``labels``: besides the run.
    - ``is_total``: whether it only grows, so that it is a counter ``_total`` too.
    """

    name: str
    about: str
    value: float
    labels: Mapping[str, str] = {}
    is_total: bool = False


def format_prometheus(runs: Mapping[str, RunHealth]) -> str:
    """Return the metrics of runs by the value of their label ``run``."""
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    registry, totals = CollectorRegistry(), CollectorRegistry()
    totals.register(_TotalCollector(runs))
    gauges: dict[str, Gauge] = {}
    for run, health in runs.items():
        for sample in list_samples(health):
            if sample.name not in gauges:
                labels = ["run", *sample.labels]
                name = f"braid_{sample.name}"
                gauges[sample.name] = Gauge(name, sample.about, labels, registry=registry)
            gauges[sample.name].labels(run, *sample.labels.values()).set(sample.value)
    return (generate_latest(registry) + generate_latest(totals)).decode()


class _TotalCollector:
    """The counters of runs by the value of their label ``run``."""

    def __init__(self, runs: Mapping[str, RunHealth]) -> None:
        self._runs = runs

    def collect(self) -> Iterator[Metric]:
        """Yield the counters, each with the values of all runs."""
        from prometheus_client.core import CounterMetricFamily

        counters: dict[str, CounterMetricFamily] = {}
        for run, health in self._runs.items():
            for name, about, value, labels, is_total in list_samples(health):
                if is_total:
                    empty = CounterMetricFamily(f"braid_{name}", about, labels=["run", *labels])
                    counters.setdefault(name, empty).add_metric([run, *labels.values()], value)
        yield from counters.values()


def list_samples(health: RunHealth) -> Iterator[Sample]:
    """Yield the metrics of a run."""
    yield Sample("up", "1 while the run is active", health.state == "running")
    yield Sample("well", "0 if the run failed or died", health.is_healthy)
    yield Sample("batches", "micro-batches committed", health.committed_batches, {}, True)
    about = "tuples since the start"
    yield Sample("received_tuples", about, health.received_tuples, {}, True)
    yield Sample("live_tuples", "tuples held", health.live_tuples)
    yield Sample("batch_results", "results of the last batch", health.results)
    missed = "due combinations not met in the last batch"
    yield Sample("batch_missed_pairs", missed, health.missed_combinations)
    yield Sample("lag_seconds", "seconds since the last commit", health.seconds_since_commit)
    if health.queries is not None:
        yield Sample("queries", "queries that the hub answers", health.queries)
    for part, seconds in health.seconds_by_phase.items():
        yield Sample("batch_seconds", "seconds of the last batch", seconds, {"part": part})
    yield from _list_stream_samples(health)


def _list_stream_samples(health: RunHealth) -> Iterator[Sample]:
    """Yield the metrics of a run by stream."""
    about = "tuples since the start that were late, untimed or ahead"
    for kind in ("late", "untimed", "ahead"):
        for stream, tuples in getattr(health, f"{kind}_tuples").items():
            labels = {"stream": stream, "kind": kind}
            yield Sample("irregular_tuples", about, tuples, labels, True)
    for stream, tuples in health.waiting_tuples.items():
        yield Sample("waiting_tuples", "not final", tuples, {"stream": stream})
    for query, counts in health.waiting_by_query.items():
        for stream, tuples in counts.items():
            labels = {"stream": stream, "query": query}
            yield Sample("waiting_tuples", "not final", tuples, labels)
    about = "event time still expected of the other streams, in seconds since 1970"
    for stream, seconds in health.watermark_seconds.items():
        yield Sample("watermark_seconds", about, seconds, {"stream": stream})


def read_health(path: str | Path, clock: Callable[[], float] = time.time) -> RunHealth:
    """Return the health of the run or hub in a folder.

    That of a bundle is from when it was written. Raises ValueError if the folder holds none, and
    for a bucket.
    """
    if is_bundle(path):
        return msgspec.json.decode(read_bundle_part(path, HEALTH), type=RunHealth)
    if is_object_store_url(path):
        raise ValueError(
            f"{path} is a bucket, which does not tell whether somebody runs what is in it; ask "
            "run.health() of the process that does"
        )
    store = RunStore(path)
    file = store.path / "events.jsonl"
    if store.read_settings() is None or not file.exists():
        raise ValueError(f"{path} holds no run that has begun")
    held = store.lock.is_held()  # before the events: a run that ends now has then logged its end
    start, recent, end = read_recent_events(file)
    commits = [e for e in recent if isinstance(e, BatchCommitted | HubBatchCommitted)]
    last = commits[-1] if commits else None
    state: State = "running" if held else "died" if end is None else cast(State, end.outcome)
    joined = isinstance(start, RunStarted)
    counts = _read_hub_counts(store) if not joined else {"planned_batches": start.planned_batches}
    if isinstance(last, BatchCommitted):
        counts |= _join_batch_counts(last, start.streams)
        steps = [e.step_counts for e in commits if isinstance(e, BatchCommitted)]
        counts["comparisons"] = describe_comparisons(steps, start.condition_parts)
        counts.update(_find_waiting(recent, start.streams))
    elif last is not None:
        counts |= _hub_batch_counts(last, sorted(start.streams))
    return RunHealth(
        (" ⋈ " if joined else ", ").join(start.streams),
        start.placement if joined else "QueryHub",
        state,
        seconds_since_commit=max(0.0, clock() - file.stat().st_mtime) if held else 0.0,
        error=end.error if end is not None and state == "failed" else "",
        **counts,
    )


def _join_batch_counts(last: BatchCommitted, streams: Sequence[str]) -> dict[str, Any]:
    """Return the counts and seconds of a join's batch."""
    counts: dict[str, Any] = {
        name: getattr(last, name) for name in ("results", "missed_combinations")
    }
    counts |= _count_irregular_tuples(last.irregular_counts, streams)
    counts["irregular_counts"] = last.irregular_counts.describe_counts(streams, last.clocks)
    times = zip(streams, last.watermarks, strict=False)
    counts["watermark_seconds"] = {a: time / 1e6 for a, time in times if time is not None}
    batch_counts = {
        "committed_batches": last.batch + 1,
        "received_tuples": sum(last.total_received_tuples),
        "live_tuples": sum(last.live_tuples),
    }
    return {**batch_counts, **counts, "seconds_by_phase": dict(last.seconds_by_phase)}


def _find_waiting(events: Sequence[Any], streams: Sequence[str]) -> dict[str, Any]:
    """Return the tuples that wait for an answer after the last batch, by field of ``RunHealth``."""
    answers = [e for e in events if isinstance(e, TuplesAnswered)]
    if not answers:
        return {}
    by_stream = zip(streams, answers[-1].waiting, strict=True)
    by_query = {name: dict(counts) for name, counts in answers[-1].waiting_by_query.items()}
    return {"waiting_tuples": {a: n for a, n in by_stream if n}, "waiting_by_query": by_query}


def _count_irregular_tuples(counts: IrregularCounts, streams: Sequence[str]) -> dict[str, Any]:
    """Return the counts of late, untimed and early tuples by field of ``RunHealth``."""
    return {f"{kind}_tuples": each for kind, each in counts.count_by_stream(streams).items()}


def _hub_batch_counts(last: HubBatchCommitted, streams: Sequence[str]) -> dict[str, Any]:
    """Return the counts and seconds of a hub's batch, by operator.

    ``streams`` are sorted by name.
    """
    metrics = last.operator_metrics
    seconds = {f"operator {d.operator}": d.seconds for d in metrics} | {"total": last.seconds}
    held = {
        "results": sum(d.results for d in metrics),
        "live_tuples": sum(d.live_tuples for d in metrics),
    }
    counts = _count_irregular_tuples(last.irregular_counts, streams)
    counts["irregular_counts"] = last.irregular_counts.describe_counts(
        streams, [last.latest_event_times.get(s) for s in streams]
    )
    times = find_other_times(last.passed_times).items()
    counts["watermark_seconds"] = {s: time / 1e6 for s, time in times if time is not None}
    counts["waiting_by_query"] = {name: dict(each) for name, each in last.waiting_by_query.items()}
    return {"committed_batches": last.epoch + 1, **held, **counts, "seconds_by_phase": seconds}


class _Query(msgspec.Struct):
    end_epoch: int | None


class _Hub(msgspec.Struct):
    """The fields of a hub's state that are read.

    They are tuples and bytes by stream, and queries, ended or not.
    """

    received_counts: dict[str, tuple[int, int]]
    queries: list[_Query]


def _read_hub_counts(store: RunStore) -> dict[str, Any]:
    state = msgspec.json.decode(read_last_hub_state(store), type=_Hub)
    settings = msgspec.json.decode((store.path / "run.json").read_bytes())
    received = sum(tuples for tuples, _ in state.received_counts.values())
    serving = sum(q.end_epoch is None for q in state.queries)
    return {
        "received_tuples": received,
        "queries": serving,
        "planned_batches": settings.get("batches"),
    }
