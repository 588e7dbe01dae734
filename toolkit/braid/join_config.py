"""The validated settings of a join, which the join and its run share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from braid.condition.predicate import Predicate
from braid.core.placement import MOST_HOSTS, MOST_KEYS, Placement
from braid.core.query import Query
from braid.core.reserved_columns import TIME
from braid.core.shedding_plan import ResultUtility
from braid.kernels.join_spec import RoutingHash, StreamLayout
from braid.papers.shedding.shed import Shed
from braid.shedding_options import make_utility_rule, shedding_columns
from braid.simulation.auto_placement import FIRST, MOST, THEN, Auto
from braid.simulation.placement_choice import JoinStatistics, PlacementChoice, choose_placement
from braid.sources import input_fingerprints
from braid.storage.object_store import store_environment
from braid.storage.run_store import RunStore
from braid.stream_arguments import Time, parse_time_columns
from braid.util import validation
from braid.util.durations import parse_duration
from braid.util.validation import format_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AHEAD = "1 day"
"""Default distance past its stream's clock up to which a single tuple advances it."""
LONGEST_PACE = 86_400
"""Maximum seconds between two micro-batches: a day."""


class ReplaySource(Protocol):
    """Static streams that are checked but not written yet."""

    def write_input(self, folder: Path, check: Callable[[], None] = ...) -> int:
        """Write a run's input and return the number of micro-batches.

        The input is written whole or as files of micro-batches.
        """
        ...


_MOST_PARTITIONS = 10_000
"""Maximum tasks of a stage. Spark takes some ms for each, regardless of its work."""
_FEW_BATCHES = 1_000
"""Micro-batches allowed for any input. More are allowed up to the number of rows."""
COPIES = 3
"""How many copies of static streams this process may hold: as they arrive, sorted, and in the file
being written.
"""
PAGES = {"parquet.page.verify-checksum.enabled": "true"}
"""Spark option to verify the checksums of Parquet pages."""


