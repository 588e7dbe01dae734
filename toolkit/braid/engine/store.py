"""Where a run lives: block files, result files, and a log of manifests that alone says which of
them exist.

A run is a folder::

    run.json                     the query, as given
    input/ALIAS/000012.parquet   static input, one file per micro-batch
    input/files.json             their lengths and checksums
    checkpoint/                  Spark's own offsets
    blocks/*.arrow               block files, each written once by one task attempt
    new/*.parquet                result files, likewise, until their batch is committed
    results/*.parquet            result files of committed batches (see output.py)
    merged/*.parquet             the results of many batches in few files (see merging.py)
    commits/000012.json          the log (see log.py): a batch, its results, its events; the link
                                 that puts it there is the commit
    commits/state-000012-*.json  live blocks, where their replicas lie, and the placement's state
    events.jsonl                 the events of all manifests in order, for reading along
    delivered.json               how far results have been given to the run's sink, if it has one

What Braid writes as JSON ends with its checksum and has the version of its format; another version
is refused. Of block files, result files and states, whoever names them has the length and the
checksum. A file that no manifest names does not exist, whatever a killed task or driver left
behind.

**Durability before visibility**: with ``durability="power"`` every file that a manifest names, and
the folder that it is in, is forced to disk before the manifest is, and that before anybody is told
of the batch. With "process" the system writes it all when it likes: a commit then outlives the end
of the process, but not a power cut.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
import time
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

import msgspec

from braid.core import events
from braid.core.log import LOGGER
from braid.core.report import Outcome
from braid.core.state import VERSION, Seal, State, decode, encode
from braid.engine import durable, files
from braid.engine.checkpoint import Checkpoint
from braid.engine.copied import Copied
from braid.engine.delivered import Delivered
from braid.engine.durable import Damaged, Durability
from braid.engine.keeping import Keep, dropped
from braid.engine.log import OLD, Driver, Kept, Log, Manifest, Merged, Named, ours
from braid.engine.merging import Merging, of_many
from braid.engine.output import Output
from braid.engine.told import Told

_EVERY = 500
"""So many commits are rolled up at once, and their results merged."""
_ASKING = 0.05
"""Seconds, in which whoever has just asked whether a run is held has done so."""


class Store:
    """The folder of one run. One process at a time may hold it (``acquire``). A run that lives in
    an object store has a Mirror instead (mirror.py).

    Raises ValueError for a path that is none of this machine's.
    """

    url = ""
    """The bucket that the run lives in; "": none but this folder."""
    follows = False
    """Whether Spark's checkpoint is kept in the bucket, with each state."""

    def __init__(self, path: str | Path, durability: Durability = "power") -> None:
        self.path = local(path)
        self.force = checked(durability) == "power"
        self.blocks, self.results = self.path / "blocks", self.path / "results"
        self.commits, self.input = self.path / "commits", self.path / "input"
        self.where = str(self.path)
        self.log, self.copied = Log(self.commits, self.path), Copied(self.input)
        self.output, self.merging = Output(self.path), Merging(self.path)
        self.checkpoint = Checkpoint(self.path / "checkpoint")
        self._lock: Any = None
        self._reading = threading.Lock()
        self._live: dict[str, frozenset[str]] = {}
        self.told = Told(self.path / "events.jsonl")
        self.delivered = Delivered(self.path / "delivered.json", self.force)
        self._opening = -1
        self.keep: Keep | None = None
        self._ends: dict[int, tuple[int, int]] = {}
        self._seen: tuple[tuple[int, int] | None, list[list[str]]] = None, []

    @property
    def query_file(self) -> Path:
        """Where the settings of the run are."""
        return self.path / "run.json"

    def query(self) -> dict[str, Any] | None:
        """The query that the folder holds a run of, or None for an empty or new folder.

        Raises ValueError for a folder that holds something else, so that nothing is overwritten.
        """
        if self.query_file.exists():
            query = msgspec.json.decode(
                durable.opened(self.query_file, f"the run in {self.path}"), type=dict[str, Any]
            )
            return {k: v for k, v in query.items() if k not in ("v", "crc")}
        if self.path.exists() and any(not f.name.startswith(".") for f in self.path.iterdir()):
            raise ValueError(
                f"{self.path} holds files but no run of Braid; a new run needs a new or empty "
                "folder"
            )
        return None

    def create(self, query: dict[str, Any]) -> None:
        """Make the folders of a run, and write its settings."""
        self._folder()
        for folder in (self.blocks, self.results, self.commits, self.input):
            folder.mkdir(exist_ok=True)
        self.output.create()
        durable.put(self.query_file, durable.sealed({"v": VERSION, **query}), self.force)

    def _folder(self) -> None:
        """Make the run's own folder, and those above it."""
        above = [self.path, *self.path.parents]
        made = [folder for folder in above if not folder.exists()]
        self.path.mkdir(parents=True, exist_ok=True)
        for folder in made if self.force else ():
            durable.sync(folder.parent)

    def acquire(self) -> None:
        """Hold the run for this process; a killed process holds nothing. Raises RuntimeError when
        another one has it, and ValueError when its folder cannot be written to.
        """
        try:
            self._folder()
            lock = open(self.path / ".lock", "w")  # noqa: SIM115 (held until release)
        except OSError as error:
            raise ValueError(
                f"the run's folder {self.path} cannot be made or written to: {error.strerror}; "
                "give another"
            ) from error
        mine = _locked(lock, fcntl.LOCK_EX)
        if not mine:
            time.sleep(_ASKING)
            mine = _locked(lock, fcntl.LOCK_EX)
        if not mine:
            lock.close()
            raise RuntimeError(
                f"{self.path} is in use by a run that has not ended; stop that run first"
            )
        self._lock = lock

    def held(self) -> bool:
        """Whether some process holds the run."""
        file = self.path / ".lock"
        if not file.exists():
            return False
        with open(file) as lock:
            return not _locked(lock, fcntl.LOCK_SH)

    def release(self) -> None:
        """Let other processes have the run, and its block files go."""
        files.close_all(self.blocks)
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def take_over(self) -> None:
        """Write into the log that this process goes on with the run from here: a driver that had it
        before, and does not know that it has lost it, cannot commit any more.
        """
        self.log.append(self.force, driver=Driver.here())

    def _held(self) -> None:
        """Raise RuntimeError if the lock that this process holds is no longer that of the run."""
        if self._lock is None:
            return
        file = self.path / ".lock"
        if not file.exists() or not os.path.samestat(os.fstat(self._lock.fileno()), file.stat()):
            raise RuntimeError(
                f"{file} has been removed or replaced, so that another driver may have the run; "
                "this one stops"
            )

    def committed(self) -> list[int]:
        """The numbers of the batches that are committed, rising."""
        with self._reading:
            self.log.refresh()
            return [*range(self.log.batches)]

    def manifest(self, batch: int) -> Manifest:
        """What the commit of a batch says, as long as it is not rolled up. Raises ValueError for
        another version's.
        """
        self.log.refresh()
        return self.log.read(self.log.commits[batch - self.log.first].entry)

    def state(self, policy: type = object, shedding: type = object) -> State | None:
        """The state after the last commit; None before the first. ``policy`` and ``shedding`` are
        the types of the placement's own state and of the shedder's, which are left as they are
        stored without it.
        """
        self.log.refresh()
        commits = self.log.commits
        return self.state_of(commits[-1], policy, shedding) if commits else None

    def state_of(self, kept: Kept, policy: type = object, shedding: type = object) -> State:
        """The state after a commit. Raises Damaged for what is not that, or has been removed."""
        assert kept.state is not None, "the last commits are not rolled up"
        name, seal = kept.state
        durable.check(self.commits / name, seal)
        return decode((self.commits / name).read_bytes(), policy, shedding)

    def snapshot(self, state: State) -> Named:
        """Write a state, which exists once a manifest names it."""
        name, body = f"state-{state.batch:06d}-{uuid.uuid4().hex[:8]}.json", encode(state)
        durable.write(self.commits / name, body, self.force)
        return Named(name, Seal(len(body), zlib.crc32(body)))

    def present(self, outcome: Outcome) -> None:
        """Raise RuntimeError unless all files that tasks report are there, whole."""
        for name, seal in outcome.files.items():
            folder = self.output.new if name in outcome.results else self.blocks
            try:
                durable.check(folder / name, seal, deep=False)
            except Damaged as damaged:
                raise RuntimeError(
                    f"a worker on {outcome.workers[name]} has written {name}, but here {damaged}; "
                    f"all workers must share the folder {self.path} with the driver"
                ) from None

    def commit(
        self,
        batch: int,
        snapshot: Named,
        results: Mapping[str, Seal],
        happened: Iterable[Any],
    ) -> None:
        """Make a batch real by putting its manifest into place; then others see its results. All
        that it names must be on disk, but for the names in the folders.

        Raises RuntimeError when another driver may have the run, and Superseded when one has.
        """
        lines = [events.to_dict(e) for e in happened]
        named = tuple(Named(*each) for each in results.items())
        with self._reading:
            self._held()
            if self.force:
                for folder in (self.blocks, self.results, self.output.new, self.commits):
                    durable.sync(folder)
                self.checkpoint.sync()
            self.log.append(self.force, snapshot, named, lines)
            self.output.publish(batch, [*results])

    def tidy(self, state: State, snapshot: Named) -> None:
        """After a commit: drop states but the last two, and block files that neither names."""
        self._live[snapshot.name] = frozenset(state.files)
        for old in [*self._live][:-OLD]:
            (self.commits / old).unlink(missing_ok=True)
            del self._live[old]
        live = frozenset[str]().union(*self._live.values())
        gone = [f for f in self.blocks.iterdir() if f.name not in live and ours(f.name)]
        for file in gone:
            file.unlink()
        files.close(gone)

    def clean(self) -> None:
        """Remove files that no manifest names (left by killed tasks or a killed driver), and let
        others see all results that one does. What Braid has not named stays.
        """
        self.log.refresh()
        later = [[f.name for f in kept.results] for kept in self.log.commits]
        self.log.forgo(self.force)
        self.merging.recover(self.log.merged)
        self.output.recover(self.log.merged, later, self.merged_files)
        self._live = self._lives()
        live = {*self._live}.union(*self._live.values())
        for folder in (self.blocks, self.commits):
            for file in folder.iterdir():
                if (ours(file.name) and file.name not in live) or _TEMPORARY.fullmatch(file.name):
                    file.unlink()

    def _lives(self) -> dict[str, frozenset[str]]:
        """By name of the last states, the block files that they name. Raises Damaged where the last
        one is damaged; without one before it, the run merely cannot go back.
        """
        found = dict[str, frozenset[str]]()
        for left, kept in enumerate(self.log.commits[-1 : -OLD - 1 : -1]):
            try:
                if kept.state is not None:
                    found[kept.state.name] = frozenset(self.state_of(kept).files)
            except Damaged as damaged:
                if not left:
                    raise
                LOGGER.warning("%s; the run cannot go back to batch %d", damaged, kept.batch)
        return dict(reversed(found.items()))

    def merged_files(self) -> list[list[str]]:
        """By batch, the files in results/ of those that are merged too. Raises Damaged where some
        are missing.
        """
        found = self.output.listed(self.log.first)
        found[: self.log.since] = [[] for _ in range(self.log.since)]
        for merged in self.log.merged:
            there = sum(map(len, found[merged.first : merged.end]))
            if there != merged.files:
                raise Damaged(
                    f"{self.results} is damaged: it has {there} files of the batches "
                    f"{merged.first} to {merged.end - 1}, {merged.files} were written"
                )
        return found

    def verify(self) -> None:
        """Raise Damaged unless all that the log names is there with its length. What is in the
        files is checked as they are opened.
        """
        self.log.refresh()
        for named in self.named():
            self.check_result(named)
        later = sum(len(kept.results) for kept in self.log.commits)
        if not self.output.has(sum(m.files for m in self.log.merged) + later):
            self.merged_files()
        if (state := self.state()) is not None:
            for name, seal in state.files.items():
                durable.check(self.blocks / name, seal, deep=False)

    def named(self) -> list[Named]:
        """The result files that the log names: those of merged batches in few parts."""
        parts = [part for merged in self.log.merged for part in merged.parts]
        return parts + [named for kept in self.log.commits for named in kept.results]

    def check_result(self, named: Named, deep: bool = False) -> str:
        """Where a result file is. Raises Damaged unless it has its length, and its checksum if
        ``deep``.
        """
        many = of_many(named.name)
        file = self.merging.path(named.name) if many else Path(self.output.path(named.name))
        durable.check(file, named.seal, deep)
        return str(file)

    def result_files(
        self,
        first: int | None = None,
        end: int | None = None,
        deep: bool = False,
        merged: bool = True,
    ) -> list[str]:
        """The result files of the batches from ``first`` (None: the first that is kept) up to, not
        with, ``end``, in order; of many batches in one file where all of them are asked for, unless
        ``merged`` is False. Raises Damaged where one has not its length, or its checksum if
        ``deep``; ValueError where some of the batches are no longer kept.
        """
        with self._reading:
            self.log.refresh()
            end = self.log.batches if end is None else end
            since = self.log.since
            if first is not None and max(first, 0) < min(since, end):
                raise ValueError(
                    f"the results of batch {first} are no longer kept; those from batch {since} on "
                    "are"
                )
            wanted = range(since if first is None else max(first, 0), end)
            found = self._of_merged(wanted, deep, merged)
            late = [kept for kept in self.log.commits if kept.batch in wanted]
            return found + [self.check_result(f, deep) for kept in late for f in kept.results]

    def lent(self, batch: int, deep: bool) -> list[str]:
        """The result files of a batch, as ``result_files``; they need not be there any more when
        those of another batch have been asked for.
        """
        return self.result_files(batch, batch + 1, deep, merged=False)

    def stay(self) -> None:
        """Leave the result files where they are until this process ends: they are still read."""

    def _of_merged(self, wanted: range, deep: bool, merged: bool) -> list[str]:
        """The files of those of the wanted batches that are merged."""
        found = list[str]()
        for group in self.log.merged:
            within = range(max(group.first, wanted.start), min(group.end, wanted.stop))
            if merged and within == range(group.first, group.end):
                found += [self.check_result(part, deep) for part in group.parts]
            elif within:
                listed = self._listed()
                found += [str(self.results / name) for b in within for name in listed[b]]
        return found

    def _listed(self) -> list[list[str]]:
        """``merged_files``, asked once for each roll-up."""
        known = self.log.since, self.log.first
        if self._seen[0] != known:
            self._seen = known, self.merged_files()
        return self._seen[1]

    def history(self) -> list[Any]:
        """The events of all committed batches, in order."""
        self.log.refresh()
        found, rolled = [], self.log.rolled
        if rolled is not None:
            told = Told(self.told.path)
            told.look(rolled.archive)
            found += told.since(rolled.opening)
        return [*found, *(e for kept in self.log.unrolled() for e in self._events(kept))]

    def _events(self, kept: Kept) -> list[Any]:
        return [events.from_dict(line) for line in self.log.read(kept.entry).events]

    def begin(self, opening: Sequence[Any] = ()) -> None:
        """Tell what has happened so far, after some ``opening`` events: in events.jsonl."""
        self.log.refresh()
        if (rolled := self.log.rolled) is not None:
            self.told.look(rolled.archive, and_cut=True)
            self._opening = rolled.opening
        else:
            self.told.path.write_bytes(b"")
            self.told.append(opening)
            self._opening = len(opening)
        for kept in self.log.unrolled():
            self.told.again(self.log.read(kept.entry).events)
            self._ends[kept.entry] = self.told.count, self.told.size
        self.told.fill()

    @property
    def begun(self) -> bool:
        """Whether what has happened so far has been told."""
        return self._opening >= 0

    def tell(self, happened: Sequence[Any]) -> None:
        """Tell the events of the last commit; now and then, roll up those before it."""
        self.told.append(happened)
        self._ends[self.log.commits[-1].entry] = self.told.count, self.told.size
        if len(waiting := self.log.unrolled()) >= _EVERY + OLD:
            self._roll(waiting[-OLD - 1].entry)

    def _roll(self, entry: int) -> None:
        """Sum up the log up to the commit in an entry, and merge the results of its batches."""
        before = self.log.rolled.archive if self.log.rolled else None
        merged = self._merge()
        if self.force:
            durable.sync(self.told.path)
        with self._reading:
            archive, since = self.told.archive(before, *self._ends[entry]), self.log.since
            whole = [*self.log.merged, *merged]
            self.log.roll(archive, self._opening, whole[self._old(whole) :], self.force)
            self.merging.show(merged)
            if self.log.since > since:
                self.log.forgo(self.force)
                self.output.drop(since, self.log.since)
                self.merging.recover(self.log.merged)
                LOGGER.info("results are kept from batch %d on", self.log.since)
        self._ends = {n: end for n, end in self._ends.items() if n > entry}

    def _old(self, merged: Sequence[Merged]) -> int:
        """How many of the first groups of merged batches are not kept. A sink is promised all that
        it has not had; and what is merged only now stays, so that the roll-up before can stand in.
        """
        if self.keep is None:
            return 0
        end = merged[-1].end if merged else 0
        later = sum(f.seal.bytes for k in self.log.commits if k.batch >= end for f in k.results)
        sink = self.delivered.file.exists()
        try:
            promised = min(self.delivered.last + 1, self.log.first) if sink else self.log.first
        except Damaged as damaged:
            LOGGER.error("all results are kept: %s", damaged)
            return 0
        return dropped(self.keep, merged, later, _now(), promised)

    def _merge(self) -> list[Merged]:
        """Write the results of batches once more, as few files, for the next roll-up. It is always
        the same batches that come together, so that a file that has to be made again is the same.
        """
        made, waiting = list[Merged](), self.log.commits[:-OLD]
        some = _EVERY - self.log.first % _EVERY
        while len(waiting) >= some:
            made.append(self.merging.merge(waiting[:some], self.force, _now()))
            waiting, some = waiting[some:], _EVERY
        return made


def _now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def _locked(file: IO[str], how: int) -> bool:
    """Lock an open file, unless another process's lock is in the way."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_TEMPORARY = re.compile(r"\.\d{6,}\.json\.[0-9a-f]{8}")


def local(path: str | Path) -> Path:
    """The folder that a path or a URL ``file://`` means. Raises ValueError for another URL."""
    text = str(path)
    if re.match(r"file:/", text):
        return Path(unquote(urlsplit(text).path)).absolute()
    if re.match(r"[A-Za-z][\w+.-]+:/", text):
        raise ValueError(
            f"{text} is no folder of this machine; a run needs one that it and all workers have, "
            "by a path or file://"
        )
    return Path(path).absolute()


def checked(durability: str) -> str:
    """What a commit outlives. Raises ValueError for an unknown one."""
    if durability not in durable.DURABILITIES:
        raise ValueError(
            f"durability is {durability!r}; it must be one of {', '.join(durable.DURABILITIES)}"
        )
    return durability
