"""StreamJoin: the public class to define, start and resume a join."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from braid.arrow_join import ArrowJoinRun
from braid.batch_sink import Give
from braid.batch_sink import check_sink as delivering
from braid.condition.predicate import Predicate
from braid.core.match_rules import Match, MatchArguments
from braid.core.placement import Placement
from braid.explain import Explanation, explain_join
from braid.join_analysis import analyze_join
from braid.join_config import (
    AHEAD,
    LONGEST_PACE,
    JoinArguments,
    JoinConfig,
    parse_join,
    placement_from_json,
)
from braid.join_run import JoinRun
from braid.papers.shedding.shed import Shed
from braid.run_folder_setup import (
    check_resumable,
    prepare_run,
    read_settings,
    refuse_closed_run,
    set_limits,
    stored_settings,
    take_over_unready,
)
from braid.sources.input_fingerprints import check_batches
from braid.sources.stream_arguments import check_streams, make_source
from braid.sources.stream_source import AnalyzedJoin, StreamSource
from braid.state_forecast import check_bounded, find_narrow_windows, find_other_watermarks
from braid.storage.durable_files import Durability
from braid.storage.remote_medium import is_object_store_url
from braid.storage.run_store import RunStore, open_store
from braid.time_arguments import Time
from braid.util.durations import Span
from braid.util.validation import check_folder, check_seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BATCHES = 20
"""Default number of micro-batches of static streams."""


class StreamJoin:
    """A join of two or more streams on any condition, distributed by a placement.

    Parameters
    ----------
    streams
        Streams by alias: Spark DataFrames, streaming or static. Static ones are replayed as
        micro-batches.

        Or pandas or Polars frames, Arrow tables or DataFrames of Spark Connect. The join then runs
        in this process, and its results are Arrow tables. The condition is still Spark SQL,
        restricted to what ``braid.condition.duckdb_compiler`` supports. Levels of a pandas index
        become columns, except for an unnamed RangeIndex. An unnamed level is called ``index`` or
        ``level_0``, as in ``reset_index()``.
    on
        The condition: Spark SQL over ``alias.column``. NULL never matches. If the session's time
        zone is not UTC, timestamps of two streams can be compared, with an INTERVAL on either side.
        Other expressions that depend on the zone (a difference, an hour, a date) must refer to one
        stream.
    placement
        The placement, for example ``AdaptiveGrid(hosts=16)``. Default: "auto", which simulates the
        placements that support the join and chooses one (see
        ``braid.simulation.placement_comparison``), with one host for each concurrent task.
        ``explain()`` and an event give the reason.
    windows
        How long a tuple can be joined ("60 seconds", "5 min" or a ``timedelta``): one span for
        all streams, or spans by alias. A result (s_1..s_m) satisfies T - T_i < W_i for every i,
        where T is its latest event time. Default: what the condition implies, for example from
        ``b.ts <= a.ts + INTERVAL 1 HOUR``; "unbounded", for all streams or by alias, keeps the full
        history. A streaming source that nothing bounds needs the word.
    time
        The event-time column (timestamp or date): one name for all streams, or names by alias.
        Required with windows. Default: the column with a watermark (``withWatermark``), if the
        frame has one.
    lateness
        Maximum delay behind the stream's clock at the start of the batch: one span for all streams,
        or spans by alias. A tuple within it meets every partner. A later tuple is joined with the
        remaining state and counted in ``late_tuples``. Default: the delay of the frame's watermark
        if it is on the event-time column, else 0.
    partitions
        Spark partitions for the hosts. Default: the session's parallelism.
    seed
        Seed of the routing hash. Default: 0.
    check
        Verify before each batch that the plan meets every pair exactly once. Default: False.
    executor
        Executor of a batch's tasks: "spark", or "process", the threads of this process, which
        receives the batch as Arrow. Default: "auto", which chooses for each batch by a cost model
        that learns from earlier batches (see ``braid.execution.executor_choice``); an event gives
        the choice and its reason. State and files are the same for both, so it can change between
        batches (``JoinRun.set_executor``) and at a resume. Tables always use this process.
    shed
        Load shedding for a join that cannot keep up, for example ``Shed(seconds=1)``. Results then
        have a column ``weight``, 1 / the probability that the result is found. Sums of weights
        estimate the results of the full join. Default: None.
    driver_memory
        Limit for one batch in this process, in bytes or as "2 GB". Default: a quarter of the
        machine's memory. With ``executor="auto"``, larger batches run on Spark. With "process",
        only Spark's own limit applies (``spark.driver.maxResultSize``). Not for tables; of Spark
        Connect, larger frames are refused.
    ahead
        How far past its stream's clock a single tuple advances it. Default: "1 day". The clock
        starts at the median event time of the stream's first batch. Tuples further ahead are
        joined, but they advance the clock only once there are eight of them, so a few wrong
        timestamps lose no result. An event ``ClockJumped`` reports such a jump.
    idle
        How far, in event time, a stream may fall behind the others before they no longer wait for
        it, as "10 minutes": its clock is at least the greatest clock of the others less this span.
        Tuples that come after such a silence may be late. Default: None, they wait for ever.
    how
        Kind of the join: "inner", "left", "right", "full", "semi" or "anti", in Spark's spellings
        too; of three or more streams ``{"a": "keep"}`` by alias, which is ``a LEFT JOIN (b JOIN
        c)``. ``emit`` says when a tuple without a partner is a result. Default: "inner".
    emit
        "final" (default): once no partner may come. "early": at once, until it has a partner.
    changes
        Change columns by alias, for streams of changes: ``insert`` and ``update_postimage`` or 1
        for a row that comes, ``delete`` and ``update_preimage`` or -1 for one that goes, as in
        Delta's change feed. Results have a column ``_change_type``, ``insert`` or ``delete``,
        instead. Only with full history. Default: None.
    match, order, tolerance, strict, ties
        An as-of join: each tuple of the first stream gets one partner at most, the "latest",
        "first" or "nearest" one. See ``braid.core.match_rules``. Default: None, all partners.
    where
        Filters by alias, each Spark SQL of one stream, as ``{"a": "a.x > 1"}``. The join ignores
        rows for which one is not true. In contrast, a filter of a preserved stream in ``on`` only
        decides which rows can match. Default: None.

    Raises ValueError for invalid arguments, PredicateError for an unsupported condition. Nothing is
    started or written before that.
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
        lateness: Span | Mapping[str, Span] | None = None,
        partitions: int | None = None,
        seed: int = 0,
        check: bool = False,
        executor: str = "auto",
        shed: Shed | None = None,
        driver_memory: str | int | None = None,
        ahead: Span = AHEAD,
        idle: Span | None = None,
        how: str | Mapping[str, str] = "inner",
        changes: Mapping[str, str] | None = None,
        match: Match | None = None,
        order: str | Mapping[str, str] | None = None,
        tolerance: Span | float | None = None,
        strict: bool = False,
        ties: str | Sequence[str] | None = None,
        where: Mapping[str, str] | None = None,
        emit: Literal["final", "early"] = "final",
    ) -> None:
        source = self._make_source(streams, where)
        arguments = JoinArguments(
            on,
            placement,
            windows,
            time,
            lateness,
            partitions,
            seed,
            check,
            source.check_execution(executor, driver_memory),
            shed,
            driver_memory,
            ahead,
            idle,
            how,
            changes,
            MatchArguments(match, order, tolerance, strict, ties),
            where,
            emit,
        )
        schemas, marks = source.read_columns(), source.read_watermarks()
        self._analyze(parse_join(arguments, schemas, self.config_class, marks), source)

    @classmethod
    def _make_source(cls, streams: Mapping[str, Any], where: Any = None) -> StreamSource:
        return make_source(check_streams(streams), not cls.config_class.shares_queries, where)

    def _analyze(self, config: JoinConfig, source: StreamSource) -> None:
        self._set_join(analyze_join(config, source))
        if not source.is_spark:
            self.run_class = ArrowJoinRun

    def _set_join(self, join: AnalyzedJoin) -> None:
        self._join, self.config, self.source = join, join.config, join.source

    @property
    def streams(self) -> Mapping[str, Any]:
        """The streams, by alias."""
        return self.source.streams

    @property
    def on(self) -> str:
        """The condition as it was given."""
        return self.config.on

    @property
    def predicate(self) -> Predicate:
        """The parsed condition."""
        return self._join.predicate

    @property
    def placement(self) -> Placement:
        """The placement."""
        return self._join.placement

    @property
    def time(self) -> Time | None:
        """The event-time column or columns."""
        return self.config.time

    @property
    def partitions(self) -> int:
        """Number of Spark partitions for the hosts."""
        return self._join.partitions

    @property
    def spark(self) -> SparkSession:
        """The Spark session of the streams."""
        return self.source.spark_session

    def explain(self, count: bool = False, rates: Mapping[str, float] | None = None) -> Explanation:
        """Return an explanation of the join, as text and a small table.

        Nothing is started or written.

        It lists filters, index conditions and residuals, windows, placement, executor, routing, and
        the storage for each tuple, and the tuples that will be held. With ``count``, static streams
        are read once to estimate the state. ``rates`` are rows a second by alias, for streams that
        do not end; without them the forecast is for each 1,000 rows a second.

        Raises ValueError for a rate of an unknown stream, or one that is not above 0.
        """
        return explain_join(self._join, count, rates)

    def __repr__(self) -> str:
        windows = "".join(f", {a} within {w}" for a, w in self.config.window_texts.items())
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
        landing: str | None = None,
        trace: Span | None = None,
        **trigger: Any,
    ) -> JoinRun:
        """Start a run of this join in ``path``, or continue the run there. Returns at once.

        Parameters
        ----------
        path
            Folder or bucket of the run. A run of this join in it continues with its copy of static
            streams; the given streams must have the same rows.
        batches
            Number of micro-batches of static streams, or the column that numbers them (see
            ``sources.static_replay``). Default: 20. If all are static, the run ends after them.
        pace
            Minimum seconds between two micro-batches. Default: 0.
        durability
            What a commit survives: "power", a power failure, or "process", the end of the process
            only, which saves some milliseconds a batch. Default: "power".
        foreachBatch
            Function that gets the results and number of each committed batch, in order and without
            gaps. Results are a DataFrame, valid until it returns, or an Arrow table. The number is
            recorded after that. After a crash it gets the same number and rows again; for exactly
            once, ignore a number that was processed. The run waits for it and fails with it.
        keep
            How long results are kept, as "30 days", or their maximum size, as "10 GB". Default:
            forever. Those of 500 batches are removed at once, oldest first, with their events, but
            never before ``foreachBatch`` has them.
        landing
            Where a server of Spark Connect lands streams. Default: in ``path`` if it is local.
        trace
            How long the tuples of streams that do not end are kept for ``why``, or their size, as
            "5 GB". Default: None, those that are held only.
        trigger
            Spark's trigger of streams: ``processingTime="1 second"``, ``availableNow=True``.

        Raises ValueError if a streaming source is held for ever and ``windows`` does not say
        "unbounded", if the folder holds the run of another join, or of this one with other rows,
        sources or ``batches``. Raises DamagedRunError, a ValueError, if files are damaged.
        """
        give = delivering(foreachBatch)
        store = open_store(path if is_object_store_url(path) else check_folder(path), durability)
        set_limits(store, keep, trace, give is not None and self.source.has_remote_hosts())
        check_seconds(pace, "pace", LONGEST_PACE)
        trigger = self.source.parse_trigger(trigger)
        self.source.set_landing(landing, store)
        self._keep_stored_placement(store)
        query = self._join.describe_settings()
        stored = stored_settings(store, query)
        if stored is None:
            if not self.config.resumed:
                check_bounded(self._join)
            for warning in (*find_narrow_windows(self._join), *find_other_watermarks(self._join)):
                warnings.warn(warning, stacklevel=2)
        cut = self._join.check_batches(_BATCHES if batches is None else batches)
        replay = None if stored is not None else self._join.make_replay(cut)
        self.source.prepare_workers()
        store.acquire_run()
        try:
            self.source.check_shared_folder(store)
            with store.raise_if_superseded():
                settings = stored_settings(store, query) or take_over_unready(store, query)
                if is_new := settings is None:
                    settings = prepare_run(store, query, self._join, replay, cut)
                check_resumable(store, self._join)
                if not is_new:
                    check_batches(batches, settings, store.where)
                    self.source.check_input(store, settings, self.config.resumed)
                store.take_over()
                refuse_closed_run(store, give is not None)
                store.remove_unnamed_files()
                return self.run_class(self._join, store, settings, pace, trigger, give)
        except BaseException:
            store.release_run()
            raise

    @classmethod
    def resume(
        cls,
        path: str | Path,
        streams: Mapping[str, Any],
        executor: str = "auto",
        driver_memory: str | int | None = None,
        durability: Durability = "power",
        foreachBatch: Give | None = None,
        keep: Span | None = None,
        **trigger: Any,
    ) -> JoinRun:
        """Continue the run in ``path`` from its last commit. Return it.

        Static streams continue from the copy in the folder; the frames' content is ignored.
        ``executor`` and ``driver_memory`` are as for StreamJoin, the other arguments as for
        ``start``; they may differ from those of the original run. A shared run continues with the
        queries and chains of its last commit. Raises as ``start`` does, and ValueError if ``path``
        holds no such run.
        """
        store = open_store(path if is_object_store_url(path) else check_folder(path))
        stored, kind = read_settings(store), cls.config_class
        if stored is None or not kind.can_restore(stored):
            raise ValueError(f"{path} holds no {kind.run_name} that could be resumed")
        source = cls._make_source(streams, stored.get("where"))
        executor = source.check_execution(executor, driver_memory)
        config = kind.from_json(stored, source.read_columns(), executor, driver_memory)
        join = cls.__new__(cls)
        join._analyze(replace(config, resumed=True), source)
        return join.start(
            path, durability=durability, foreachBatch=foreachBatch, keep=keep, **trigger
        )

    def _keep_stored_placement(self, store: RunStore) -> None:
        """Take over the stored placement if it was chosen automatically.

        A resumed run thus keeps its placement on any machine.
        """
        if self.config.chosen is not None and (stored := read_settings(store)) is not None:
            self._amend(placement=placement_from_json(stored))

    def _amend(self, **changed: Any) -> None:
        """Replace settings."""
        self._set_join(replace(self._join, config=replace(self.config, **changed)))