@dataclass(frozen=True)
class JoinConfig:
    """The settings of a StreamJoin (see there), and values derived from them.

    - ``checks_coverage``: whether plans are checked against the cover rule.
    - ``window_limits``: by stream, microseconds; None: full history.
    - ``lateness_microseconds``: by stream.
    - ``predicate``: the parsed condition.
    - ``queries``: queries of a shared join.
    - ``utilities``: by stream, Spark SQL for a tuple's utility, for ``shed``.
    - ``driver_memory``: bytes of a batch that this process may hold.
    - ``chosen``: the automatic choice of the placement; None: the caller gave one.
    - ``ahead``: how far past its stream's clock a single tuple advances it.
    - ``resumed``: whether the current content of the streams is ignored.
    """

    shares_queries: ClassVar[bool] = False
    most_batches: ClassVar[int] = 10_000
    """Maximum number of micro-batches of static streams."""

    streams: Mapping[str, Any]
    on: str
    placement: Placement
    windows: Mapping[str, str]
    time: Time | None
    lateness: str | Mapping[str, str]
    partitions: int
    seed: int
    checks_coverage: bool
    window_limits: tuple[int | None, ...]
    lateness_microseconds: tuple[int, ...]
    predicate: Predicate
    queries: tuple[Query, ...] = ()
    executor: str = "auto"
    shed: Shed | None = None
    utilities: tuple[str | None, ...] = ()
    driver_memory: int = 0
    chosen: PlacementChoice | None = None
    ahead: str = AHEAD
    resumed: bool = False

    @property
    def event_time_columns(self) -> dict[str, str]:
        """The event-time column of each stream; empty without event time."""
        return parse_time_columns(self.time, self.streams)

    @property
    def utility_rule(self) -> ResultUtility | None:
        """The utility of results; None: no load is shed."""
        return make_utility_rule(self.shed)

    @property
    def spark(self) -> SparkSession:
        """The Spark session of the streams."""
        found: SparkSession = next(iter(self.streams.values())).sparkSession
        return found

    @staticmethod
    def task_parallelism(streams: Mapping[str, Any]) -> int:
        """Return the number of tasks that run at once: the session's parallelism."""
        return int(next(iter(streams.values())).sparkSession.sparkContext.defaultParallelism)

    @property
    def schemas(self) -> dict[str, str]:
        """The columns of each stream with their types, by alias."""
        return {a: f.schema.simpleString() for a, f in self.streams.items()}

    @staticmethod
    def most_frequent_share(streams: Mapping[str, Any], predicate: Predicate) -> float:
        """Return the share of tuples with the most frequent join value; 0: unknown."""
        return 0.0

    @staticmethod
    def has_remote_hosts(streams: Mapping[str, Any]) -> bool:
        """Return whether tasks run on several machines."""
        return not str(next(iter(streams.values())).sparkSession.sparkContext.master).startswith(
            "local"
        )

    @staticmethod
    def row_estimates(streams: Mapping[str, Any]) -> tuple[float, ...]:
        """Return the relative sizes of the streams; equal if unknown."""
        return (1.0,) * len(streams)

    def check_batches(self, batches: Any) -> int | str:
        """Return ``batches`` if it is a number of micro-batches, or text.

        Raises ValueError if it is not.
        """
        if isinstance(batches, str):
            return batches
        either = ", or the name of a column"
        return validation.check_int(batches, "batches", 1, self.most_batches, either)

    def make_replay(self, batches: int | str) -> ReplaySource | None:
        """Return the static streams, ready to be written; None: no stream is static.

        ``batches`` is the number of micro-batches, or the name of the column that numbers them.
        Raises ValueError if it is invalid.
        """
        if not isinstance(batches, str):
            self._check_row_count(batches)
        return self._make_replay(batches) if self.static_streams else None

    def _make_replay(self, batches: int | str) -> ReplaySource:
        from braid.sources import static_replay

        return static_replay.StaticReplay(
            self.static_streams, self.event_time_columns, batches, self.driver_memory // COPIES
        )

    def _check_row_count(self, batches: int) -> None:
        if batches > _FEW_BATCHES and self.static_streams:
            rows = sum(self.stream_extent(alias)[0] for alias in self.static_streams)
            if batches > max(rows, _FEW_BATCHES):
                raise ValueError(
                    f"batches is {batches}, but the static streams have {rows:,} rows; it must be "
                    f"at most as many, or {_FEW_BATCHES:,}"
                )

    def prepare_workers(self) -> None:
        """Make Braid available to Spark's workers. Raises ValueError if they cannot import it."""
        from braid.spark_session import prepare_workers

        prepare_workers(self.spark)

    def check_shared_folder(self, store: RunStore) -> None:
        """Raise ValueError unless Spark's workers can read and write the run's folder or bucket."""
        from braid.spark_workers import check_object_store, check_shared_folder

        if store.remote:
            self._check_object_store(store.url)
            store.remote.has_checkpoints = not self.static_streams
            self.spark.sparkContext.environment.update(store_environment())
            check_object_store(self.spark.sparkContext, store.url)
        else:
            check_shared_folder(self.spark.sparkContext, store.path)

    def _check_object_store(self, url: str) -> None:
        """Raise ValueError unless Spark can run these streams in a bucket.

        Spark reads the copy of static streams from this machine's disk. Each process stores it in
        another place, which an existing checkpoint does not know.
        """
        endless = [a for a in self.streams if a not in self.static_streams]
        if endless and self.static_streams:
            raise ValueError(
                f"stream {endless[0]} does not end and stream {next(iter(self.static_streams))} "
                "is static, "
                f"which cannot be together in {url}; use a folder, or streams of one kind"
            )
        if self.static_streams and self.has_remote_hosts(self.streams):
            raise ValueError(
                f"Spark's workers on other machines cannot read the copy of static streams that a "
                f"run in {url} has on this one; use a folder that all share, or local[*]"
            )
        if url.startswith("memory:"):
            raise ValueError(
                f"{url} is in the memory of this process, which Spark's workers do not see; use "
                "another bucket or a folder"
            )

    @staticmethod
    def parse_trigger(given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the trigger as Spark's arguments. Raises ValueError if it is invalid."""
        if not given:
            return {}
        (name, value), *more = given.items()
        if not more and name == "processingTime":
            return {
                name: f"{parse_duration(value, 'processingTime', zero=True) // 1000} milliseconds"
            }
        if not more and name in ("availableNow", "once") and value is True:
            return {name: value}
        told = ", ".join(f"{k}={format_value(v)}" for k, v in given.items())
        raise ValueError(
            f"the trigger is {told}; it must be one of processingTime='1 second', "
            "availableNow=True, once=True"
        )

    @property
    def static_streams(self) -> dict[str, DataFrame]:
        """The static streams, by alias."""
        return {a: f for a, f in self.streams.items() if not f.isStreaming}

    def stream_extent(self, alias: str) -> tuple[int, int]:
        """Return a static stream's number of rows and its event-time span in microseconds.

        Reads the stream once.
        """
        from braid.sources import static_replay

        return static_replay.measure_extent(
            self.static_streams[alias], self.event_time_columns.get(alias)
        )

    def check_source_position(self, store: RunStore) -> None:
        """Raise DamagedRunError unless Spark continues from the run's last commit.

        A run in a bucket checks this after it is taken over.
        """
        if store.url:
            return
        store.checkpoint.remove_empty_files(store.check_driver)
        state = store.last_state()
        store.checkpoint.check_epoch(-1 if state is None else state.epoch)

    def record_fingerprints(self) -> dict[str, Any]:
        """Return the fingerprints of the streams, to recognize them when the run is resumed."""
        return input_fingerprints.record_fingerprints(self.streams, self.static_streams)

    def check_input(self, store: RunStore, known: Mapping[str, Any]) -> None:
        """Raise ValueError unless the streams are those that the stored run began with."""
        compared = {} if self.resumed else self.static_streams
        input_fingerprints.check_streams(self.streams, compared, store, known)

    def open_sources(self, store: RunStore) -> dict[str, DataFrame]:
        """Return the streams as streaming DataFrames.

        Static ones are read from their copy, one file a batch.
        """
        copies = {alias: self._read_input_snapshot(store, alias) for alias in self.static_streams}
        return {alias: copies.get(alias, frame) for alias, frame in self.streams.items()}

    def _read_input_snapshot(self, store: RunStore, alias: str) -> DataFrame:
        from braid.sources import static_replay

        folder = store.input.folder / alias
        reader = self.spark.readStream.schema(
            static_replay.stored_schema(store.input, alias, self.spark)
        )
        return reader.options(maxFilesPerTrigger=1, **PAGES).parquet(str(folder))

    def union_streams(
        self, sources: Mapping[str, DataFrame]
    ) -> tuple[DataFrame, tuple[StreamLayout, ...]]:
        """Return the streams as one DataFrame, and the positions of their columns in it.

        Tuples that can never match are removed. Tuples without event time are removed later, where
        they are counted.
        """
        from braid.execution.stream_layout import make_layouts, project_stream

        p, frames = self.predicate, list(sources.values())
        wanted = [
            {TIME: self._event_time(alias, f)}
            | p.key_columns[i]
            | p.computed_columns[i]
            | self._shedding_columns(i, f)
            for i, (alias, f) in enumerate(sources.items())
        ]
        where = tuple(
            self._with_routing_hash(i, each) for i, each in enumerate(make_layouts(frames, wanted))
        )
        parts = []
        for i, frame in enumerate(frames):
            part = frame if (condition := p.filters[i]) is None else frame.filter(condition)
            key = None if where[i].routing else self._routing_key(i, frame)
            part = project_stream(i, part, key, wanted[i], where[i])
            needed = dict.fromkeys(where[i].union_column(name) for name in p.key_columns[i])
            if needed:
                part = part.filter(" AND ".join(f"{slot} IS NOT NULL" for slot in needed))
            parts.append(part)
        return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts), where

    def _with_routing_hash(self, i: int, layout: StreamLayout) -> StreamLayout:
        """Return a stream's layout, with the routing hash if the receiver can compute it.

        It can if the key is the hash of a copied ``bigint``. Spark takes longer to compute it.
        """
        p = self.predicate
        if self.placement.routing_key_source != "join" or p.equality is None:
            return layout
        column = p.equality[i]
        if (column, "int64") not in {(name, kind) for name, _, kind in layout.generated_columns}:
            return layout
        return replace(
            layout, routing=RoutingHash(column, self.seed, self.placement.key_space_size)
        )

    def _shedding_columns(self, i: int, frame: DataFrame) -> dict[str, str]:
        """Return the columns of a stream for load shedding."""
        from braid.sources import static_replay

        if self.shed is None:
            return {}
        hashed = static_replay.identity_columns(frame)
        return shedding_columns(self.shed, self.seed, i, hashed, self.utilities, self.predicate)

    def _routing_key(self, i: int, frame: DataFrame) -> str:
        """Return Spark SQL for the routing key, a seeded hash in [0, keys).

        It hashes the whole tuple, the value of the join's equality, or both.
        """
        from braid.sources import static_replay

        p, keying, keys = (
            self.predicate,
            self.placement.routing_key_source,
            self.placement.key_space_size,
        )

        def hashed(columns: list[str], keys: int) -> str:
            return f"cast(pmod(xxhash64({', '.join([str(self.seed), *columns])}), {keys}) as int)"

        whole = static_replay.hashable_columns(frame)
        if keying == "tuple" or p.equality is None:
            return hashed(whole, keys)
        value, hosts = [p.key_columns[i][p.equality[i]]], self.placement.hosts
        if keying == "join":
            return hashed(value, keys)
        return f"{hashed(whole, keys // hosts)} * {hosts} + {hashed(value, hosts)}"

    def _event_time(self, alias: str, frame: DataFrame) -> str:
        """Return Spark SQL for the event time in microseconds.

        Without windows, a tuple without event time gets 0.
        """
        if (name := self.event_time_columns.get(alias)) is None:
            return "cast(0 as bigint)"
        column = f"(`{name}`)"
        instant = frame.schema[name].dataType.simpleString() == "timestamp"
        time = f"unix_micros({column if instant else f'cast({column} as timestamp)'})"
        return time if self.windows or self.queries else f"coalesce({time}, cast(0 as bigint))"


