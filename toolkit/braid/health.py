"""How a run or a hub is, for those who keep an eye on many: a line, JSON, or Prometheus's text.

All comes from the run's folder, so any process may ask, whoever runs it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from braid.core.events import BatchCommitted, RunEnded, RunStarted
from braid.core.jsonl import event_of
from braid.engine import durable
from braid.engine.mirror import in_bucket
from braid.engine.store import Store
from braid.papers.reuse.events import HubCommitted

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_TAIL = 1 << 20
"""Bytes at the end of a run's events that are read first: a commit takes some thousand."""
State = Literal["running", "completed", "stopped", "failed", "died"]


@dataclass(frozen=True)
class Health:
    """How a run, or a hub, is.

    ``died``: nobody runs it, and it has told of no end; resumed, it goes on. ``batches`` are those
    that are committed, ``due`` how many there will be (None: unknown). ``received`` tuples are
    since the start, ``live`` ones are held now; ``late``, ``untimed`` and ``ahead`` ones are by
    stream, since the start (see ``core.clocks.Irregular``), and ``irregular`` says so in words,
    with the jumps of clocks. Of the last batch are ``results``, ``missed`` combinations, and
    ``seconds``, by part and in all ("total"). ``lag``: seconds since the last commit, while it
    runs. Of a hub, ``queries`` are those that it answers (None: a join), ``live`` and ``results``
    those of all its operators, which are the parts of its seconds.
    """

    run: str
    placement: str
    state: State
    due: int | None
    lag: float = 0.0
    batches: int = 0
    received: int = 0
    live: int = 0
    results: int = 0
    missed: int = 0
    late: dict[str, int] = field(default_factory=dict)
    untimed: dict[str, int] = field(default_factory=dict)
    ahead: dict[str, int] = field(default_factory=dict)
    irregular: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    error: str = ""
    queries: int | None = None

    @property
    def well(self) -> bool:
        """Whether nobody needs to look."""
        return self.state not in ("failed", "died")

    def __str__(self) -> str:
        of = f" of {self.due:,}" if self.due is not None else ""
        parts = ", ".join(
            f"{k} {s:.2f}" for k, s in self.seconds.items() if k != "total" and s >= 0.005
        )
        split = f" ({parts})" if parts else ""
        took = f"; the last took {self.seconds['total']:.2f} s{split}" if self.seconds else ""
        lag = f", {self.lag:.1f} s ago" if self.state == "running" and self.batches else ""
        error = f": {self.error}" if self.error else ""
        irregular = f"; {self.irregular}" if self.irregular else ""
        asked = f"; {self.queries:,} queries" if self.queries is not None else ""
        return (
            f"{self.run}, {self.placement}: {self.state}{error}; batch {self.batches:,}{of}{lag}"
            f"{took}{asked}; {self.received:,} tuples so far, {self.live:,} held{irregular}"
        )

    def json(self) -> str:
        """As one JSON object."""
        return msgspec.json.encode({**asdict(self), "well": self.well}).decode()

    def prometheus(self) -> str:
        """As Prometheus's text, for a node's textfile collector."""
        from prometheus_client import CollectorRegistry, Gauge, generate_latest

        registry = CollectorRegistry()

        def told(name: str, about: str, value: float) -> None:
            Gauge(f"braid_{name}", about, ["run"], registry=registry).labels(self.run).set(value)

        told("up", "1 while the run goes on", self.state == "running")
        told("well", "0 when the run failed or died", self.well)
        told("batches", "micro-batches committed", self.batches)
        told("received_tuples", "tuples since the start", self.received)
        told("live_tuples", "tuples held", self.live)
        told("batch_results", "results of the last batch", self.results)
        told("batch_missed_pairs", "combinations left out in the last batch", self.missed)
        told("lag_seconds", "seconds since the last commit", self.lag)
        self._count_irregular(registry)
        if self.queries is not None:
            told("queries", "queries that the hub answers", self.queries)
        about = "seconds of the last batch"
        spent = Gauge("braid_batch_seconds", about, ["run", "part"], registry=registry)
        for part, seconds in self.seconds.items():
            spent.labels(self.run, part).set(seconds)
        return generate_latest(registry).decode()

    def _count_irregular(self, registry: CollectorRegistry) -> None:
        from prometheus_client import Gauge

        about = "tuples since the start that were late, untimed or ahead"
        labels = ["run", "stream", "kind"]
        counted = Gauge("braid_irregular_tuples", about, labels, registry=registry)
        for kind in ("late", "untimed", "ahead"):
            for stream, tuples in getattr(self, kind).items():
                counted.labels(self.run, stream, kind).set(tuples)


