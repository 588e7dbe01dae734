"""JoinRun: a running join of Spark's streams, and its results."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from braid.core.irregular_rows import IrregularRowsWritten
from braid.engine_run import EngineRun
from braid.errors import DamagedRunError, PendingPairs
from braid.run_results import (
    add_event_time,
    flatten_results,
    read_irregular_rows,
    read_results,
    sum_changes,
)
from braid.sources.batch_drivers import BatchDriver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from braid.result_explanation import Why
    from braid.row_selectors import Selector
    from braid.run_bundle import Bundle
    from braid.run_doctor import Diagnosis

_MISSING = "spark.sql.files.ignoreMissingFiles"


class JoinRun(EngineRun):
    """A running or ended join, with its results, events and metrics.

    It is the counterpart of Spark's StreamingQuery.

    ``RunLifecycle`` has the methods that every run has, such as ``stop`` and ``events``, and
    ``EngineRun`` those of every join, such as ``metrics``. A run of tables (``ArrowJoinRun``) is a
    JoinRun, too, without Spark's part.

    The run ends by itself if its input is finite. All methods are thread-safe.
    """

    _deep = False
    """Whether results are verified by checksum before they are read. Spark verifies each page while
    it reads.
    """

    @property
    def _spark(self) -> SparkSession:
        """The Spark session of the streams."""
        return self._join.source.spark_session

    def _make_driver(self, frame: Any, trigger: Mapping[str, Any]) -> BatchDriver:
        from braid.sources.spark_batches import SparkBatches

        self.store.input.wait_for_batch(self._done_before)
        is_finite = self._settings["batches"] is not None
        return SparkBatches(frame, self.store.path / "checkpoint", trigger, is_finite)

    def _check_input(self, number: int) -> None:
        """Raise DamagedRunError if a file of the batch is missing. Spark would read it as empty."""
        if number <= self._engine.state.epoch:
            return
        self.store.input.check_files(number)
        gone = [f for f in self.store.checkpoint.source_files(number) if not f.exists()]
        if gone and self._spark.conf.get(_MISSING, "false") != "true":
            raise DamagedRunError(
                f"{gone[0]} is gone, which Spark has listed for micro-batch {number}, so its rows "
                f"would be lost; restore it, or set {_MISSING} to true"
            )

    def _make_empty_batch(self) -> DataFrame:
        """Return a batch without tuples, to end a migration.

        It has a cloned session, as a query does.
        """
        from braid.condition.spark_type_checker import make_spark_nullable
        from braid.execution.spark_executor import clone_session, disable_adaptive_execution

        spark = clone_session(self._spark)
        streams = self._join.source.open_streams(self.store)
        schemas = {a: make_spark_nullable(frame.schema) for a, frame in streams.items()}
        empty = {a: spark.createDataFrame([], schema) for a, schema in schemas.items()}
        nothing: DataFrame = self._join.source.union_streams(self._join, empty)[0]
        disable_adaptive_execution(nothing)
        return nothing

    def _read_batch_results(self, batch: int) -> Any:
        """Return the results of one batch. They are valid until the next call."""
        return self._read_results(self.store.results.temporary_result_files(batch, self._deep))

    def results(self, net: bool = False) -> DataFrame:
        """Return the committed results from batch ``first_retained_batch`` on.

        Each alias is a struct column, so "l.l_orderkey" selects a field. A run that sheds load also
        has a column ``weight``; a join of changes or with early answers has a column
        ``_change_type``.

        With ``net``, each of these results comes as often as it was inserted more than deleted:
        these are the results for the rows that exist now, without early answers that were taken
        back.

        Raises ValueError for ``net`` without such a column, and if some results are no longer kept.
        """
        if not net:
            return self._read_lasting_results(self.store.results.result_files(deep=self._deep))
        self._check_net()
        summed: DataFrame = self._sum_changes(self.results())
        return summed

    def _check_net(self) -> None:
        if not self.config.has_change_types:
            raise ValueError(
                "net is for joins of changes, or with early answers; give the join changes= or "
                "emit='early', or leave it out"
            )
        if self.first_retained_batch:
            raise ValueError(
                f"the results of batches before {self.first_retained_batch} are no longer kept, so "
                "that changes have no sum; start a run without keep="
            )
        if self._engine.placement.has_pending_pairs(self._engine.state.placement_state):
            warnings.warn(
                PendingPairs(
                    "some pairs are joined later, because a change of placement is in progress; "
                    "the net results are not those of one moment"
                ),
                stacklevel=3,
            )

    def _sum_changes(self, changes: Any) -> Any:
        return sum_changes(changes)

    def _read_lasting_results(self, files: list[str]) -> DataFrame:
        """Return results that remain valid.

        Spark reads the files each time the DataFrame is evaluated.
        """
        results = self._read_results(files)
        self.store.keep_until_exit()
        return results

    def _read_results(self, files: list[str]) -> DataFrame:
        if self.store.url and self._join.source.has_remote_hosts():
            raise ValueError(
                f"the results of the run in {self.store.where} come to this machine, whose disk "
                "Spark's workers do not see; ask a session whose master is local[*]"
            )
        return read_results(self._spark, self._schema, files)

    def results_since(self, batch: int = 0) -> tuple[DataFrame, int]:
        """Return the results from number ``batch`` on, and the number for the next call.

        Calls that pass this number return every result once. Raises ValueError if some of these
        results are no longer kept.
        """
        end = self._next_result_batch(batch)
        files = self.store.results.result_files(batch, end, self._deep)
        return self._read_lasting_results(files), max(batch, end)

    def late(self) -> Any:
        """Return the irregular tuples of committed batches: late, untimed and early ones.

        It is a DataFrame, or an Arrow table in a run of tables. They are kept for as long as the
        events of their batch. Columns:

        - ``stream``: alias.
        - ``reason``: "late", behind what others were kept for, so that it may miss partners;
          "untimed", without event time, so that it was joined only if the join needs none;
          "ahead", too far ahead of the clock of its stream to advance it.
        - ``behind``: how far a late tuple is behind, an interval; NULL for others.
        - ``batch``: the batch in which it came.
        - ``row``: a struct for each alias, NULL but for that of the tuple's stream.

        Raises DamagedRunError if a file is missing or damaged, until ``braid repair`` gives it up.
        """
        written = self.store.events.events_of_type(IrregularRowsWritten)
        aliases = list(self.config.streams)
        files = self.store.irregular.find_paths(written, aliases, self._deep)
        return self._read_irregular_rows(files)

    def doctor(self, rules: Sequence[str] | None = None) -> Diagnosis:
        """Return what is wrong with this run, as ``braid.doctor`` does."""
        from braid.run_doctor import doctor

        return doctor(self.store.url or self.store.path, rules)

    def bundle(
        self, file: str | Path | None = None, data: bool = False, last: int | None = None
    ) -> Bundle:
        """Write what others need to understand this run into one file, as ``braid.bundle`` does."""
        from braid.run_bundle import bundle

        return bundle(self.store.url or self.store.path, file, data, last)

    def why(
        self,
        rows: Mapping[str, Selector],
        limit: int = 20,
        query: str | None = None,
        blocks: bool = False,
    ) -> Why:
        """Return why tuples are joined in this run, or are not, as ``braid.why`` does.

        Spark's session evaluates the parts of the condition that DuckDB cannot.
        """
        from braid.result_explanation import explain_rows

        where = self.store.url or self.store.path
        return explain_rows(where, rows, limit, self._find_session(), query, blocks)

    def _find_session(self) -> SparkSession | None:
        return self._spark

    def _read_irregular_rows(self, files: Mapping[str, list[str]]) -> Any:
        """Return irregular rows from files by alias."""
        self.store.keep_until_exit()
        return read_irregular_rows(self._spark, self._irregular_schema, files)

    @property
    def first_retained_batch(self) -> int:
        """The first batch whose results are kept (see ``keep``); 0: all are."""
        return self.store.log.first_retained_batch

    def _next_result_batch(self, batch: int) -> int:
        """Return the number to pass to the next call.

        Raises ValueError if results from ``batch`` on are gone.
        """
        if batch < self.first_retained_batch:
            raise ValueError(
                f"the results of batches before {self.first_retained_batch} are no longer kept; "
                "ask from "
                f"{self.first_retained_batch} on (run.first_retained_batch)"
            )
        return self._engine.state.batch + 1

    def results_stream(self, flat: bool = False) -> DataFrame:
        """Return the retained and future results as a streaming DataFrame.

        A StreamJoin accepts it as a stream. It has a struct for each alias, as ``results()`` has,
        or with ``flat`` the column ``a_x`` for column ``x`` of alias ``a``. If the join has event
        time, the result has an event-time column: the latest event time of its members, named as
        that of the first stream.

        A join that reads the stream needs enough ``lateness``. A pair can be as late as this join's
        lateness allows. A tuple that is answered without a partner, or in an as-of join, has its
        own event time but comes once its answer is final: later by the time for which it can match,
        this join's lateness, and a micro-batch.

        Raises ValueError if two columns would have the same name, and for a run in a bucket.
        """
        if self.store.url:
            raise ValueError(
                f"the run in {self.store.where} has no stream of results, which Spark reads from a "
                "folder only; ask results_since(batch) again and again"
            )
        stream = self._spark.readStream.schema(self._schema).parquet(
            self.store.published.results.as_uri()
        )
        aliases = [alias for alias in self.config.streams if alias in self._schema.names]
        columns = {alias: self._schema[alias].dataType.fieldNames() for alias in aliases}
        times = {a: t for a, t in self.config.event_time_columns.items() if a in columns}
        return (flatten_results if flat else add_event_time)(stream, columns, times)
