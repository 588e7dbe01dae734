"""A run that lives in a bucket, and the folder on this process's disk in which it is worked on.

The folder, the **mirror**, is as any run's (see store.py), new and empty when a process opens the
run, and gone when nobody there has the run any more. So the bucket alone says what the run is, and
its log of manifests alone what of it exists. What a batch is made of is put into the bucket before
its manifest is, and that only if none is there:

1. tasks put their block files and result files, before they report them;
2. the driver looks whether all that was reported is there, and puts the state;
3. of streams that do not end it puts Spark's checkpoint, which Spark keeps in the mirror, under the
   state's name: how far they were read is part of what the batch leaves;
4. it puts the manifest, which is the commit. Of two drivers one finds that there is one, and stops;
5. it deletes what no state names any more.

Objects have names of their own and are never changed, so it does not matter what a killed driver or
task leaves at whichever point, nor what a driver puts that does not know yet that it has lost the
run. Before the next driver deletes what is not named, it has taken over, by an entry of the log.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from braid.core import scratch
from braid.core.environment import environment
from braid.core.jsonl import line_of
from braid.core.report import Outcome
from braid.core.state import VERSION, Seal, State
from braid.engine import durable
from braid.engine.bucket import bucket, each
from braid.engine.bucketed import BucketDelivered, BucketLog, BucketOutput
from braid.engine.disk import disk
from braid.engine.durable import Damaged, Durability
from braid.engine.entries import Merged, Named
from braid.engine.log import OLD, Superseded, ours
from braid.engine.store import Store

_TRIES = 5
"""A driver that is taken over from may commit so many batches meanwhile."""
_OPENING = "opening.jsonl"


def opened(path: str | Path, durability: Durability = "power") -> Store:
    """The run in a folder, or in a bucket by its URL. Raises ValueError for what is neither."""
    return Mirror(str(path), durability) if in_bucket(path) else Store(path, durability)


def in_bucket(path: Any) -> bool:
    """Whether a run's place is a URL other than ``file://``."""
    return isinstance(path, str) and "://" in path and not path.startswith("file://")


