"""The settings of a join as plain values, which ``run.json`` holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self, TypeVar

from braid.core.change_types import parse_changes
from braid.core.join_kinds import INNER, JoinKind, parse_kind, set_emission
from braid.core.match_rules import NO_MATCH, MatchArguments, MatchOptions, parse_match
from braid.core.placement import Placement
from braid.core.query import Query
from braid.papers.shedding.shed import Shed
from braid.simulation.placement_comparison import PlacementChoice
from braid.time_arguments import (
    UNBOUNDED,
    Columns,
    Time,
    Watermarks,
    check_timed_windows,
    check_times,
    complete_times,
    parse_lateness,
    parse_time_columns,
    parse_windows,
)
from braid.util.durations import format_duration, parse_duration
from braid.util.json_codec import from_plain, to_plain
from braid.util.machine import parse_memory_limit
from braid.util.validation import check_bool, check_int, format_value

AHEAD = "1 day"
"""Default distance past its stream's clock up to which a single tuple advances it."""
LONGEST_PACE = 86_400
"""Maximum seconds between two micro-batches: a day."""
_LARGEST_SEED = (1 << 63) - 1
_MOST_PARTITIONS = 10_000
"""Maximum tasks of a stage. Spark takes some ms for each, regardless of its work."""


@dataclass(frozen=True)
class JoinArguments:
    """Arguments of a StreamJoin that are not checked yet; see there."""

    on: Any
    placement: Any = "auto"
    windows: Any = None
    time: Any = None
    lateness: Any = None
    partitions: Any = None
    seed: Any = 0
    check: Any = False
    executor: Any = "auto"
    shed: Any = None
    driver_memory: Any = None
    ahead: Any = AHEAD
    idle: Any = None
    how: Any = "inner"
    changes: Any = None
    match: MatchArguments = NO_MATCH
    where: Any = None
    emit: Any = "final"

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return the arguments of a stored join, with its placement."""
        named = {f.name: stored[f.name] for f in fields(cls) if f.name in stored}
        shed = stored.get("shed")
        return cls(
            **named
            | {
                "match": MatchArguments(**(stored.get("match") or {})),
                "placement": placement_from_json(stored),
                "shed": None if shed is None else from_plain(shed, Shed, "the stored shed"),
            }
        )


@dataclass(frozen=True)
class JoinConfig:
    """The settings of a StreamJoin (see there).

    - ``streams``: by alias, the columns with Spark's type names.
    - ``on``: the condition, in Spark SQL.
    - ``placement``: None: not chosen yet.
    - ``window_limits``: by stream, microseconds; None: none is given.
    - ``event_time_columns``: by alias; empty: no event time.
    - ``lateness_microseconds``: by stream.
    - ``ahead_microseconds``: how far past its stream's clock a single tuple advances it.
    - ``idle_microseconds``: how far a stream's clock may be behind another's before it is no longer
      waited for; None: any distance.
    - ``partitions``: None: the tasks that run at once.
    - ``checks_coverage``: whether plans are checked against the cover rule.
    - ``driver_memory``: bytes of a batch that this process may hold.
    - ``chosen``: the automatic choice of the placement; None: the caller gave one.
    - ``queries``: queries of a shared join.
    - ``resumed``: whether the current content of the streams is ignored.
    - ``unbounded_streams``: aliases of streams whose full history is asked for.
    - ``kind``: kind of the join.
    - ``where``: filters of the streams by alias, which have been applied.
    - ``changes``: by alias, the column that says how a row of a stream of changes changes.
    - ``match``: options of an as-of join; None: tuples join with all partners.
    """

    shares_queries: ClassVar[bool] = False
    run_name: ClassVar[str] = "run"
    """The word for a run of such a join in sentences."""

    streams: Columns
    on: str
    placement: Placement | None
    window_limits: tuple[int | None, ...]
    event_time_columns: Mapping[str, str]
    lateness_microseconds: tuple[int, ...]
    ahead_microseconds: int
    partitions: int | None
    seed: int
    checks_coverage: bool
    executor: str
    shed: Shed | None
    driver_memory: int
    chosen: PlacementChoice | None = None
    queries: tuple[Query, ...] = ()
    resumed: bool = False
    unbounded_streams: tuple[str, ...] = ()
    idle_microseconds: int | None = None
    kind: JoinKind = INNER
    changes: Mapping[str, str] = field(default_factory=dict)
    match: MatchOptions | None = None
    where: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_change_types(self) -> bool:
        """Whether results are changes: some stream is of changes, or answers are early."""
        return bool(self.changes) or self.kind.is_early

    @property
    def window_texts(self) -> dict[str, str]:
        """The given windows by alias, as text."""
        limits = zip(self.streams, self.window_limits, strict=True)
        return {a: format_duration(w, exact=True) for a, w in limits if w is not None}

    @property
    def timeless_streams(self) -> tuple[int, ...]:
        """The numbers of the streams without event time."""
        return tuple(i for i, a in enumerate(self.streams) if a not in self.event_time_columns)

    @property
    def time(self) -> Time | None:
        """The event-time column of all streams, or columns by alias; None: no event time."""
        columns = self.event_time_columns
        if len(columns) < len(self.streams):
            return dict(columns) or None
        return merge_equal(columns)

    def to_json(self) -> dict[str, Any]:
        """Return the settings that ``run.json`` holds. ``from_json`` restores them."""
        slack = (format_duration(t, exact=True) for t in self.lateness_microseconds)
        return dict(
            to_plain(
                {
                    "on": self.on,
                    "how": self.kind.to_json(list(self.streams)),
                    "emit": "early" if self.kind.is_early else "final",
                    "streams": list(self.streams),
                    "windows": self.window_texts | dict.fromkeys(self.unbounded_streams, UNBOUNDED),
                    "time": self.time,
                    "lateness": merge_equal(dict(zip(self.streams, slack, strict=True))),
                    "ahead": format_duration(self.ahead_microseconds, exact=True),
                    "idle": None
                    if self.idle_microseconds is None
                    else format_duration(self.idle_microseconds, exact=True),
                    "placement": type(self.placement).__name__,
                    "settings": self.placement,
                    "partitions": self.partitions,
                    "seed": self.seed,
                    "check": self.checks_coverage,
                    "shed": self.shed,
                    "changes": self.changes or None,
                    "match": None if self.match is None else self.match.to_json(),
                    "where": dict(self.where) or None,
                }
            )
        )

    @classmethod
    def can_restore(cls, stored: Mapping[str, Any]) -> bool:
        """Return whether a ``run.json`` is of this kind of join."""
        return "on" in stored

    @classmethod
    def from_json(
        cls,
        stored: Mapping[str, Any],
        columns: Columns,
        executor: Any = "auto",
        driver_memory: Any = None,
    ) -> Self:
        """Return the settings in a ``run.json`` for streams of these columns.

        ``executor``, ``driver_memory``: as for StreamJoin; a run may change them. Raises ValueError
        if the streams do not suit the settings.
        """
        arguments = JoinArguments.from_json(
            {**stored, "executor": executor, "driver_memory": driver_memory}
        )
        return parse_join(arguments, columns, cls)


C = TypeVar("C", bound=JoinConfig)


def parse_join(
    arguments: JoinArguments,
    schemas: Columns,
    kind: type[C] = JoinConfig,  # type: ignore[assignment]
    watermarks: Watermarks | None = None,
) -> C:
    """Return the settings of a join from its arguments and the columns of its streams.

    ``watermarks`` are those that the frames declare. They are event times and lateness of streams
    for which the arguments name none.

    Raises ValueError if an argument is invalid. ``analyze_join`` checks whether the condition, the
    placement and the shedder suit the streams.
    """
    given, declared = arguments, watermarks or {}
    times = complete_times(given.time, [*schemas], declared)
    windows, unbounded = parse_windows(given.windows, [*schemas])
    if windows and not times:
        raise ValueError("windows are given but no event-time column: name it with time=")
    if given.idle is not None and not times:
        raise ValueError("idle is given but no event-time column: name it with time=")
    windows = check_timed_windows(windows, given.windows, times)
    if kind.shares_queries:
        parse_time_columns(times, [*schemas])
    check_times(schemas, times)
    delays = {
        alias: mark.delay
        for alias, marks in declared.items()
        for mark in marks
        if mark.column == times.get(alias)
    }
    lateness = parse_lateness(given.lateness, [*schemas], delays)
    check_bool(given.check, "check")
    return kind(
        schemas,
        given.on,
        _parse_placement(given.placement),
        tuple(windows.get(alias) for alias in schemas),
        times,
        tuple(lateness.values()),
        parse_duration(given.ahead, "ahead"),
        _parse_partitions(given.partitions),
        check_int(given.seed, "seed", 0, _LARGEST_SEED),
        given.check,
        given.executor,
        given.shed,
        parse_memory_limit(given.driver_memory),
        unbounded_streams=unbounded,
        idle_microseconds=None if given.idle is None else parse_duration(given.idle, "idle"),
        kind=set_emission(parse_kind(given.how, [*schemas]), given.emit),
        changes=parse_changes(given.changes, schemas, times),
        match=parse_match(given.match, schemas, times),
        where=dict(given.where or {}),
    )


def _parse_placement(placement: Any) -> Placement | None:
    if isinstance(placement, str) and placement == "auto":
        return None
    if not isinstance(placement, Placement):
        raise ValueError(
            f"placement is {format_value(placement)}; it must be 'auto', or one that has been "
            "made, as AdaptiveGrid(hosts=16)"
        )
    return placement


def _parse_partitions(partitions: Any) -> int | None:
    if partitions is None:
        return None
    return check_int(partitions, "partitions", 1, _MOST_PARTITIONS)


def placement_from_json(stored: Mapping[str, Any]) -> Placement:
    """Return the placement in a ``run.json``. Raises ValueError if there is none of this name."""
    return Placement.class_by_name(stored["placement"]).from_settings(stored["settings"])


def merge_equal(by_alias: Mapping[str, str]) -> str | dict[str, str]:
    """Return the value that all aliases have; the mapping if they differ."""
    values = {*by_alias.values()}
    return values.pop() if len(values) == 1 else dict(by_alias)
