"""The state map of frequent values: which values are shared out over which hosts."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, TypedDict

from braid.core.run_events import RunStarted
from braid.papers.hotkeys.run_events import SpreadChanged

from braid_widgets.base.columnar import Columns
from braid_widgets.base.state_maps import StateMap


class HotValue(NamedTuple):
    """A frequent value, named by the hash of the join value.

    - ``share``: its share of all rows of recent batches.
    - ``hosts``: the hosts that share its rows.
    - ``copied``: the streams whose rows all of these hosts store; empty: each row is on one host.
    - ``copied_share``: the share of all rows that are of these streams and have the value.
    """

    value: int
    share: float
    hosts: list[int]
    copied: list[str]
    copied_share: float


class HotKeysFrame(TypedDict):
    """Frequent values by host after a batch.

    - ``values``: the frequent values, the most frequent first.
    - ``rest``: share of all other values; each of them is on one host.
    - ``since``: the batch, from 1, from which on they are shared out so; 0 before the first.
    - ``before``, ``after``: modelled work of the busiest host over the mean, at that change.
    - ``stored``, ``compared``, ``moved``: by host, rows held, and in this batch pairs compared and
      rows that moved there.
    - ``scale_max``: pairs of a full bar. Frames shown together use the maximum.
    """

    streams: list[str]
    values: Columns[HotValue]
    rest: float
    since: int
    before: float
    after: float
    stored: list[int]
    compared: list[int]
    moved: list[int]
    scale_max: int


class HotKeysMap(StateMap):
    """The state map of runs that share out frequent values."""

    name = "hotkeys"

    @classmethod
    def can_show(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        return start.placement == "HotKeys"

    def make_frame(self) -> HotKeysFrame:
        change = self.scene.find_latest(SpreadChanged)
        spread = change.spread if change else ()
        values = [
            HotValue(
                v.value,
                round(v.share, 4),
                sorted(v.hosts),
                list(v.copied_streams),
                round(v.copied_share, 4),
            )
            for v in spread
        ]
        compared = self.list_by_host("compared_pairs")
        return {
            "streams": list(self.scene.stream_aliases),
            "values": Columns.from_records(HotValue, values),
            "rest": round(1 - sum(value.share for value in spread), 4),
            "since": change.batch + 1 if change else 0,
            "before": round(change.before, 2) if change else 0,
            "after": round(change.after, 2) if change else 0,
            "stored": self.list_by_host("stored_tuples"),
            "compared": compared,
            "moved": self.list_by_host("migrated_tuples"),
            "scale_max": max(compared, default=0),
        }
