"""JoinRun: a running join of Spark's streams, and its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from braid.core.reserved_columns import WEIGHT
from braid.engine_run import EngineRun
from braid.errors import DamagedRunError
from braid.kernels.join_spec import JoinSpec
from braid.run_results import flatten_results, read_results
from braid.sources.batch_drivers import BatchDriver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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

    def _open_input(self) -> tuple[JoinSpec, Any]:
        """Return the settings that stay the same for all batches, and the union of the streams."""
        from pyspark.sql import types as T

        from braid.condition.spark_analyzer import make_spark_nullable

        setup = self.config
        sources = setup.open_sources(self.store)
        columns = tuple(tuple(f.columns) for f in sources.values())
        frame, where = setup.union_streams(sources)
        schemas = {a: make_spark_nullable(f.schema) for a, f in sources.items()}
        self._schema: Any = T.StructType([T.StructField(a, s) for a, s in schemas.items()])
        spec = JoinSpec(
            setup.predicate,
            columns,
            where,
            setup.window_limits,
            str(self.store.path),
            setup.partitions,
            setup.utility_rule,
            object_store_url=self.store.url,
        )
        return spec, frame

    @property
    def _result_schema(self) -> Any:
        """A struct for each alias, and the weight in a run that sheds load."""
        from pyspark.sql import types as T

        more = [] if self.config.shed is None else [T.StructField(WEIGHT, T.DoubleType())]
        return T.StructType([*self._schema.fields, *more])

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
        if gone and self.config.spark.conf.get(_MISSING, "false") != "true":
            raise DamagedRunError(
                f"{gone[0]} is gone, which Spark has listed for micro-batch {number}, so its rows "
                f"would be lost; restore it, or set {_MISSING} to true"
            )

    def _make_empty_batch(self) -> DataFrame:
        """Return a batch without tuples, to end a migration.

        It has a cloned session, as a query does.
        """
        from braid.execution.spark_executor import clone_session, disable_adaptive_execution

        spark = clone_session(self.config.spark)
        empty = {f.name: spark.createDataFrame([], f.dataType) for f in self._schema.fields}
        nothing = self.config.union_streams(empty)[0]
        disable_adaptive_execution(nothing)
        return nothing

    def _read_batch_results(self, batch: int) -> Any:
        """Return the results of one batch. They are valid until the next call."""
        return self._read_results(self.store.results.temporary_result_files(batch, self._deep))

    def results(self) -> DataFrame:
        """Return the committed results from batch ``first_retained_batch`` on.

        Each alias is a struct column, so "l.l_orderkey" selects a field. A run that sheds load also
        has a column ``weight``.
        """
        return self._read_lasting_results(self.store.results.result_files(deep=self._deep))

    def _read_lasting_results(self, files: list[str]) -> DataFrame:
        """Return results that remain valid.

        Spark reads the files each time the DataFrame is evaluated.
        """
        found = self._read_results(files)
        self.store.keep_until_exit()
        return found

    def _read_results(self, files: list[str]) -> DataFrame:
        if self.store.url and self.config.has_remote_hosts(self.config.streams):
            raise ValueError(
                f"the results of the run in {self.store.where} come to this machine, whose disk "
                "Spark's workers do not see; ask a session whose master is local[*]"
            )
        return read_results(self.config.spark, self._result_schema, files)

    def results_since(self, batch: int = 0) -> tuple[DataFrame, int]:
        """Return the results from number ``batch`` on, and the number for the next call.

        Calls that pass this number return every result once. Raises ValueError if some of these
        results are no longer kept.
        """
        end = self._next_result_batch(batch)
        files = self.store.results.result_files(batch, end, self._deep)
        return self._read_lasting_results(files), max(batch, end)

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

    def results_stream(self) -> DataFrame:
        """Return the retained and future results as a streaming DataFrame.

        A StreamJoin accepts it as a stream.

        Column ``x`` of alias ``a`` is named ``a_x``. If the join has event time, the result has an
        event-time column: the latest event time of its members, named as that of the first stream.
        A result can be as late as this join's lateness allows, so a join that reads the stream
        needs at least that lateness.

        Raises ValueError if two columns would have the same name, and for a run in a bucket.
        """
        if self.store.url:
            raise ValueError(
                f"the run in {self.store.where} has no stream of results, which Spark reads from a "
                "folder only; ask results_since(batch) again and again"
            )
        whole = self.config.spark.readStream.schema(self._result_schema).parquet(
            self.store.published.results.as_uri()
        )
        columns = {f.name: f.dataType.fieldNames() for f in self._schema.fields}
        return flatten_results(
            whole, columns, self.config.event_time_columns, self.config.shed is not None
        )
