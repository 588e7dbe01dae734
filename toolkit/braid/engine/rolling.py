"""What a run tells as it goes on, in events.jsonl, and how its log is rolled up now and then: the
results of the batches that a roll-up sums up are merged, and where they are kept for a time only,
the oldest go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
from braid.engine.entries import Kept, Merged
from braid.engine.keeping import Keep, dropped
from braid.engine.log import OLD
from braid.engine.readable import Readable
from braid.engine.told import Archive, End, Told

_EVERY = 500
"""So many commits are rolled up at once, and their results merged."""


class Rolling(Readable):
    """The log, events and results of the run in the folder ``path``, where one process adds to
    them; what it writes is on disk if ``force``.
    """

    def __init__(self, path: Path, force: bool) -> None:
        super().__init__(path)
        self.force = force
        check = self.check_driver
        self.told = Told(path / "events.jsonl", check_driver=check, mend=self._tell_anew)
        self.delivered = Delivered(path / "delivered.json", force, check)
        self.begun = False
        """Whether what has happened so far has been told."""
        self.keep: Keep | None = None
        self._opening: Sequence[Any] = ()
        self._ends: dict[int, End] = {}
        """By entry whose events have been told, where these end."""

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
        self._opening, entries = opening, [kept.entry for kept in self.log.unrolled()]
        self._tell_entries(entries)
        self._drop_events()
        self.begun = True

    def _tell_entries(self, entries: Iterable[int]) -> None:
        """Tell what the roll-up has, or how the run opened, and then these entries of the log."""
        if (rolled := self.log.rolled) is not None:
            self.told.opening = rolled.opening
            self.told.look(rolled.archive, and_cut=True)
        else:
            self.told.begin(self._opening)
            if self.force:  # the name of the file, before a roll-up counts on it
                durable.sync(self.path)
        for entry in entries:
            self.told.again(self.log.read(entry).events)
            self._ends[entry] = self.told.end

    def _tell_anew(self) -> None:
        """Tell all anew that has been told: the file is not as this driver has written it."""
        LOGGER.warning("%s had other lines than were written; it is written anew", self.told.path)
        self._tell_entries([*self._ends])

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
        self._ends[self.log.commits[-1].entry] = self.told.end
        if len(waiting := self.log.unrolled()) >= _EVERY + OLD:
            self._roll(waiting[-OLD - 1].entry)

    def _roll(self, entry: int) -> None:
        """Sum up the log up to the commit in an entry, and merge the results of its batches."""
        before = self.log.rolled.archive if self.log.rolled else None
        merged = self._merge()
        if self.force:
            durable.sync(self.told.path)
            durable.sync(self.results)  # files of merged batches have no other name from here on
        with self.reading:
            archive, since = self._archive(before, self._ends[entry]), self.log.since
            whole = [*self.log.merged, *merged]
            self.log.roll(archive, self.told.opening, whole[self._old(whole) :], self.force)
            self.merging.show(merged, self.force)
            if self.log.since > since:
                self.log.forgo(self.force)
                self._logs(partial(self.output.drop, since, self.log.since))
                self.merging.recover(self.log.merged, self.force)
                LOGGER.info("results are kept from batch %d on", self.log.since)
        self._drop_events()
        self._ends = {n: end for n, end in self._ends.items() if n > entry}

    def _archive(self, before: Archive | None, end: End) -> Archive:
        """What the file of events has up to an end. Raises Damaged where that is not what was
        written.
        """
        for _ in range(2):
            found = self.told.archive(before, end.events, end.bytes)
            if found.crc == end.crc:
                return found
            self.check_driver()
            self._tell_anew()
        raise Damaged(f"{self.told.path} is damaged: it does not have the lines that were written")

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