def health(path: str | Path, clock: Callable[[], float] = time.time) -> Health:
    """How the run or hub in a folder is. Raises ValueError where there is none, and for a
    bucket.
    """
    if in_bucket(path):
        raise ValueError(
            f"{path} is a bucket, which does not tell whether somebody runs what is in it; ask "
            "run.health() of the process that does"
        )
    store = Store(path)
    file = store.path / "events.jsonl"
    if store.query() is None or not file.exists():
        raise ValueError(f"{path} holds no run that has begun")
    held = store.held()  # asked first: a run that ends now has told so by the time it is read
    start, last, end = _told(file)
    state: State = "running" if held else "died" if end is None else cast(State, end.reason)
    joined = isinstance(start, RunStarted)
    did = _of_hub(store.path) if not joined else {"due": start.batches}
    if isinstance(last, BatchCommitted):
        did |= _committed(last, start.streams)
    elif last is not None:
        did |= _passed(last, sorted(start.streams))
    return Health(
        (" ⋈ " if joined else ", ").join(start.streams),
        start.placement if joined else "QueryHub",
        state,
        lag=max(0.0, clock() - file.stat().st_mtime) if held else 0.0,
        error=end.error if end is not None and state == "failed" else "",
        **did,
    )


def _committed(last: BatchCommitted, streams: Sequence[str]) -> dict[str, Any]:
    """Return the counts and seconds of a join's batch."""
    counts: dict[str, Any] = {name: getattr(last, name) for name in ("results", "missed")}
    counts |= last.irregular.by_stream(streams)
    counts["irregular"] = last.irregular.describe(streams, last.clocks)
    did = {"batches": last.batch + 1, "received": sum(last.total), "live": sum(last.live)}
    return {**did, **counts, "seconds": dict(last.seconds)}


def _passed(last: HubCommitted, streams: Sequence[str]) -> dict[str, Any]:
    """Return the counts and seconds of a hub's batch, by its operators; ``streams`` are in the
    order of their names.
    """
    did = last.operators
    seconds = {f"operator {d.operator}": d.seconds for d in did} | {"total": last.seconds}
    held = {"results": sum(d.results for d in did), "live": sum(d.live for d in did)}
    counts: dict[str, Any] = last.irregular.by_stream(streams)
    counts["irregular"] = last.irregular.describe(streams, [last.latest.get(s) for s in streams])
    return {"batches": last.epoch + 1, **held, **counts, "seconds": seconds}


class _Query(msgspec.Struct):
    end: int | None


class _Hub(msgspec.Struct):
    """What of hub.json is told: tuples and bytes by stream, and queries, which may have ended."""

    counted: dict[str, tuple[int, int]]
    queries: list[_Query]


def _of_hub(path: Path) -> dict[str, Any]:
    body = durable.opened(path / "hub.json", f"the hub in {path}")
    known = msgspec.json.decode(body, type=_Hub)
    settings = msgspec.json.decode((path / "run.json").read_bytes())
    received = sum(tuples for tuples, _ in known.counted.values())
    asked = sum(q.end is None for q in known.queries)
    return {"received": received, "queries": asked, "due": settings.get("batches")}


def _told(file: Path) -> tuple[Any, BatchCommitted | HubCommitted | None, RunEnded | None]:
    """The start, the last commit, and the end if nothing came after it."""
    with open(file, "rb") as lines:
        first = event_of(lines.readline())
        size, tail = os.fstat(lines.fileno()).st_size, _TAIL
        while True:
            lines.seek(max(0, size - tail))
            *whole, _ = lines.read(tail).split(b"\n")
            told = [event_of(line) for line in whole[tail < size :] if line]
            commits = [e for e in told if isinstance(e, BatchCommitted | HubCommitted)]
            if commits or tail >= size:
                break
            tail *= 4
    end = told[-1] if told and isinstance(told[-1], RunEnded) else None
    return first, commits[-1] if commits else None, end
