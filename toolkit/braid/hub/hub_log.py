"""States and events of a hub, in the manifest log and the event log of its folder.

A commit of the log is a change of the hub: a micro-batch, or a change of queries or operators. Its
order: the operators commit, each in its own log; files of the backfill buffer and the state are
forced to disk; then the entry makes the change real. Of two drivers, one can append an entry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from braid.core.event_jsonl import encode_event
from braid.core.run_events import Event
from braid.core.touch_events import SettingChanged
from braid.errors import DamagedRunError
from braid.hub.hub_state import HubState
from braid.papers.reuse.hub_events import HubStarted
from braid.storage import durable_files
from braid.storage.block_readers import close_block_files
from braid.storage.hub_files import (
    HISTORY,
    OPERATORS,
    check_no_earlier_hub,
    is_hub_file,
    read_hub_state,
)
from braid.storage.manifest_log import OLD
from braid.storage.run_files import is_run_file
from braid.storage.run_store import RunStore
from braid.util.file_system import current_file_system


class HubLog:
    """Log of the hub in the folder of a store.

    The files of the last two states are retained, so that ``braid repair`` can go back by one.
    """

    def __init__(self, store: RunStore) -> None:
        self.store = store
        self.states: list[HubState] = []
        """The last states, at most two, in order."""
        self._expired: list[HubState] = []

    def open_log(self) -> HubState | None:
        """Take over the hub and return its state as of the last commit; None if it is new.

        Raises DamagedRunError if the last state cannot be read, or if there is none although a hub
        has run in the folder. Then nothing is removed.
        """
        log = self.store.log
        log.read_new_entries()
        if not log.commits:
            check_no_earlier_hub(self.store)
        self.store.take_over()
        bodies = [read_hub_state(self.store, commit) for commit in log.commits[-1:]]
        self.states = [*self._read_previous_state(), *map(HubState.from_json, bodies)]
        self.store.log_opening_events()
        return self.states[-1] if self.states else None

    def _read_previous_state(self) -> list[HubState]:
        """Return the state before the last one; none if there is none or it is damaged."""
        try:
            earlier = self.store.log.commits[-OLD:-1]
            return [HubState.from_json(read_hub_state(self.store, k)) for k in earlier if k.state]
        except DamagedRunError:  # the hub cannot go back to it
            return []

    def find_pace(self) -> float:
        """Return the seconds from batch to batch that the latest event of them states."""
        last = self.store.events.events_of_type(HubStarted, SettingChanged)[-1]
        pace = last.after if isinstance(last, SettingChanged) else last.interval_seconds
        return pace or 0.0

    def append_state(self, state: HubState, happened: Sequence[Event]) -> None:
        """Commit a state with its events. All files that it names must be on disk.

        Raises FencedError if another driver has taken over the hub, RuntimeError if one may have.
        """
        self.store.lock.check_held()
        self.store.checkpoint.finish_sync()
        for folder in self.store.irregular.list_folders():
            durable_files.fsync_path(folder)
        named = self.store.states.write_json(self.store.log.batch_count, state.to_json())
        durable_files.fsync_path(self.store.log.folder)
        self.store.log.append_entry(named, (), [encode_event(e)[:-1] for e in happened])
        both = [*self.states, state]
        self._expired, self.states = both[:-OLD], both[-OLD:]

    def publish_events(self, happened: Sequence[Event]) -> None:
        """Log the events of the last commit, and remove files that the last states do not name."""
        self.store.log_events(happened)
        self.remove_unnamed_files(_list_folders(self._expired, is_running=True))

    def remove_unnamed_files(self, ran: Collection[str] | None = None) -> None:
        """Remove the files of the hub that neither of the last states names.

        Operators that have stopped keep their results only. ``ran``: folders of those that may have
        stopped; None: any. Nothing is removed without a commit that was read or appended.
        """
        if not self.states:
            return
        if ran is None:
            self.store.irregular.remove_unnamed()
        named, runs = _list_folders(self.states), _list_folders(self.states, is_running=True)
        stopped = (named if ran is None else named.intersection(ran)) - runs
        gone = [*self._list_unnamed_files(named), *self._list_blocks(stopped)]
        self.store.check_driver()
        for path in gone:
            close_block_files(path)
            if current_file_system().is_folder(path):
                current_file_system().remove_folder(path)
            else:
                current_file_system().remove_file(path, missing_ok=True)

    def _list_unnamed_files(self, operators: Collection[str]) -> Iterator[Path]:
        """Yield states, files of the backfill buffer and folders of operators without a name.

        A user's files are none of them.
        """
        states = {k.state.name for k in self.store.log.commits[-OLD:] if k.state is not None}
        for name in current_file_system().list_names(self.store.log.folder):
            if name.startswith("state-") and is_run_file(name) and name not in states:
                yield self.store.log.folder / name
        buffers = chain.from_iterable(s.backfill_batches.values() for s in self.states)
        files = {file.name for file in chain.from_iterable(buffers)}
        for folder, named in ((HISTORY, files), (OPERATORS, operators)):
            there = current_file_system().find_files(self.store.path / folder)
            hub_files = (path for path in there if is_hub_file(folder, path.name))
            yield from (path for path in hub_files if path.name not in named)

    def _list_blocks(self, operators: Collection[str]) -> Iterator[Path]:
        """Yield the folders of blocks that these operators have."""
        for name in sorted(operators):
            blocks = self.store.path / OPERATORS / name / "blocks"
            if current_file_system().exists(blocks):
                yield blocks


def _list_folders(states: Iterable[HubState], is_running: bool = False) -> set[str]:
    """Return the folders of the operators that states name. ``is_running``: that run."""
    pins = chain.from_iterable(state.operators.values() for state in states)
    return {pin.folder for pin in pins if pin.is_running or not is_running}
