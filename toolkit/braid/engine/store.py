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

run.json, manifests and states carry the version of their format; another one is refused. A file
that no manifest names does not exist, whatever a killed task or driver left behind.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from braid.core import events
from braid.core.state import VERSION, State, check_version, decode, encode
from braid.engine import files
from braid.engine.output import Output


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
        """Where the settings of the run are."""
        return self.path / "run.json"

    def query(self) -> dict[str, Any] | None:
        """The query that the folder holds a run of, or None for an empty or new folder.

        Raises ValueError for a folder that holds something else, so that nothing is overwritten.
        """
        if self.query_file.exists():
            query = dict(json.loads(self.query_file.read_text()))
            check_version(query.pop("v", None), f"the run in {self.path}")
            return query
        if self.path.exists() and any(not f.name.startswith(".") for f in self.path.iterdir()):
            raise ValueError(
                f"{self.path} holds files but no run of Braid; a new run needs a new or empty "
                "folder"
            )
        return None

    def create(self, query: dict[str, Any]) -> None:
        """Make the folders of a run, and write its settings."""
        self.path.mkdir(parents=True, exist_ok=True)
        _write(self.query_file, {"v": VERSION, **query})
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
        """Let other processes have the run, and its block files go."""
        files.close_all(self.blocks)
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def committed(self) -> list[int]:
        """The numbers of the batches that are committed, rising."""
        return sorted(int(f.stem) for f in self.commits.glob("[0-9]*.json"))

    def manifest(self, batch: int) -> dict[str, Any]:
        """What the commit of a batch says. Raises ValueError for another version's."""
        found = dict(json.loads((self.commits / f"{batch:06d}.json").read_text()))
        check_version(found.get("v"), f"the manifest of batch {batch} in {self.path}")
        return found

    def state(self, policy: type = object, shedding: type = object) -> State | None:
        """The state after the last commit; None before the first. ``policy`` and ``shedding`` are
        the types of the placement's own state and of the shedder's, which are left as they are
        stored without it.
        """
        committed = self.committed()
        if not committed:
            return None
        stored = self.commits / self.manifest(committed[-1])["state"]
        return decode(stored.read_bytes(), policy, shedding)

    def snapshot(self, state: State) -> str:
        """Write a state, which exists once a manifest names it."""
        name = f"state-{state.batch:06d}-{uuid.uuid4().hex[:8]}.json"
        (self.commits / name).write_bytes(encode(state))
        return name

    def commit(
        self, batch: int, snapshot: str, results: list[str], happened: Iterable[Any]
    ) -> None:
        """Make a batch real by putting its manifest into place; then others see its results."""
        lines = [events.to_dict(e) for e in happened]
        named = {"state": snapshot, "results": results, "events": lines}
        manifest = {"v": VERSION, "batch": batch, **named}
        with self._reading:
            _write(self.commits / f"{batch:06d}.json", manifest)
            self.output.publish(batch, results)

    def tidy(self, state: State, snapshot: str) -> None:
        """After a commit: drop older states, and block files that the state no longer names."""
        for old in self.commits.glob("state-*.json"):
            if old.name != snapshot:
                old.unlink()
        live = {address.file for address in state.places.values()}
        gone = [file for file in self.blocks.iterdir() if file.name not in live]
        for file in gone:
            file.unlink()
        files.close(gone)

    def clean(self) -> None:
        """Remove files that no manifest names (left by killed tasks or a killed driver), and let
        others see all results that one does.
        """
        self.output.recover((b, self.manifest(b)["results"]) for b in self.committed())
        state = self.state()
        blocks = {address.file for address in state.places.values()} if state else set()
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
        f.write(json.dumps(value, separators=(",", ":")))  # dump would go without C
        f.flush()
        os.fsync(f.fileno())
    os.replace(temporary, path)