def check_placement(placement: Placement, predicate: Predicate, on: str, shared: bool) -> None:
    """Raise ValueError if the placement does not support this join."""
    if not isinstance(placement, Placement):
        raise ValueError(
            f"placement is {format_value(placement)}; it must be 'auto', or one that has been "
            "made, as "
            "AdaptiveGrid(hosts=16)"
        )
    name = type(placement).__name__
    if placement.max_hosts > MOST_HOSTS or placement.key_space_size > MOST_KEYS:
        raise ValueError(
            f"{name} has up to {placement.max_hosts:,} hosts and {placement.key_space_size:,} "
            "routing keys; "
            f"at most {MOST_HOSTS:,} and {MOST_KEYS:,} are accepted"
        )
    if placement.routing_key_source != "tuple" and predicate.equality is None:
        raise ValueError(
            f"{name} partitions by the value that an equality joins on, but {on!r} has no equality "
            "that links all streams; placements that route by tuple take any condition"
        )
    if placement.shares_queries and not shared:
        raise ValueError(f"{name} serves the queries of a shared join; use SharedJoin")
    placement.initial_state(len(predicate.aliases))


def choose_auto_placement(
    setups: type[JoinConfig],
    streams: Mapping[str, Any],
    predicate: Predicate,
    limits: Sequence[int | None],
    partitions: int | None,
) -> PlacementChoice:
    """Return the placement for "auto", with one host for each concurrent task.

    If hash partitioning is chosen and a grid may become better, the result is an ``Auto``
    placement, which can change.
    """
    step = predicate.next_step(frozenset([0]), 1)
    known = JoinStatistics(
        setups.row_estimates(streams),
        tuple(None if limit is None else limit / 1e6 for limit in limits),
        min(partition_count(partitions, None, setups.task_parallelism(streams)), MOST_HOSTS),
        predicate.equality is not None,
        step.index_condition is not None,
        most_frequent_share=setups.most_frequent_share(streams, predicate),
        has_remote_hosts=setups.has_remote_hosts(streams),
    )
    chosen = choose_placement(known)
    hosts = chosen.placement.hosts
    if type(chosen.placement).__name__ != FIRST or len(streams) != 2 or not 1 < hosts <= MOST:
        return chosen
    why = f"{chosen.reason}; {THEN} once values turn out to be frequent enough"
    return chosen._replace(
        placement=Auto(hosts, known.is_indexed, known.has_remote_hosts), reason=why
    )


def partition_count(partitions: int | None, placement: Placement | None, parallelism: int) -> int:
    """Return the number of partitions for the hosts.

    Default: the tasks that run at once, at most one for each host.
    """
    if partitions is not None:
        parallelism = validation.check_int(partitions, "partitions", 1, _MOST_PARTITIONS)
    return parallelism if placement is None else min(parallelism, placement.max_hosts)
