"""What a run tells as it goes on, in events.jsonl, and how its log is rolled up now and then: the
results of the batches that a roll-up sums up are merged, and where they are kept for a time only,
the oldest go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from braid.core.environment import environment
from braid.core.jsonl import event_of
from braid.core.log import LOGGER
from braid.core.work import workers
from braid.engine import durable
from braid.engine.delivered import Delivered
from braid.engine.disk import disk
from braid.engine.durable import Damaged
from braid.engine.keeping import Keep, dropped
from braid.engine.log import OLD, Kept, Merged
from braid.engine.readable import Readable
from braid.engine.told import Told

_EVERY = 500
"""So many commits are rolled up at once, and their results merged."""


class Rolling(Readable):
    """The log, events and results of the run in the folder ``path``, where one process adds to
    them; what it writes is on disk if ``force``.
    """

    def __init__(self, path: Path, force: bool) -> None:
        super().__init__(path)
        self.force = force
        self.told = Told(path / "events.jsonl")
        self.delivered = Delivered(path / "delivered.json", force)
        self.begun = False
        """Whether what has happened so far has been told."""
        self.keep: Keep | None = None
        self._ends: dict[int, tuple[int, int]] = {}

    def history(self) -> list[Any]:
        """The events of all committed batches, in order."""
        self.log.refresh()
        found, rolled = [], self.log.rolled
        if rolled is not None:
            told = Told(self.told.path, opening=rolled.opening)
            told.look(rolled.archive)
            found += told.since(rolled.opening)
        return [*found, *(e for kept in self.log.unrolled() for e in self._events(kept))]

    def _events(self, kept: Kept) -> list[Any]:
        return [event_of(line) for line in self.log.read(kept.entry).events]

    def begin(self, opening: Sequence[Any] = ()) -> None:
        """Tell what has happened so far, after some ``opening`` events: in events.jsonl."""
        self.log.refresh()
        if (rolled := self.log.rolled) is not None:
            self.told.opening = rolled.opening
            self.told.look(rolled.archive, and_cut=True)
        else:
            disk().write(self.told.path, b"")
            self.told.append(opening)
            self.told.opening = len(opening)
        for kept in self.log.unrolled():
            self.told.again(self.log.read(kept.entry).events)
            self._ends[kept.entry] = self.told.count, self.told.size
        self._drop_events()
        self.begun = True

    def _drop_events(self) -> None:
        """Keep events no longer than results."""
        if (since := self.log.since) and self.told.drop(since, self.force):
            LOGGER.info("events are kept from batch %d on", since)

    def check_told(self) -> None:
        """Raise Damaged unless events are what was written, as far as they are rolled up."""
        if (rolled := self.log.rolled) is not None:
            Told(self.told.path, opening=rolled.opening).check(rolled.archive)

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
        with self.reading:
            archive, since = self.told.archive(before, *self._ends[entry]), self.log.since
            whole = [*self.log.merged, *merged]
            self.log.roll(archive, self.told.opening, whole[self._old(whole) :], self.force)
            self.merging.show(merged)
            if self.log.since > since:
                self.log.forgo(self.force)
                self._logs(partial(self.output.drop, since, self.log.since))
                self.merging.recover(self.log.merged)
                LOGGER.info("results are kept from batch %d on", self.log.since)
        self._drop_events()
        self._ends = {n: end for n, end in self._ends.items() if n > entry}

    def _old(self, merged: Sequence[Merged]) -> int:
        """How many of the first groups of merged batches are not kept. A sink is promised all that
        it has not had; and what is merged only now stays, so that the roll-up before can stand in.
        """
        if self.keep is None:
            return 0
        end = merged[-1].end if merged else 0
        later = sum(f.seal.bytes for k in self.log.commits if k.batch >= end for f in k.results)
        sink = disk().exists(self.delivered.file)
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
            thread = workers().shared("braid-merge", 1)  # whenever a run starts, Spark has another
            merging = thread.submit(self.merging.merge, waiting[:some], self.force, _now())
            made.append(merging.result())
            waiting, some = waiting[some:], _EVERY
        return made

    def _logs(self, change: Callable[[], None]) -> None:
        """Change Spark's log; where it is damaged, after it has been written anew."""
        try:
            change()
        except Damaged as damaged:
            LOGGER.warning("%s, which is done now", damaged)
            self.log_anew()
            change()

    def log_anew(self) -> None:
        """Write Spark's log anew, with the files of all batches that are kept. Raises Damaged where
        some of them are missing.
        """
        later = [[f.name for f in kept.results] for kept in self.log.commits]
        self.output.again(self._earlier(), later)

    def _earlier(self) -> list[list[str]]:
        """By batch, the files of those that are merged, of the names that Spark's log has."""
        return self.merged_files(self.output.sizes())


def _now() -> int:
    """Microseconds since 1970."""
    return int(environment().now() * 10**6)
