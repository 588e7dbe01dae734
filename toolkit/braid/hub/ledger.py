"""What a hub remembers, in one file that is replaced whole: what is deployed, its queries, how far
it is. The file is the truth: what it does not name does not exist.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from braid.core import events, jsonl
from braid.core.codec import typed
from braid.core.state import check_version
from braid.engine import durable
from braid.papers.reuse.deployment import Deployment
from braid.papers.reuse.stored import from_plain, to_plain

VERSION = 3


@dataclass
class Span:
    """By which demand of which operator a query is answered: in the batches of Spark from ``first``
    up to, not with, ``end``; None: still. ``where`` is the compensation: Spark SQL over a plain
    table of results (flat.py).
    """

    operator: int
    version: int
    bit: int
    first: int
    end: int | None = None
    where: str | None = None


@dataclass
class Served:
    """A query that is or was served; ``number`` is its own. ``since`` and ``until`` are event times
    (microseconds) between which its ticks are; ``lifetime`` in microseconds of event time.
    ``complete`` says by stream from which event time on all tuples that it can use were held; None:
    all. ``end`` is the batch from which on it is answered no longer, and ``reason`` says why.
    """

    number: int
    name: str
    sql: str
    windows: Any
    every: str | None
    sink: str
    match: str
    spans: list[Span]
    complete: dict[str, int | None]
    lifetime: int | None = None
    since: int | None = None
    until: int | None = None
    end: int | None = None
    reason: str = ""


@dataclass
class Ledger:
    """All that a hub remembers. ``epoch`` is the last batch that all operators have. By stream:
    ``clocks`` (how far event time has come) with the times ``pending`` that are too far ahead to
    move them, ``first`` event times, ``counted`` tuples and bytes, the batches that ``history``
    has with their latest event times, and ``floor``, the event time from which on history has all;
    None: it has all. ``down`` are the nodes that have failed. ``told`` are the events of the last
    commit, of ``lines`` in all.
    """

    epoch: int = -1
    clocks: dict[str, int | None] = field(default_factory=dict)
    pending: dict[str, tuple[int, ...]] = field(default_factory=dict)
    first: dict[str, int | None] = field(default_factory=dict)
    counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    history: dict[str, list[tuple[int, int | None]]] = field(default_factory=dict)
    floor: dict[str, int | None] = field(default_factory=dict)
    queries: list[Served] = field(default_factory=list)
    down: list[str] = field(default_factory=list)
    told: list[dict[str, Any]] = field(default_factory=list)
    lines: int = 0
    deployment: Deployment = field(default_factory=lambda: Deployment({}))

    @classmethod
    def read(cls, path: Path) -> Ledger | None:
        """From its file; None if there is none. Raises ValueError for another version's."""
        if not path.exists():
            return None
        found = json.loads(path.read_text())
        check_version(found.pop("v", None), f"the hub in {path.parent}", VERSION)
        deployment = from_plain(found.pop("deployment"))
        ledger = typed({**found, "deployment": {"at": {}}}, cls, f"the hub in {path.parent}")
        ledger.deployment = deployment
        return ledger

    def write(self, path: Path, happened: Sequence[events.Event] = ()) -> None:
        """Replace the file: that is the commit of whatever changed, and of what happened."""
        self.told = [jsonl.to_dict(e) for e in happened]
        self.lines += len(self.told)
        durable.put(path, json.dumps({"v": VERSION, **self._plain()}).encode(), force=True)

    def _plain(self) -> dict[str, Any]:
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["queries"] = [asdict(q) for q in self.queries]
        return {**plain, "deployment": to_plain(self.deployment)}

    def copy(self) -> Ledger:
        """One that can be changed by itself; what is deployed is shared, as it never changes."""
        return replace(
            self,
            clocks=dict(self.clocks),
            pending=dict(self.pending),
            first=dict(self.first),
            counted=dict(self.counted),
            history={stream: list(kept) for stream, kept in self.history.items()},
            floor=dict(self.floor),
            queries=[replace(q, spans=list(map(replace, q.spans))) for q in self.queries],
            down=list(self.down),
        )

    def serving(self, name: str) -> Served | None:
        """The query of that name that is served now."""
        return next((q for q in self.queries if q.name == name and q.end is None), None)

    @property
    def served(self) -> list[Served]:
        """The queries that are served now."""
        return [q for q in self.queries if q.end is None]

    def latest(self, stream: str) -> int | None:
        """Return the latest event time of a stream, right or wrong; None: it has not begun."""
        return max(self.pending.get(stream, ()), default=self.clocks.get(stream))

    def progress(self, streams: Sequence[str], slack: int) -> int | None:
        """The event time up to which all of these streams have come; None: some has not begun."""
        came = [self.clocks.get(s) for s in streams]
        if None in came:
            return None
        return min(t for t in came if t is not None) - slack


def catch_up(path: Path, ledger: Ledger) -> None:
    """Have the file of events say what the ledger says: a crash may come between the two."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    whole = [line for line in lines if line.endswith(b"\n")][: ledger.lines]
    missing = ledger.lines - len(whole)
    told = (
        [jsonl.from_dict(d) for d in ledger.told[len(ledger.told) - missing :]] if missing else []
    )
    path.write_bytes(b"".join(whole))
    jsonl.write(path, told, append=True)
