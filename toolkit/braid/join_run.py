"""JoinRun: a running join of Spark's streams, and what it has found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from braid.core.reserved_columns import WEIGHT
from braid.execution.weak_callbacks import weak_callback
from braid.kernels.join_spec import JoinSpec
from braid.run_lifecycle import RunLifecycle
from braid.run_results import flatten_results, read_results
from braid.storage.durable_files import DamagedRunError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_MISSING = "spark.sql.files.ignoreMissingFiles"


class JoinRun(RunLifecycle):
    """A running (or ended) join: what Spark's StreamingQuery is for a query, plus results, events
    and metrics. What every run has, as ``stop``, ``events`` and ``metrics``, is in
    braid.run_lifecycle.RunLifecycle; a run of tables (TableRun) is one too, but for what is
    Spark's.

    It ends by itself when its input is known to be finite. All methods may be called from any
    thread.
    """

    _deep = False
    """Whether results are held against their checksums before they are read. Spark does it page by
    page, when it reads them."""

    def _open_input(self) -> tuple[JoinSpec, Any]:
        """What stays the same from batch to batch, and the streams' union."""
        from pyspark.sql import types as T

        from braid.condition.spark_analyzer import make_spark_nullable

        setup = self.setup
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

        more = [] if self.setup.shed is None else [T.StructField(WEIGHT, T.DoubleType())]
        return T.StructType([*self._schema.fields, *more])

    def _start_query(self, frame: DataFrame, trigger: Mapping[str, Any]) -> StreamingQuery:
        from braid.storage.checkpoint_files import make_own_path

        self.store.copied.wait_for_batch(self._done_before)
        writer = frame.writeStream.foreachBatch(weak_callback(self._run_batch_in_order)).option(
            "checkpointLocation", make_own_path(self.setup.spark, self.store.path / "checkpoint")
        )
        trigger = dict(trigger) or (
            {"availableNow": True} if self._settings["batches"] is not None else {}
        )
        return (writer.trigger(**trigger) if trigger else writer).start()

    def _run_batch_in_order(self, frame: DataFrame, number: int) -> None:
        """Spark looks at the files of the next batch when this one returns: they are whole then."""
        self._run_next_batch(frame, number)
        self.store.copied.wait_for_batch(number + 1)

    def _prepare_batch(self, frame: DataFrame, number: int) -> None:
        from braid.execution.spark_executor import disable_adaptive_execution

        self._check_input(number)
        disable_adaptive_execution(frame)

    def _check_input(self, number: int) -> None:
        """Raise Damaged when a file of the batch is gone: Spark takes that for one without rows."""
        if number <= self._engine.state.epoch:
            return
        self.store.copied.check_files(number)
        gone = [f for f in self.store.checkpoint.source_files(number) if not f.exists()]
        if gone and self.setup.spark.conf.get(_MISSING, "false") != "true":
            raise DamagedRunError(
                f"{gone[0]} is gone, which Spark has listed for micro-batch {number}, so its rows "
                f"would be lost; restore it, or set {_MISSING} to true"
            )

    def _make_empty_batch(self) -> DataFrame:
        """No tuples, for a batch that ends a migration, in a session as a query has."""
        from braid.execution.spark_executor import clone_session, disable_adaptive_execution

        spark = clone_session(self.setup.spark)
        empty = {f.name: spark.createDataFrame([], f.dataType) for f in self._schema.fields}
        nothing = self.setup.union_streams(empty)[0]
        disable_adaptive_execution(nothing)
        return nothing

    @property
    def spark_query(self) -> StreamingQuery:
        """Spark's own handle of the query."""
        return self._spark_query

    def _read_batch_results(self, batch: int) -> Any:
        """The results of one batch, which are good until the next is asked for."""
        return self._read_results(self.store.temporary_result_files(batch, self._deep))

    def results(self) -> DataFrame:
        """The committed results: one struct column per alias, so that "l.l_orderkey" selects; and
        in a run that sheds load the ``weight`` of each. They are all there are from batch
        ``results_from`` on.
        """
        return self._read_lasting_results(self.store.result_files(deep=self._deep))

    def _read_lasting_results(self, files: list[str]) -> DataFrame:
        """What stays good: Spark reads the files whenever the DataFrame is asked."""
        found = self._read_results(files)
        self.store.keep_until_exit()
        return found

    def _read_results(self, files: list[str]) -> DataFrame:
        if self.store.url and self.setup.has_remote_hosts(self.setup.streams):
            raise ValueError(
                f"the results of the run in {self.store.where} come to this machine, whose disk "
                "Spark's workers do not see; ask a session whose master is local[*]"
            )
        return read_results(self.setup.spark, self._result_schema, files)

    def results_since(self, batch: int = 0) -> tuple[DataFrame, int]:
        """The results of the batches from number ``batch`` on, as ``results``, and the number to
        ask with the next time: asked so, every result comes once. Raises ValueError where some of
        them are no longer kept.
        """
        end = self._next_result_batch(batch)
        return self._read_lasting_results(self.store.result_files(batch, end, self._deep)), max(
            batch, end
        )

    @property
    def first_retained_batch(self) -> int:
        """The first batch whose results are kept (``keep``); 0: all are."""
        return self.store.log.first_retained_batch

    def _next_result_batch(self, batch: int) -> int:
        """The number to ask with after a batch."""
        if batch < self.first_retained_batch:
            raise ValueError(
                f"the results of batches before {self.first_retained_batch} are no longer kept; "
                "ask from "
                f"{self.first_retained_batch} on, which is run.results_from"
            )
        return self._engine.state.batch + 1

    def results_stream(self) -> DataFrame:
        """The results as a streaming DataFrame, from the first that is kept on and as they are
        committed; a StreamJoin takes it as a stream.

        Column ``x`` of alias ``a`` is named ``a_x``. Where the join has an event-time column, the
        stream has one of that name, or of that of the first stream: the latest event time of a
        result's members. What a result may lie behind others of its stream is this join's
        lateness, so a join that reads it needs a lateness as long.

        Raises ValueError where two columns would have one name, and for a run in a bucket.
        """
        if self.store.url:
            raise ValueError(
                f"the run in {self.store.where} has no stream of results, which Spark reads from a "
                "folder only; ask results_since(batch) again and again"
            )
        whole = self.setup.spark.readStream.schema(self._result_schema).parquet(
            self.store.output.results.as_uri()
        )
        columns = {f.name: f.dataType.fieldNames() for f in self._schema.fields}
        return flatten_results(
            whole, columns, self.setup.event_time_columns, self.setup.shed is not None
        )
