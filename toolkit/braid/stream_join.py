"""StreamJoin: what people call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from braid.batch_sink import Give
from braid.batch_sink import check_sink as delivering
from braid.condition.predicate import Predicate
from braid.condition.stored_keys import computed_columns
from braid.condition.utility_expressions import parse_utilities
from braid.core.placement import Placement
from braid.execution.executors import check_executor
from braid.explain import Explanation, explain_join
from braid.join_config import (
    AHEAD,
    LONGEST_PACE,
    JoinConfig,
    check_placement,
    choose_auto_placement,
    partition_count,
)
from braid.join_run import JoinRun
from braid.papers.shedding.shed import Shed
from braid.run_folder import (
    check_resumable,
    prepare_run,
    stored_settings,
    stored_shedder,
    with_stored_placement,
)
from braid.shedding_options import check_shedding as check_shed
from braid.sources.frame_conversion import convert_frame
from braid.sources.input_fingerprints import check_batches
from braid.storage.durable_files import Durability
from braid.storage.remote_run_store import is_object_store_url, open_store
from braid.storage.result_retention import parse_retention
from braid.storage.run_settings import read_settings
from braid.stream_arguments import (
    Time,
    check_streams,
    is_spark_frame,
    parse_condition,
    parse_lateness,
    parse_windows,
)
from braid.util.durations import Span, normalize_duration, parse_duration
from braid.util.json_codec import to_plain
from braid.util.machine import parse_memory_limit
from braid.util.validation import check_bool, check_folder, check_int, check_seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_LARGEST_SEED = (1 << 63) - 1
_BATCHES = 20
"""Micro-batches that static streams are cut in by default."""


class StreamJoin:
    """A join of two or more streams on any condition, spread over logical hosts by a placement
    policy.

    Parameters
    ----------
    streams
        Spark DataFrames by alias, streaming or static (a static one is replayed as micro-batches).
        Or pandas or Polars frames or Arrow tables: then all runs in this process without Spark, and
        results are Arrow tables. The condition is Spark SQL there too, but only of what is known to
        mean the same without Spark (see ``braid.condition.duckdb_compiler``). The levels of a
        pandas index are columns, unless it is an unnamed RangeIndex; one without a name is called
        ``index`` or ``level_0``, as ``reset_index()`` calls it. on The condition: Spark SQL over
        ``alias.column``. NULL never matches. Where the session's time zone is not UTC, timestamps
        of two streams may be compared, with an INTERVAL on either side; what else depends on the
        zone (a difference, an hour, a date) is for one stream to say. placement The policy, for
        instance ``AdaptiveGrid(hosts=16)``. "auto", the default, chooses one, on as many hosts as
        work at once, by simulating those that could serve the join
        (``braid.simulation.placement_choice``); ``explain()`` and an event tell why. windows How
        long a tuple stays joinable, as "60 seconds", "5 min" or a ``timedelta``: one span for all
        streams, or spans by alias. A result (s_1..s_m) needs T - T_i < W_i for every i, T being its
        latest event time. A stream that is left out keeps its full history. time The event-time
        column (timestamp or date): one name for all streams, or names by alias. Needed when there
        are windows. lateness How far a tuple may lie behind the clock of its stream at the start of
        its batch and still meet every partner: one span for all streams, or spans by alias. Tuples
        behind that are joined with what is left and counted as late. ahead How far a tuple may lie
        past the clock of its stream and move it by itself. The clock starts at the median event
        time of the stream's first batch. Tuples further ahead are joined, but move the clock only
        once eight of them lie there, so that a few wrong timestamps lose no result; an event
        ``ClockJumped`` tells when that happens. partitions Spark partitions on which the hosts are
        packed; by default the session's parallelism. seed Seed of the routing hash. check Hold
        every plan against the cover rule before it runs. executor What runs a batch's tasks:
        "spark", or "process", the threads of this process, which takes the batch as Arrow. "auto",
        the default, chooses for each batch, by a cost model that learns from the batches before
        (``braid.execution.executor_choice``); an event tells which way a batch took and why. State
        and files are the same, so it may change from batch to batch (``JoinRun.execute_on``) and
        when a run is resumed. Tables are joined in this process. driver_memory What this process
        may hold of a batch, in bytes or as "2 GB": by default a quarter of the machine's memory.
        With "auto" no larger batch comes here. "process" takes all that Spark hands over
        (``spark.driver.maxResultSize``). Tables, which are in memory, have no bound. shed What to
        leave out when the join cannot keep up, for instance ``Shed(seconds=1)``. Results then have
        a column ``weight``, one over the chance that each had to be found: sums of it estimate what
        the full join has.

    Raises ValueError, with one sentence, for whatever cannot work; nothing has been started or
    written then.
    """

    run_class: type[JoinRun] = JoinRun
    config_class: ClassVar[type[JoinConfig]] = JoinConfig

    def __init__(
        self,
        streams: Mapping[str, Any],
        on: str,
        placement: Placement | Literal["auto"] = "auto",
        windows: Span | Mapping[str, Span] | None = None,
        time: Time | None = None,
        lateness: Span | Mapping[str, Span] = "0 seconds",
        partitions: int | None = None,
        seed: int = 0,
        check: bool = False,
        executor: str = "auto",
        shed: Shed | None = None,
        driver_memory: str | int | None = None,
        ahead: Span = AHEAD,
    ) -> None:
        streams, setups, self.run_class, way = self._choose_run_classes(
            check_streams(streams), executor, driver_memory
        )
        self._partitions = partitions
        within = parse_windows(windows, streams)
        limits, predicate = parse_condition(streams, on, within, time)
        slack = parse_lateness(lateness, streams)
        chosen = None
        if placement == "auto":
            chosen = choose_auto_placement(setups, streams, predicate, limits, partitions)
        placement = chosen.placement if chosen is not None else cast(Placement, placement)
        check_placement(placement, predicate, on, self.config_class.shares_queries)
        worth: tuple[str | None, ...] = ()
        if shed is not None:
            endless = any(getattr(s, "isStreaming", False) for s in streams.values())
            check_shed(shed, streams, on, limits, time, endless, predicate)
            worth = parse_utilities(shed.utility, streams)
        self.setup = setups(
            dict(streams),
            on,
            placement,
            {a: normalize_duration(w, f"window of {a}") for a, w in within.items()},
            time,
            slack
            if isinstance(lateness, Mapping)
            else normalize_duration(lateness, "lateness", zero=True),
            partition_count(partitions, placement, setups.task_parallelism(streams)),
            check_int(seed, "seed", 0, _LARGEST_SEED),
            check_bool(check, "check"),
            limits,
            tuple(parse_duration(slack[a], f"lateness of {a}", zero=True) for a in streams),
            predicate,
            executor=way,
            shed=shed,
            utilities=worth,
            driver_memory=parse_memory_limit(driver_memory),
            chosen=chosen,
            ahead=normalize_duration(ahead, "ahead"),
        )

    def _choose_run_classes(
        self, streams: Mapping[str, Any], executor: str, driver_memory: str | int | None
    ) -> tuple[Mapping[str, Any], type[JoinConfig], type[JoinRun], str]:
        """The streams, the kinds of settings and run that they need, and the executor."""
        tables = {a: convert_frame(a, s) for a, s in streams.items()}
        given = [a for a, t in tables.items() if t is not None]
        if given and (
            self.config_class.shares_queries or any(map(is_spark_frame, streams.values()))
        ):
            takes = "a shared join takes" if self.config_class.shares_queries else "the others are"
            raise ValueError(f"stream {given[0]} is a table, but {takes} Spark DataFrames")
        if not tables or None in tables.values() or self.config_class.shares_queries:
            return streams, self.config_class, type(self).run_class, check_executor(executor)
        if check_executor(executor) == "spark":
            raise ValueError("executor is 'spark', but the streams are tables; leave it out")
        if driver_memory is not None:
            raise ValueError(
                f"driver_memory is {driver_memory!r}, but the streams are tables, which are in "
                "memory; leave it out"
            )
        from braid.arrow_join import ArrowJoinConfig, ArrowJoinRun

        return tables, ArrowJoinConfig, ArrowJoinRun, "process"

    @property
    def streams(self) -> Mapping[str, Any]:
        """The streams, by alias."""
        return self.setup.streams

    @property
    def on(self) -> str:
        """The condition, as it was given."""
        return self.setup.on

    @property
    def predicate(self) -> Predicate:
        """The condition in pieces."""
        return self.setup.predicate

    @property
    def placement(self) -> Placement:
        """The policy."""
        return self.setup.placement

    @property
    def time(self) -> Time | None:
        """The event-time column, or columns."""
        return self.setup.time

    @property
    def partitions(self) -> int:
        """Spark partitions on which the hosts are packed."""
        return self.setup.partitions

    @property
    def spark(self) -> SparkSession:
        """The session of the streams."""
        return self.setup.spark

    def explain(self, count: bool = False) -> Explanation:
        """What it will do, in words and a small table: filters, links and residuals, windows,
        placement, executor, routing, and what a tuple takes to store. Starts and writes nothing.
        ``count``: go over static streams once, and estimate the state that their rows make.
        """
        return explain_join(self.setup, count)

    def __repr__(self) -> str:
        windows = "".join(f", {a} within {w}" for a, w in self.setup.windows.items())
        return (
            f"{type(self).__name__}({' ⋈ '.join(self.streams)} on {self.on!r}{windows}, "
            f"{self.placement!r})"
        )

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()

    def start(
        self,
        path: str | Path,
        batches: int | str | None = None,
        pace: float = 0.0,
        durability: Durability = "power",
        foreachBatch: Give | None = None,
        keep: Span | None = None,
        **trigger: Any,
    ) -> JoinRun:
        """Start, or go on with, a run of this query in the folder ``path``; returns at once, like
        DataStreamWriter.start().

        Static streams are replayed in ``batches`` micro-batches (see
        ``sources.static_replay.StaticReplay``), by default 20, and all-static input ends with them.
        A folder that holds a run of this query goes on with the copy that it has, if the streams
        have the same rows. ``pace`` is the least number of seconds between two micro-batches.
        ``durability`` is what a commit outlives: a cut of the "power", or the end of the "process"
        alone, which saves some milliseconds a batch. ``trigger`` is Spark's, for streams that do
        not end (``processingTime="1 second"``, ``availableNow=True``).

        ``foreachBatch`` is called with the results of every committed batch, as ``results()`` gives
        them (a DataFrame, which is good until the function returns; an Arrow table for tables), and
        the batch's number, in order and without gaps. That all batches up to one have been
        delivered is written down when the function has returned, so after a crash it is called
        again with the same number and the same rows: a function that does nothing new for a number
        that it has had is exactly once. The run waits for it, and fails when it does. A run that
        goes on delivers first what is left.

        ``keep`` is how long results are kept, as "30 days", or up to what size in all, as "10 GB";
        None: for ever. Those of 500 batches go at once, the oldest first, but none that
        ``foreachBatch`` has not had. Results go, with the files that others read, and then the
        events of their batches; state and totals stay.

        Raises ValueError when the folder holds a run of another query, or of this one over other
        rows, other sources or in other ``batches``, and Damaged, a ValueError,
        when one of its files is missing or not what was written.
        """
        give = delivering(foreachBatch, self.config_class.shares_queries)
        store = open_store(path if is_object_store_url(path) else check_folder(path), durability)
        store.keep = parse_retention(keep)
        if store.url and keep is not None:
            raise ValueError(f"keep is {keep!r}, but {store.url} is a bucket; leave it out there")
        check_seconds(pace, "pace", LONGEST_PACE)
        trigger = self.setup.parse_trigger(trigger)
        self.setup = with_stored_placement(self.setup, store)
        if store.url and give is not None and self.setup.has_remote_hosts(self.streams):
            raise ValueError(
                "foreachBatch gives results of a run in a bucket on this machine, and Spark's "
                "workers are on others; read the bucket there, or ask a session whose master is "
                "local[*]"
            )
        query = self._describe_settings()
        known = stored_settings(store, query)
        cut = _BATCHES if batches is None else batches
        replay = None if known is not None else self.setup.make_replay(cut)
        self.setup.prepare_workers()
        store.acquire_run()
        try:
            self.setup.check_shared_folder(store)
            with store.raise_if_superseded():
                settings = stored_settings(store, query)
                if is_new := settings is None:
                    settings = prepare_run(store, query, self.setup, replay, cut)
                check_resumable(store, self.setup)
                if not is_new:
                    check_batches(batches, settings, store.where)
                    self.setup.check_input(store, settings)
                store.take_over()
                store.remove_unnamed_files()
                return self.run_class(self.setup, store, settings, pace, trigger, give)
        except BaseException:
            store.release_run()
            raise

    @staticmethod
    def resume(
        path: str | Path,
        streams: Mapping[str, Any],
        executor: str = "auto",
        driver_memory: str | int | None = None,
        durability: Durability = "power",
        foreachBatch: Give | None = None,
        keep: Span | None = None,
        **trigger: Any,
    ) -> JoinRun:
        """Go on with the run in ``path`` exactly where its last commit was. Static streams go on
        from the copy in the folder, whatever the frames hold now. ``executor`` and
        ``driver_memory`` are as for StreamJoin, and ``durability``, ``foreachBatch`` and ``keep``
        as for ``start``, whatever ran it before. Raises as ``start``.
        """
        query = read_settings(open_store(path if is_object_store_url(path) else check_folder(path)))
        if query is None:
            raise ValueError(f"{path} holds no run that could be resumed")
        placement = Placement.class_by_name(query["placement"]).from_settings(query["settings"])
        names = ("on", "windows", "time", "lateness", "ahead", "partitions", "seed", "check")
        settings = {n: query[n] for n in names} | {"shed": stored_shedder(query)}
        join = StreamJoin(
            streams,
            placement=placement,
            executor=executor,
            driver_memory=driver_memory,
            **settings,
        )
        join.setup = replace(join.setup, resumed=True)
        return join.start(
            path, durability=durability, foreachBatch=foreachBatch, keep=keep, **trigger
        )

    def _describe_settings(self) -> dict[str, Any]:
        s = self.setup
        query = {
            "on": s.on,
            "streams": list(s.streams),
            "schemas": s.schemas,
            "windows": s.windows,
            "time": s.time,
            "lateness": s.lateness,
            "ahead": s.ahead,
            "placement": type(s.placement).__name__,
            "settings": s.placement,
            "partitions": self._partitions,
            "seed": s.seed,
            "check": s.checks_coverage,
            "shed": s.shed,
            "keys": computed_columns(s.predicate),
        }
        return dict(to_plain(query))
