"""What hosts report of a batch: named, as it travels and as the driver merges it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from braid.core.clocks import Spread
from braid.core.facts import AgedMatches, Visit
from braid.core.harvest import Harvested, together
from braid.core.state import Address, Place, Seal


class HostDid(msgspec.Struct, omit_defaults=True):
    """What one host did in a batch, and what it holds after it. Bytes are of Arrow buffers.

    Tasks count in it what they do, and leave what is held to the commit; in an event it stays as it
    is. A line of JSON leaves zeros out.
    """

    received: int = 0
    """Tuples sent to the host."""
    received_bytes: int = 0
    stored: int = 0
    """Tuples held after the batch: the host's input load."""
    stored_bytes: int = 0
    moved: int = 0
    """Tuples read from other hosts: migration."""
    moved_bytes: int = 0
    discarded: int = 0
    """Tuples given up."""
    compared: int = 0
    """Candidate pairs looked at."""
    probed: int = 0
    """Tuples and intermediate results that met a block, once for each hop."""
    sent: int = 0
    """Intermediate results that left, once for each host that they went to."""
    arrived: int = 0
    """Intermediate results that came in."""
    arrived_bytes: int = 0
    results: int = 0
    seconds: float = 0.0
    """Of derivations, builds and probes, at the host at which a path enters a task."""
    shed: int = 0
    """Pairs (tuple that set out, row of a block) that did not meet, as load is shed."""

    def add(self, other: HostDid) -> None:
        """Count what another task did for this host as well."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Size(NamedTuple):
    """What a block holds, once it is made: of one replica. ``span`` is (earliest, latest) event
    time in microseconds; ``late`` tuples are behind the watermark; ``spread`` describes the event
    times of a fresh block where a clock needs more than the span.
    """

    rows: int
    bytes: int
    span: tuple[int, int]
    late: int = 0
    spread: Spread | None = None


class Replica(msgspec.Struct, frozen=True):
    """A replica that a host made in a batch."""

    block: int
    host: int
    address: Address
    size: Size


class Matched(NamedTuple):
    """The pairs of one step and one age of the met block that were considered, and that matched."""

    visited: tuple[int, ...]
    stream: int
    age: int
    pairs: float
    found: float


class KeyCount(NamedTuple):
    """Fresh tuples of a stream that have a routing key."""

    stream: int
    key: int
    tuples: int


class Report(msgspec.Struct):
    """What one task reports of its hosts: their counts, the replicas that they made, result files,
    matches, fresh tuples by routing key, and what came of the harvest. And its seconds: how long it
    waited for tuples of the source, and how long its hosts worked in this stage of the batch; and
    the bytes that it took from the source, before any tuple was left out. And the ``files``
    that it wrote, and the machine that it ran on, the ``worker``. ``served`` counts results by the
    bit of the query that they serve, and ``untimed``, by stream, tuples that were left out because
    they have no event time.
    """

    hosts: dict[int, HostDid]
    replicas: list[Replica] = []
    results: list[str] = []
    matches: list[Matched] = []
    key_counts: list[KeyCount] = []
    stage: int = 0
    source: float = 0.0
    kernels: float = 0.0
    harvested: Harvested | None = None
    source_bytes: int = 0
    files: dict[str, Seal] = {}
    worker: str = ""
    served: dict[int, int] = {}
    untimed: dict[int, int] = {}

    def encode(self) -> bytes:
        """The report as JSON."""
        return msgspec.json.encode(self)


def decode(body: bytes) -> Report:
    """The report that a task encoded."""
    return msgspec.json.decode(body, type=Report)


@dataclass
class Outcome:
    """What all hosts report of a batch, merged: sizes of the blocks that were made, where their
    replicas lie, counts by host, result files, matches, fresh tuples by stream and routing key, and
    what came of the harvest, if there was one. And the seconds of the task that waited longest for
    the source, and of the one that worked longest in each stage, summed; the bytes that came from
    the source; and how many tasks had hosts that did something, in the first stage. And the files
    that were written, and by name the workers that wrote them. ``served`` are results by the bit of
    the query; None: not known. ``untimed`` are, by stream, tuples without an event time.
    """

    sizes: dict[int, Size] = field(default_factory=dict)
    places: dict[Place, Address] = field(default_factory=dict)
    hosts: dict[int, HostDid] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)
    matches: AgedMatches = field(default_factory=dict)
    key_counts: tuple[Mapping[int, int], ...] = ()
    source: float = 0.0
    kernels: float = 0.0
    harvested: Harvested | None = None
    source_bytes: int = 0
    tasks: int = 0
    files: dict[str, Seal] = field(default_factory=dict)
    workers: dict[str, str] = field(default_factory=dict)
    served: dict[int, int] | None = None
    untimed: dict[int, int] = field(default_factory=dict)


def merged(reports: Iterable[Report], streams: int) -> Outcome:
    """The reports of all tasks as one. Raises RuntimeError when replicas of a block differ."""
    outcome, keys = Outcome(), tuple[dict[int, int], ...]({} for _ in range(streams))
    stages: dict[int, float] = {}
    harvested: list[Harvested] = []
    served = outcome.served = dict[int, int]()
    for report in reports:
        harvested += [] if report.harvested is None else [report.harvested]
        outcome.source = max(outcome.source, report.source)
        outcome.source_bytes += report.source_bytes
        outcome.tasks += report.stage == 0 and bool(report.hosts)
        stages[report.stage] = max(stages.get(report.stage, 0.0), report.kernels)
        outcome.results += report.results
        _made(outcome, report)
        for host, counts in report.hosts.items():
            outcome.hosts.setdefault(host, HostDid()).add(counts)
        for m in report.matches:
            at: tuple[Visit, int] = ((m.visited, m.stream), m.age)
            pairs, found = outcome.matches.get(at, (0, 0))
            outcome.matches[at] = (pairs + m.pairs, found + m.found)
        for stream, key, tuples in report.key_counts:
            keys[stream][key] = keys[stream].get(key, 0) + tuples
        for bit, results in report.served.items():
            served[bit] = served.get(bit, 0) + results
        for stream, tuples in report.untimed.items():
            outcome.untimed[stream] = outcome.untimed.get(stream, 0) + tuples
    outcome.key_counts, outcome.kernels = keys, sum(stages.values())
    outcome.harvested = together(harvested) if harvested else None
    return outcome


def made(reports: Iterable[Report]) -> Outcome:
    """The outcome of making replicas alone. Raises RuntimeError when those of a block differ."""
    outcome = Outcome()
    for report in reports:
        _made(outcome, report)
    return outcome


def _made(outcome: Outcome, report: Report) -> None:
    outcome.files |= report.files
    outcome.workers |= dict.fromkeys(report.files, report.worker)
    for r in report.replicas:
        known = outcome.sizes.setdefault(r.block, r.size)
        if known.rows != r.size.rows:
            raise RuntimeError(
                f"replicas of block {r.block} differ: host {r.host} has {r.size.rows} rows, "
                f"another {known.rows}"
            )
        outcome.places[r.block, r.host] = r.address
