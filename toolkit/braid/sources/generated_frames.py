"""Streams that are generated while Spark reads them, micro-batch by micro-batch."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pyspark.sql import DataFrame

from braid.condition.spark_type_checker import make_spark_nullable
from braid.sources import generated_streams
from braid.sources.generated_streams import SAMPLED, GeneratedReplay
from braid.sources.spark_streams import SparkStreams
from braid.sources.stream_source import PAGES
from braid.storage.generated_stream import GeneratedFrame
from braid.storage.run_store import RunStore


class GeneratedSparkStreams(SparkStreams):
    """Generated streams by alias, which Spark reads from files of micro-batches.

    A file is written shortly before Spark reads it.

    - ``streams``: their first tuples, from which the join is planned.
    """

    has_generated_rows = True

    def __init__(self, given: Mapping[str, GeneratedFrame]) -> None:
        super().__init__(
            {a: f.session.createDataFrame(f.stream.make_batches(SAMPLED)) for a, f in given.items()}
        )
        self._generated = {alias: frame.stream for alias, frame in given.items()}

    def describe_schemas(self) -> dict[str, str]:
        """Return the columns, and that they are generated."""
        return {a: f"{text}, generated" for a, text in super().describe_schemas().items()}

    def check_shared_folder(self, store: RunStore) -> None:
        if store.url:
            raise ValueError(
                f"the streams are generated, but {store.url} is a bucket; start the run in a folder"
            )
        super().check_shared_folder(store)

    def make_replay(  # type: ignore[override]
        self,
        batches: int | str,
        times: Mapping[str, str],
        memory: int,
        undivided: Collection[str] = (),
    ) -> GeneratedReplay:
        return generated_streams.make_generated_replay(self._generated, batches, has_files=True)

    def record_fingerprints(self) -> dict[str, Any]:
        return generated_streams.record_generated(self._generated)

    def check_input(self, store: RunStore, stored: Mapping[str, Any], resumed: bool) -> None:
        expected = {} if resumed else self._generated
        generated_streams.check_generated(expected, stored, store.where)

    def _read_input_snapshot(self, store: RunStore, alias: str) -> DataFrame:
        schema = make_spark_nullable(self.streams[alias].schema)
        reader = self.spark_session.readStream.schema(schema).options(maxFilesPerTrigger=1, **PAGES)
        return reader.parquet(str(store.input.folder / alias))