class Mirror(Store):
    """The mirror of a run that lives in the bucket at a URL. Raises ValueError for a URL of none,
    and ModuleNotFoundError without what opens it.
    """

    def __init__(self, url: str, durability: Durability = "power") -> None:
        durable.checked(durability)
        self.bucket = bucket(url.rstrip("/"))
        super().__init__(scratch.folder("mirror"), "process")
        self._going = weakref.finalize(self, scratch.remove, self.path)
        self._going.atexit = False
        self.url = self.where = self.bucket.url
        self.log: BucketLog = BucketLog(self.commits, self.bucket)
        self.output = BucketOutput(self.path, self.bucket)
        self.delivered = BucketDelivered(self.delivered.file, self.bucket)
        self._input = ""
        self._there: set[str] = set()

    def query(self) -> dict[str, Any] | None:
        """The query that the bucket holds a run of, or None for one without objects; what has been
        committed is at hand then. Raises ValueError for a bucket that holds something else.
        """
        if not disk().exists(self.query_file):
            try:
                self.bucket.fetch("run.json", self.query_file)
            except FileNotFoundError:
                if self._has_nothing():
                    return None
                self.bucket.fetch("run.json", self.query_file)
            self._pull()
        found = super().query()
        self._input = found.get("input", "") if found else ""
        return found

    def _has_nothing(self) -> bool:
        """Return whether the bucket has nothing, or what a killed start has left; False if another
        driver has begun a run meanwhile. Raises ValueError if it has something else.
        """
        others = [n for n in self.bucket.names() if not n.startswith(("input/", "probe-"))]
        if others and "run.json" not in others:
            raise ValueError(
                f"{self.url} holds objects but no run of Braid, as {others[0]}; a new run needs a "
                "new or empty prefix"
            )
        return not others

    def _pull(self) -> None:
        """Bring what has been committed since the last time: the log, the last states, and how the
        run began.
        """
        for folder in (self.blocks, self.commits, self.input):
            disk().mkdir(folder)
        self.output.create()
        self.log.pull()
        states = [kept.state.name for kept in self.log.commits[-OLD:] if kept.state is not None]
        each(self._bring, [f"commits/{name}" for name in states])
        self._bring(_OPENING, self.told.path.name)

    def _bring(self, name: str, to: str = "") -> None:
        """Copy an object to the mirror, if it is there and not here."""
        file = self.path / (to or name)
        if not disk().exists(file):
            disk().mkdir(file.parent)
            try:
                self.bucket.fetch(name, file)
            except FileNotFoundError:
                return  # whoever needs the file says that it is missing

    def create(self, query: dict[str, Any]) -> None:
        """Write the settings of the run: here, and once it is ready, in the bucket; there after the
        copy of static input, under a name of its own. Raises RuntimeError when another driver has
        begun the run meanwhile.
        """
        super().create(query)
        if not query.get("ready"):
            return
        new = not self._input
        if new:
            self._input = environment().token()
            files = [*durable.below(self.input, "[!.]*")]
            self._put({f"{self._copy}/{f.relative_to(self.input).as_posix()}": f for f in files})
        body = durable.sealed({"v": VERSION, **query, "input": self._input})
        try:
            self.bucket.put("run.json", body, new)
        except FileExistsError:
            if self.bucket.get("run.json") != body:  # else the answer was lost, and it is its own
                raise RuntimeError(
                    f"another driver has begun the run in {self.url} meanwhile; this one stops"
                ) from None

    @property
    def _copy(self) -> str:
        """Where the copy of static input is in the bucket."""
        return f"input/{self._input}"

    def _put(self, files: Mapping[str, Path]) -> None:
        each(lambda name: self.bucket.put(name, files[name]), files)

    def check_driver(self) -> None:
        """The mirror is this process's alone; who has the bucket is asked where objects go."""

    def acquire(self) -> None:
        """Make the mirror this process's. Raises ValueError for a store on which two drivers could
        both commit. Who has the run is said by ``take_over``.
        """
        super().acquire()
        self.bucket.probe()

    def release(self) -> None:
        """Let go what only batches need."""
        super().release()
        for folder in (self.blocks, self.input):
            disk().rmtree(folder)

    def take_over(self) -> None:
        """Write into the log that this process goes on with the run from here, after whatever
        another driver has committed by now: that one stops before its next commit.
        """
        for last in range(_TRIES)[::-1]:
            self._pull()
            try:
                return super().take_over()
            except Superseded:
                if not last:
                    raise

    def clean(self) -> None:
        """Remove objects that no manifest names, left by killed tasks or a killed driver. What
        Braid has not named stays. Called after ``take_over``: nobody else puts what will be named,
        unless the run has been taken over again, which is looked for after the names were.

        Raises Damaged unless all that the log names is in the bucket with its length.
        """
        self._live = self._lives()
        self._there = set().union(*self._live.values())
        results = (f.name for kept in self.log.commits for f in kept.results)
        known, there = {*self._live, *self._there, *results}, self.bucket.names()
        for name, seal in self._named():
            if (size := there.get(name, -1)) != seal.bytes:
                raise Damaged(_amiss(self.url, name, size, seal))
        gone = [name for name in there if self._stray(PurePosixPath(name), known)]
        self.log.check()
        self.bucket.delete(gone)
        self._go_back()

    def _go_back(self) -> None:
        """Have Spark's checkpoint be that of the last commit."""
        state, last = self.state(), [kept.state for kept in self.log.commits][-1:]
        if not self.follows or state is None or last[0] is None:
            return
        saved = self.path / ".checkpoint.json"
        try:
            self.bucket.fetch(_spark(last[0].name), saved)
        except FileNotFoundError as error:
            raise Damaged(str(error)) from None
        self.checkpoint.restore(saved)
        self.checkpoint.check(state.epoch)

    def _stray(self, name: PurePosixPath, known: set[str]) -> bool:
        if name.parts[0] == "input":
            return name.parts[1] != self._input
        return (ours(name.name) and name.name not in known) or name.name.startswith("probe-")

    def snapshot(self, state: State) -> Named:
        """Put a state, which exists once a manifest names it."""
        named = super().snapshot(state)
        self.bucket.put(f"commits/{named.name}", self.commits / named.name)
        return named

    def present(self, outcome: Outcome) -> None:
        """Raise RuntimeError unless all files that tasks report are in the bucket, whole."""
        results = {*outcome.results}
        names = {n: f"{'results' if n in results else 'blocks'}/{n}" for n in outcome.files}
        sizes = each(lambda name: self.bucket.size(names[name]), names)
        for (name, seal), size in zip(outcome.files.items(), sizes, strict=True):
            if size != seal.bytes:
                raise RuntimeError(
                    f"a worker on {outcome.workers[name]} has put {names[name]}, but "
                    f"{_amiss(self.url, names[name], size, seal)}; all workers must reach the same "
                    "store as the driver"
                )
        self._there |= outcome.files.keys() - results

    def commit(
        self,
        batch: int,
        snapshot: Named,
        results: Mapping[str, Seal],
        happened: Iterable[Any],
    ) -> None:
        """Make a batch real by putting its manifest. All that it names must be in the bucket.

        Raises Superseded when another driver has the run.
        """
        if self.follows:
            if disk().exists(self.checkpoint.folder / "state"):
                raise RuntimeError(
                    f"a stream of the run in {self.url} keeps state in Spark, as one without "
                    "duplicates or with aggregates does, which a bucket does not get; keep the run "
                    "in a folder, or hand over streams without state"
                )
            self.bucket.put(_spark(snapshot.name), self.checkpoint.saved())
        super().commit(batch, snapshot, results, happened)

    def tidy(self, state: State, snapshot: Named) -> None:
        """After a commit: drop states but the last two, and block files that neither names."""
        before = {*self._live}
        super().tidy(state, snapshot)
        live = set[str]().union(*self._live.values())
        old, self._there = self._there - live, live
        states = [f"commits/{name}" for name in before - self._live.keys()]
        if self.follows:
            states += [_spark(name) for name in before - self._live.keys()]
        if states or old:
            self.log.check()
        self.bucket.delete([*states, *(f"blocks/{name}" for name in old)])

    def begin(self, opening: Sequence[Any] = ()) -> None:
        """Tell what has happened so far, here, and in the bucket how it began."""
        super().begin(opening)
        self.bucket.put(_OPENING, b"".join(map(line_of, opening)))

    def verify(self) -> None:
        """Bring the copy of static input, in the order in which Spark is to read it. What the log
        names is looked for by ``clean``: before the run is taken over, another driver may go on
        with it.
        """
        copied = self.bucket.names(self._copy)
        each(lambda name: self._bring(name, name.replace(self._copy, "input", 1)), copied)
        for file in durable.below(self.input, "[!.]*"):
            if file.suffix == ".parquet":
                disk().utime(file, float(file.stem))

    def _named(self) -> Iterable[tuple[str, Seal]]:
        """The result files of all batches and the block files of the last, with their seals."""
        for kept in self.log.commits:
            yield from ((f"results/{name}", seal) for name, seal in kept.results)
        if (state := self.state()) is not None:
            yield from ((f"blocks/{name}", seal) for name, seal in state.files.items())

    def bring(self) -> None:
        """Have all of the run here."""
        self.verify()
        each(self._bring, [name for name, _ in self._named()])

    def result_files(
        self,
        first: int | None = None,
        end: int | None = None,
        deep: bool = False,
        merged: bool = True,
    ) -> list[str]:
        """The result files of the batches from ``first`` up to, not with, ``end``, brought here.
        Raises Damaged where one is missing or has not its length, or its checksum if ``deep``.
        """
        wanted = range(max(first or 0, 0), self.log.batches if end is None else end)
        commits = [kept for kept in self.log.commits if kept.batch in wanted]
        each(self.output.path, (f.name for kept in commits for f in kept.results))
        return super().result_files(first, end, deep, merged)

    def lent(self, batch: int, deep: bool) -> list[str]:
        """The result files of a batch, in a folder of their own, where the next ones replace them:
        whoever is given every batch would have all results here in the end.
        """
        folder = self.path / "lent"
        disk().rmtree(folder)
        disk().mkdir(folder)
        files = {f.name: f.seal for f in self.log.commits[batch - self.log.first].results}
        try:
            each(lambda name: self.bucket.fetch(f"results/{name}", folder / name), files)
        except FileNotFoundError as error:
            raise Damaged(str(error)) from None
        for name, seal in files.items():
            durable.check(folder / name, seal, deep)
        return [str(folder / name) for name in files]

    def stay(self) -> None:
        """Leave the mirror there until this process ends."""
        self._going.detach()

    def _merge(self) -> list[Merged]:
        """Results are not merged there, nor is the log rolled up but here."""
        return []


def _spark(state: str) -> str:
    """The object that has Spark's checkpoint as it was with a state."""
    return f"checkpoint/{state}"


def _amiss(url: str, name: str, size: int, seal: Seal) -> str:
    if size < 0:
        return f"{url}/{name} is missing"
    return f"{url}/{name} is damaged: it has {size} bytes, {seal.bytes} were written"
