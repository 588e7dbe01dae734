"""Where a run lives: block files, result files, and one manifest per batch that alone says which of
them exist.

A run is a folder::

    run.json                     the query, as given
    input/ALIAS/000012.parquet   static input, one file per micro-batch
    checkpoint/                  Spark's own offsets
    blocks/*.arrow               block files, each written once by one task attempt
    new/*.parquet                result files, likewise, until their batch is committed
    results/*.parquet            result files of committed batches (see output.py)
    commits/000012.json          the manifest: the batch, its results, its events; the rename that
                                 puts it there is the commit
    commits/state-000012-*.json  live blocks, where their replicas lie, and the placement's state
    events.jsonl                 the events of all manifests in order, for reading along

A file that no manifest names does not exist, whatever a killed task or driver left behind.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import uuid
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from braid.core import codec, events
from braid.core.codec import typed
from braid.core.facts import Matches, Usage
from braid.core.plan import Block, Keys
from braid.core.query import Query
from braid.engine.output import Output


class Slot(NamedTuple):
    """Where a host finds its replica of a block: a record batch of a block file, and the routing
    keys that count there.
    """

    file: str
    index: int
    keys: Keys | None = None


@dataclass
class State:
    """What a batch leaves to the next: everything a placement's facts are made of, and where the
    replicas lie.

    ``batch`` counts our batches, ``epoch`` is the number of Spark's last micro-batch among them (a
    batch that only finishes a migration has none). ``latest`` is the greatest event time seen, by
    stream, in microseconds (None: nothing yet). ``owed`` is the cover ledger's account, kept when
    plans are checked. ``usage``, ``matches``, ``queries`` and ``key_counts`` are the facts of those
    names.
    """

    batch: int
    epoch: int
    blocks: dict[int, Block]
    slots: dict[tuple[int, int], Slot]
    next_id: int
    policy: Any
    received: list[int]
    received_bytes: list[int]
    last_received: list[int]
    latest: list[int | None]
    pinned: list[int] = field(default_factory=list)
    owed: list[list[int]] = field(default_factory=list)
    usage: tuple[Usage, ...] = ()
    matches: Matches = field(default_factory=dict)
    queries: tuple[Query, ...] = ()
    key_counts: tuple[dict[int, float], ...] = ()

    def to_json(self) -> dict[str, Any]:
        files = sorted({s.file for s in self.slots.values()})
        number = {name: i for i, name in enumerate(files)}
        plain = {
            k: v
            for k, v in vars(self).items()
            if k not in ("blocks", "slots", "usage", "matches", "queries", "key_counts")
        }
        facts = {
            "policy": codec.plain(self.policy),
            "usage": [astuple(u) for u in self.usage],
            "matches": [[*visit, *n] for visit, n in self.matches.items()],
            "queries": [astuple(q) for q in self.queries],
            "key_counts": [list(counts.items()) for counts in self.key_counts],
        }
        slots = [[*where, number[s.file], s.index, s.keys] for where, s in self.slots.items()]
        return (
            plain
            | facts
            | {"blocks": [astuple(b) for b in self.blocks.values()], "files": files, "slots": slots}
        )

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> State:
        files, blocks, slots = data.pop("files"), data.pop("blocks"), data.pop("slots")
        named = [
            Block(
                i,
                s,
                tuple(keys),
                batch,
                tuple(hosts),
                rows,
                size,
                None if span is None else tuple(span),
            )
            for i, s, keys, batch, hosts, rows, size, span in blocks
        ]
        where = {
            (b, h): Slot(files[f], i, None if keys is None else tuple(keys))
            for b, h, f, i, keys in slots
        }
        usage = tuple(Usage(*u) for u in data.pop("usage"))
        matches = {
            (tuple(visited), s): (pairs, found) for visited, s, pairs, found in data.pop("matches")
        }
        queries = tuple(
            Query(n, tuple(ws), tuple(sql), bit, tuple(since))
            for n, ws, sql, bit, since in data.pop("queries", ())
        )
        key_counts = tuple({key: n for key, n in counts} for counts in data.pop("key_counts", ()))
        facts = {"usage": usage, "matches": matches, "queries": queries, "key_counts": key_counts}
        return cls(blocks={b.id: b for b in named}, slots=where, **facts, **data)


class Store:
    """The folder of one run. One process at a time may hold it (``acquire``)."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.blocks, self.results = self.path / "blocks", self.path / "results"
        self.commits, self.input = self.path / "commits", self.path / "input"
        self.output = Output(self.path)
        self._lock: Any = None
        self._reading = threading.Lock()

    @property
    def query_file(self) -> Path:
        return self.path / "run.json"

    def query(self) -> dict[str, Any] | None:
        """The query that the folder holds a run of, or None for an empty or new folder.

        Raises ValueError for a folder that holds something else, so that nothing is overwritten.
        """
        if self.query_file.exists():
            return dict(json.loads(self.query_file.read_text()))
        if self.path.exists() and any(not f.name.startswith(".") for f in self.path.iterdir()):
            raise ValueError(
                f"{self.path} holds files but no run of Braid; a new run needs a new or empty "
                "folder"
            )
        return None

    def create(self, query: dict[str, Any]) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        _write(self.query_file, query)
        for folder in (self.blocks, self.results, self.commits, self.input):
            folder.mkdir(exist_ok=True)
        self.output.create()

    def acquire(self) -> None:
        """Hold the run for this process. Raises RuntimeError when another one has it; a killed
        process holds nothing.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        lock = open(self.path / ".lock", "w")  # noqa: SIM115 (held until release)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise RuntimeError(
                f"{self.path} is in use by a run that has not ended; stop that run first"
            ) from None
        self._lock = lock

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def committed(self) -> list[int]:
        return sorted(int(f.stem) for f in self.commits.glob("[0-9]*.json"))

    def manifest(self, batch: int) -> dict[str, Any]:
        return dict(json.loads((self.commits / f"{batch:06d}.json").read_text()))

    def state(self, policy: type = object) -> State | None:
        """The state after the last commit; None before the first. ``policy`` is the type of the
        placement's own state, which is left as it is stored without it.
        """
        committed = self.committed()
        if not committed:
            return None
        stored = (self.commits / self.manifest(committed[-1])["state"]).read_text()
        state = State.from_json(json.loads(stored))
        state.policy = typed(state.policy, policy, "the stored state of the placement")
        return state

    def snapshot(self, state: State) -> str:
        """Write a state, which exists once a manifest names it."""
        name = f"state-{state.batch:06d}-{uuid.uuid4().hex[:8]}.json"
        (self.commits / name).write_text(json.dumps(state.to_json(), separators=(",", ":")))
        return name

    def commit(
        self, batch: int, snapshot: str, results: list[str], happened: Iterable[Any]
    ) -> None:
        """Make a batch real by putting its manifest into place; then others see its results."""
        lines = [events.to_dict(e) for e in happened]
        manifest = {"batch": batch, "state": snapshot, "results": results, "events": lines}
        with self._reading:
            _write(self.commits / f"{batch:06d}.json", manifest)
            self.output.publish(batch, results)

    def tidy(self, state: State, snapshot: str) -> None:
        """After a commit: drop older states, and block files that the state no longer names."""
        for old in self.commits.glob("state-*.json"):
            if old.name != snapshot:
                old.unlink()
        live = {slot.file for slot in state.slots.values()}
        for file in self.blocks.iterdir():
            if file.name not in live:
                file.unlink()

    def clean(self) -> None:
        """Remove files that no manifest names (left by killed tasks or a killed driver), and let
        others see all results that one does.
        """
        self.output.recover((b, self.manifest(b)["results"]) for b in self.committed())
        state = self.state()
        blocks = {slot.file for slot in state.slots.values()} if state else set()
        for file in self.blocks.iterdir():
            if file.name not in blocks:
                file.unlink()

    def result_files(self, first: int = 0, end: int | None = None) -> list[str]:
        """The result files of the batches from ``first`` up to, not with, ``end``."""
        with self._reading:
            batches = [b for b in self.committed() if b >= first and (end is None or b < end)]
            return [self.output.path(f) for b in batches for f in self.manifest(b)["results"]]

    def history(self) -> list[Any]:
        """The events of all committed batches, in order."""
        return [
            events.from_dict(line) for b in self.committed() for line in self.manifest(b)["events"]
        ]


def _write(path: Path, value: Any) -> None:
    """Write JSON so that the file is there whole or not at all, also after a crash of the
    machine.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    with open(temporary, "w") as f:
        json.dump(value, f, separators=(",", ":"))
        f.flush()
        os.fsync(f.fileno())
    os.replace(temporary, path)
