"""A join's settings, checked once: what a join and its run share."""

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
"""How far past its stream's clock a tuple moves it by itself, by default."""
LONGEST_PACE = 86_400
"""Seconds between two micro-batches: a day."""


class ReplaySource(Protocol):
    """What is static, checked, and not yet written."""

    def write_input(self, folder: Path, check: Callable[[], None] = ...) -> int:
        """Write a run's input, whole or as files of micro-batches; returns how many there are."""
        ...


_MOST_PARTITIONS = 10_000
"""Tasks of a stage; Spark takes some ms for each, whatever it does."""
_FEW_BATCHES = 1_000
"""So many micro-batches may be asked for of any rows; more only of as many rows."""
COPIES = 3
"""How often this process may have what it reads of static streams: as they come, in order, and in
a file that it writes.
"""
PAGES = {"parquet.page.verify-checksum.enabled": "true"}
"""Have Spark hold pages of Parquet against their checksums."""


@dataclass(frozen=True)
class JoinConfig:
    """The settings of a StreamJoin (see there), and what they mean.

    ``limits`` (by stream, None for full history) and ``slack`` (by stream) are the windows and the
    lateness in microseconds, ``ahead`` is how far past its stream's clock a tuple moves it by
    itself, ``predicate`` is the condition in pieces, ``queries`` are those of a shared join,
    ``utilities`` are, by stream, Spark SQL of what a tuple is worth, for ``shed``; ``memory`` is
    what this process may hold of a batch, in bytes; ``chosen`` is why the placement is what it is,
    where nobody named one; ``resumed``: what the streams hold now does not count.
    """

    shares_queries: ClassVar[bool] = False
    most_batches: ClassVar[int] = 10_000
    """Micro-batches that static streams may be cut in."""

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
        """The event-time column of each stream; none where there is no event time."""
        return parse_time_columns(self.time, self.streams)

    @property
    def utility_rule(self) -> ResultUtility | None:
        """What results are worth; None where no load is shed."""
        return make_utility_rule(self.shed)

    @property
    def spark(self) -> SparkSession:
        """The session of the streams."""
        found: SparkSession = next(iter(self.streams.values())).sparkSession
        return found

    @staticmethod
    def task_parallelism(streams: Mapping[str, Any]) -> int:
        """How many tasks run at once: the session's parallelism."""
        return int(next(iter(streams.values())).sparkSession.sparkContext.defaultParallelism)

    @property
    def schemas(self) -> dict[str, str]:
        """The columns of each stream and their types, by alias."""
        return {a: f.schema.simpleString() for a, f in self.streams.items()}

    @staticmethod
    def most_frequent_share(streams: Mapping[str, Any], predicate: Predicate) -> float:
        """The part of the tuples that has the most frequent value of the equality; 0 where it is
        not known.
        """
        return 0.0

    @staticmethod
    def has_remote_hosts(streams: Mapping[str, Any]) -> bool:
        """Whether tasks run on several machines."""
        return not str(next(iter(streams.values())).sparkSession.sparkContext.master).startswith(
            "local"
        )

    @staticmethod
    def row_estimates(streams: Mapping[str, Any]) -> tuple[float, ...]:
        """How many tuples the streams have, as they compare; equal where that is not known."""
        return (1.0,) * len(streams)

    def make_replay(self, batches: Any) -> ReplaySource | None:
        """What is static, ready to be written as so many micro-batches, or as those that the column
        of that name numbers. None where nothing is static. Raises ValueError where it cannot be.
        """
        if not isinstance(batches, str):
            self._check_batches(batches)
        return self._make_replay(batches) if self.static_streams else None

    def _make_replay(self, batches: int | str) -> ReplaySource:
        from braid.sources import static_replay

        return static_replay.StaticReplay(
            self.static_streams, self.event_time_columns, batches, self.driver_memory // COPIES
        )

    def _check_batches(self, batches: Any) -> None:
        validation.check_int(batches, "batches", 1, self.most_batches, ", or the name of a column")
        if batches > _FEW_BATCHES and self.static_streams:
            rows = sum(self.stream_extent(alias)[0] for alias in self.static_streams)
            if batches > max(rows, _FEW_BATCHES):
                raise ValueError(
                    f"batches is {batches}, but the static streams have {rows:,} rows; it must be "
                    f"at most as many, or {_FEW_BATCHES:,}"
                )

    def prepare_workers(self) -> None:
        """Let Spark's workers find Braid. Raises ValueError where they cannot."""
        from braid.spark_session import prepare_workers

        prepare_workers(self.spark)

    def check_shared_folder(self, store: RunStore) -> None:
        """Raises ValueError unless Spark's workers can read and write where the run is."""
        from braid.spark_workers import check_object_store, check_shared_folder

        if store.url:
            self._check_object_store(store.url)
            store.follows = not self.static_streams
            self.spark.sparkContext.environment.update(store_environment())
            check_object_store(self.spark.sparkContext, store.url)
        else:
            check_shared_folder(self.spark.sparkContext, store.path)

    def _check_object_store(self, url: str) -> None:
        """Raises ValueError unless Spark can run what lives in a bucket: it reads the copy of
        static streams from this machine's disk, and in each process from another place there, which
        its checkpoint would not know.
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
        """Spark's trigger, as Spark takes it. Raises ValueError for what is none."""
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
        """The streams that are static, by alias."""
        return {a: f for a, f in self.streams.items() if not f.isStreaming}

    def stream_extent(self, alias: str) -> tuple[int, int]:
        """How many rows a static stream has, and how long they last (microseconds); goes over it
        once.
        """
        from braid.sources import static_replay

        return static_replay.measure_extent(
            self.static_streams[alias], self.event_time_columns.get(alias)
        )

    def check_source_position(self, store: RunStore) -> None:
        """Raise Damaged unless Spark goes on where the run's last commit was. A run that lives in
        a bucket looks for itself, once it is taken over.
        """
        if store.url:
            return
        store.checkpoint.remove_empty_files(store.check_driver)
        state = store.last_state()
        store.checkpoint.check_epoch(-1 if state is None else state.epoch)

    def record_fingerprints(self) -> dict[str, Any]:
        """Return what tells later whether a run is given the streams that it began with."""
        return input_fingerprints.record_fingerprints(self.streams, self.static_streams)

    def check_input(self, store: RunStore, known: Mapping[str, Any]) -> None:
        """Raise ValueError unless the streams are those that the run in a folder began with."""
        compared = {} if self.resumed else self.static_streams
        input_fingerprints.check_streams(self.streams, compared, store, known)

    def open_sources(self, store: RunStore) -> dict[str, DataFrame]:
        """The streams as streaming DataFrames: static ones are read back from their copy, a file a
        batch.
        """
        copies = {alias: self._read_input_snapshot(store, alias) for alias in self.static_streams}
        return {alias: copies.get(alias, frame) for alias, frame in self.streams.items()}

    def _read_input_snapshot(self, store: RunStore, alias: str) -> DataFrame:
        from braid.sources import static_replay

        folder = store.input / alias
        reader = self.spark.readStream.schema(
            static_replay.stored_schema(store.copied, alias, self.spark)
        )
        return reader.options(maxFilesPerTrigger=1, **PAGES).parquet(str(folder))

    def union_streams(
        self, sources: Mapping[str, DataFrame]
    ) -> tuple[DataFrame, tuple[StreamLayout, ...]]:
        """The streams as one DataFrame and where their columns are in it, without the tuples that
        can never match. Those without event time are left out later, where they are counted.
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
        """A stream's layout: the receiver makes a routing key that is the hash of a copied
        ``bigint``, which takes Spark longer.
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
        """What shedding load needs of a stream."""
        from braid.sources import static_replay

        if self.shed is None:
            return {}
        hashed = static_replay.identity_columns(frame)
        return shedding_columns(self.shed, self.seed, i, hashed, self.utilities, self.predicate)

    def _routing_key(self, i: int, frame: DataFrame) -> str:
        """Spark SQL of a seeded hash in [0, keys): of the whole tuple, of the value that the
        equality joins on, or of both.
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
        """Microseconds. Full history needs no time, and takes a tuple without one; a window does
        not.
        """
        if (name := self.event_time_columns.get(alias)) is None:
            return "cast(0 as bigint)"
        column = f"(`{name}`)"
        instant = frame.schema[name].dataType.simpleString() == "timestamp"
        time = f"unix_micros({column if instant else f'cast({column} as timestamp)'})"
        return time if self.windows or self.queries else f"coalesce({time}, cast(0 as bigint))"


def check_placement(placement: Placement, predicate: Predicate, on: str, shared: bool) -> None:
    """Raises ValueError, with one sentence, for a placement that cannot serve this join."""
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
    """The placement of a join that nobody named one for, on as many hosts as work at once. Where
    that is a hash of the join value, and a grid may take over, it is one that can change.
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
    """The partitions on which hosts are packed, by default as many as run at once; no more than
    there are hosts.
    """
    if partitions is not None:
        parallelism = validation.check_int(partitions, "partitions", 1, _MOST_PARTITIONS)
    return parallelism if placement is None else min(parallelism, placement.max_hosts)
