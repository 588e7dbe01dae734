"""Joins of Arrow tables in this process, without Spark or a JVM.

StreamJoin uses them for tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from braid.execution.executors import Executor, check_executor, make_executor
from braid.join_run import JoinRun
from braid.run_results import collect_irregular_tables, sum_table_changes
from braid.sources.batch_drivers import BatchDriver, BatchThread
from braid.storage.block_files import read_parquet


class ArrowJoinRun(JoinRun):
    """A run of tables, on its own thread. Its results are Arrow tables."""

    _deep = True

    def _make_driver(self, frame: Any, trigger: Mapping[str, Any]) -> BatchDriver:
        if (batches := self._settings["batches"]) is None:
            return self._make_landed_driver(frame, trigger)
        numbers = range(self._done_before, batches)
        read_later = partial(partial, frame.read_batch, self.store.input)
        return BatchThread(numbers, self._stopping.is_set, read_later)

    def _make_landed_driver(self, feed: Any, trigger: Mapping[str, Any]) -> BatchDriver:
        """Return the driver for streams that a server of Spark Connect lands."""
        from braid.sources.connect_streams import ConnectStreams
        from braid.sources.server_landing import LandedBatches, LandedInput

        source, memory = self._join.source, self.config.driver_memory
        assert isinstance(source, ConnectStreams)

        def read_rows(rows: Mapping[str, pa.Table], number: int) -> Any:
            return partial(feed.read_batch, LandedInput(self.store.input, rows), number)

        landing, pause = source.make_landing(), self._stopping.wait
        return LandedBatches(landing, self._done_before, pause, trigger, memory, read_rows)

    def _find_session(self) -> None:
        """Return None: a run of tables has no session."""

    def _check_input(self, number: int) -> None:
        self.store.input.check_files(number)  # its content is verified when it is read

    def _make_executor(self, way: str) -> Executor:
        return make_executor("process")

    def _make_empty_batch(self) -> Any:
        return {}

    def _read_results(self, files: list[str]) -> Any:
        schema = self._schema
        checked = {"schema": schema, "page_checksum_verification": True}
        tables = [read_parquet(f, **checked) for f in files]
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def _sum_changes(self, changes: Any) -> Any:
        return sum_table_changes(changes)

    def _read_lasting_results(self, files: list[str]) -> Any:
        return self._read_results(files)

    def _read_irregular_rows(self, files: Mapping[str, list[str]]) -> Any:
        tables = {alias: [read_parquet(f) for f in each] for alias, each in files.items()}
        return collect_irregular_tables(self._irregular_schema, tables)

    def set_executor(self, way: str) -> None:
        """Raise ValueError unless the executor is this process, the only one for tables."""
        if check_executor(way) == "spark":
            raise ValueError(f"the executor is {way!r}; a run of tables has 'process' only")

    def results_stream(self, flat: bool = False) -> Any:
        """Raise ValueError: a streaming DataFrame needs Spark."""
        raise ValueError(
            "a run of tables has no streaming DataFrame; read results/*.parquet of its folder, or "
            "results_since(batch)"
        )
