"""Sources of a join's streams: whatever asks Spark, or the tables themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from sqlglot import exp

from braid.condition.column_names import parse_condition
from braid.condition.predicate import Predicate, computed_columns
from braid.core.horizon import Reach, is_timed, windows_of_reach
from braid.core.match_rules import MatchRule
from braid.core.placement import Placement
from braid.join_config import JoinConfig
from braid.kernels.join_spec import JoinSpec, StreamLayout
from braid.storage.micro_batch_files import MicroBatches
from braid.storage.run_store import RunStore
from braid.time_arguments import Columns, Watermarks
from braid.util.durations import format_duration
from braid.util.validation import check_int

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGES = {"parquet.page.verify-checksum.enabled": "true"}
"""Spark option to verify the checksums of Parquet pages."""
_FEW_BATCHES = 1_000
"""Micro-batches allowed for any input. More are allowed up to the number of rows."""


class ReplaySource(Protocol):
    """Static streams that are checked but not written yet."""

    def write_input(self, folder: Path, check: Callable[[], None] = ...) -> MicroBatches:
        """Write a run's input, whole or as files of micro-batches, and return its extent."""
        ...


class TupleSample(NamedTuple):
    """Tuples of a stream with their keys, and how many rows of the stream each one stands for."""

    tuples: Any
    rows_per_tuple: float

    def count_rows(self) -> float:
        """Return the rows of the stream that the tuples stand for."""
        return float(self.tuples.num_rows * self.rows_per_tuple)


class StreamSource(Protocol):
    """The streams of a join, by alias: Spark's DataFrames, or Arrow tables.

    - ``streams``: frames by alias.
    - ``is_spark``: whether Spark holds the streams. Otherwise this process does.
    - ``most_batches``: maximum number of micro-batches of static streams.
    - ``has_generated_rows``: whether rows are generated for any number of micro-batches.
    """

    streams: Mapping[str, Any]
    is_spark: bool
    most_batches: int
    has_generated_rows: bool

    @property
    def spark_session(self) -> SparkSession:
        """The Spark session of the streams. Raises ValueError for tables."""
        ...

    def read_columns(self) -> Columns:
        """Return the columns of each stream with Spark's type names, by alias."""

    def read_watermarks(self) -> Watermarks:
        """Return the watermarks that the frames declare, by alias."""

    def describe_schemas(self) -> dict[str, str]:
        """Return, by alias, the columns with the source's own types.

        A run is resumed only with streams that have the same.
        """

    def is_static(self, alias: str) -> bool:
        """Return whether a stream is finite and replayed."""

    def measure_extent(self, alias: str, time: str | None) -> tuple[int, int]:
        """Return a static stream's number of rows and its event-time span in microseconds.

        Reads the stream once. ``time``: event-time column; None: there is none.
        """

    def read_event_times(self, alias: str, time: str | None) -> np.ndarray | None:
        """Return the event times of a stream that is in memory, in microseconds; None: it is not.

        ``time``: event-time column; None: there is none, and all times are 0.
        """

    def count_parallel_tasks(self) -> int:
        """Return the number of tasks that run at once."""

    def has_remote_hosts(self) -> bool:
        """Return whether tasks run on several machines."""

    def estimate_rows(self) -> tuple[float, ...]:
        """Return the relative sizes of the streams; equal if unknown."""

    def most_frequent_share(self, predicate: Predicate) -> float:
        """Return the share of tuples with the most frequent join value; 0: unknown."""

    def sample_tuples(
        self, predicate: Predicate, times: Mapping[str, str], most: int
    ) -> Sequence[TupleSample]:
        """Return at most ``most`` tuples of each stream, with their keys; empty: unknown.

        ``times``: event-time columns by alias.
        """

    def check_execution(self, executor: Any, driver_memory: Any) -> str:
        """Return the executor. Raises ValueError unless these streams accept the two settings."""

    def parse_trigger(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the trigger as Spark's arguments. Raises ValueError if it is invalid."""

    def set_landing(self, folder: str | None, store: RunStore) -> None:
        """Set the folder in which a server lands streams of a run.

        Raises ValueError unless these streams are landed.
        """
        if folder is not None:
            raise ValueError(
                f"landing is {folder!r}, which is for streaming DataFrames of Spark Connect; leave "
                "it out"
            )

    def prepare_workers(self) -> None:
        """Make Braid available to the workers. Raises ValueError if they cannot import it."""

    def check_shared_folder(self, store: RunStore) -> None:
        """Raise ValueError unless the workers can read and write the run's folder or bucket."""

    def make_replay(
        self,
        batches: int | str,
        times: Mapping[str, str],
        memory: int,
        undivided: Collection[str] = (),
    ) -> ReplaySource:
        """Return the static streams, ready to be written.

        ``batches``: number of micro-batches, or the column that numbers them. ``times``:
        event-time columns by alias. ``memory``: bytes that this process may hold.
        ``undivided``: streams that come whole in the first micro-batch, unless a column
        numbers them.
        """

    def record_fingerprints(self) -> dict[str, Any]:
        """Return the fingerprints of the streams, to recognize them when the run is resumed."""

    def check_input(self, store: RunStore, stored: Mapping[str, Any], resumed: bool) -> None:
        """Raise ValueError unless the streams are those that the stored run began with.

        ``resumed``: ignore the current content of static streams.
        """

    def check_source_position(self, store: RunStore) -> None:
        """Raise DamagedRunError unless the source continues from the run's last commit."""

    def open_streams(self, store: RunStore) -> Mapping[str, Any]:
        """Return the streams as a run reads them; static ones from their copy in the folder."""

    def list_column_names(self, streams: Mapping[str, Any]) -> list[list[str]]:
        """Return the names of the columns of open streams."""

    def omit_columns(self, columns: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the streams, each without the column that is named by alias."""

    def make_result_schema(
        self,
        streams: Mapping[str, Any],
        weighs: bool,
        structs: Sequence[int] = (),
        changes: Mapping[str, str] | None = None,
        has_change_types: bool = False,
    ) -> Any:
        """Return the schema of results: a struct for each stream, and perhaps weight and change.

        ``structs``: numbers of the streams; empty: all. ``changes``: change columns by alias, which
        the structs do not have. ``has_change_types``: whether results are changes.
        """

    def find_result_types(self, streams: Mapping[str, Any]) -> tuple[pa.DataType, ...]:
        """Return the Arrow types of the structs of results by stream."""

    def union_streams(
        self, join: AnalyzedJoin, streams: Mapping[str, Any]
    ) -> tuple[Any, tuple[StreamLayout, ...]]:
        """Return the streams as one source of batches, and the positions of their columns in it.

        Tuples that can never match are removed. Tuples without event time are removed later, where
        they are counted.
        """


@dataclass(frozen=True)
class AnalyzedJoin:
    """A join whose condition is analyzed for its streams.

    - ``bounds``: bounds of event times that the condition and the windows imply together.
    - ``utilities``: by stream, Spark SQL for a tuple's utility, for load shedding.
    - ``match``: the rule of an as-of join; None: tuples join with all partners.
    """

    config: JoinConfig
    source: StreamSource
    predicate: Predicate
    bounds: Reach
    utilities: tuple[str | None, ...] = ()
    match: MatchRule | None = None

    @property
    def expiry_bounds(self) -> Reach:
        """The bounds by which tuples expire. An unbounded stream has none.

        The first stream of an as-of join is never unbounded, as its tuples take one partner.
        """
        nothing = (None,) * len(self.bounds)
        unbounded = [alias in self.config.unbounded_streams for alias in self.config.streams]
        if self.match is not None:
            unbounded[0] = False
        return tuple(
            nothing if is_unbounded else row
            for is_unbounded, row in zip(unbounded, self.bounds, strict=True)
        )

    @property
    def effective_windows(self) -> tuple[int | None, ...]:
        """By stream, the window that results imply, in microseconds; None: full history."""
        return windows_of_reach(self.expiry_bounds)

    @property
    def window_texts(self) -> dict[str, str]:
        """The same by alias, as text. A stream with full history has none."""
        given = zip(
            self.config.streams, self.effective_windows, self.config.window_limits, strict=True
        )
        return {a: format_duration(w, exact=w == g) for a, w, g in given if w is not None}

    def needs_event_time(self, alias: str) -> bool:
        """Return whether a tuple of a stream without event time can have no result."""
        if self.config.window_texts or self.config.shares_queries or self.match is not None:
            return True
        return is_timed(self.bounds, list(self.config.streams).index(alias))

    @property
    def placement(self) -> Placement:
        """The placement, which has been chosen."""
        assert self.config.placement is not None
        return self.config.placement

    @property
    def partitions(self) -> int:
        """Number of partitions for the hosts: at most one for each."""
        return min(count_partitions(self.config, self.source), self.placement.max_hosts)

    @property
    def static_streams(self) -> list[str]:
        """The aliases of the static streams."""
        return [alias for alias in self.config.streams if self.source.is_static(alias)]

    def measure_extent(self, alias: str) -> tuple[int, int]:
        """Return a static stream's number of rows and its event-time span in microseconds."""
        return self.source.measure_extent(alias, self.config.event_time_columns.get(alias))

    def describe_settings(self) -> dict[str, Any]:
        """Return the settings that the folder of a run of this join holds."""
        plain = self.config.to_json()
        return {
            "on": plain["on"],
            "streams": plain["streams"],
            "schemas": self.source.describe_schemas(),
            **plain,
            "keys": computed_columns(self.predicate),
        }

    def make_spec(
        self,
        columns: Sequence[Sequence[str]],
        layouts: tuple[StreamLayout, ...],
        store: RunStore,
        result_types: Sequence[pa.DataType] = (),
    ) -> JoinSpec:
        """Return the settings that stay the same for all batches of a run.

        ``columns``: names of the columns by stream. ``result_types``: Arrow types of their structs.
        """
        shed, changes, match = self.config.shed, self.config.changes, self.match
        if match is not None:  # blocks have no column that numbers the micro-batches
            match = replace(match, ties=tuple(c for c in match.ties if c in columns[1]))
        each = zip(self.config.streams, columns, strict=True)
        return JoinSpec(
            self.predicate,
            tuple(tuple(n for n in names if n != changes.get(alias)) for alias, names in each),
            layouts,
            self.expiry_bounds,
            str(store.path),
            self.partitions,
            None if shed is None else shed.utility_rule,
            object_store_url=store.url,
            kind=self.config.kind,
            result_types=tuple(result_types) if self.config.kind.has_absent_sides else (),
            change_streams=tuple(s for s, a in enumerate(self.config.streams) if a in changes),
            match=match,
        )

    def check_batches(self, batches: Any) -> int | str:
        """Return ``batches`` if it is a number of micro-batches, or text.

        Raises ValueError if it is not.
        """
        if isinstance(batches, str):
            return batches
        most = self.source.most_batches
        return check_int(batches, "batches", 1, most, ", or the name of a column")

    def make_replay(self, batches: int | str) -> ReplaySource | None:
        """Return the static streams, ready to be written; None: no stream is static.

        ``batches``: number of micro-batches, or the name of the column that numbers them. Raises
        ValueError if it is invalid.
        """
        if isinstance(batches, str):
            self._check_unused(batches)
        else:
            self._check_row_count(batches)
        if not self.static_streams:
            return None
        columns, static = self.config.event_time_columns, self.static_streams
        times = {alias: columns[alias] for alias in static if alias in columns}
        undivided = [alias for alias in static if alias not in columns] if columns else []
        if isinstance(batches, int) and undivided and not times:
            batches = 1
        return self.source.make_replay(batches, times, self.config.driver_memory, undivided)

    def _check_unused(self, column: str) -> None:
        """Raise ValueError if the join uses the column that numbers micro-batches.

        Blocks do not have it.
        """
        match, second = self.config.match, [*self.config.streams][-1]
        tree = parse_condition(self.config.on)
        used = [
            (c.table.lower(), c.name.lower(), "the condition") for c in tree.find_all(exp.Column)
        ]
        if match is not None:
            used += [(alias.lower(), name.lower(), "order") for alias, name in match.order.items()]
            used += [(second.lower(), name.lower(), "ties") for name in match.ties or ()]
        for alias in self.static_streams:
            for table, name, place in used:
                if (table, name) == (alias.lower(), column.lower()):
                    raise ValueError(
                        f"batches names the column {alias}.{column}, which {place} uses; number "
                        "the micro-batches by a copy of it, as tuples do not keep that column"
                    )

    def _check_row_count(self, batches: int) -> None:
        if batches > _FEW_BATCHES and self.static_streams and not self.source.has_generated_rows:
            rows = sum(self.measure_extent(alias)[0] for alias in self.static_streams)
            if batches > (most := max(rows, _FEW_BATCHES)):
                raise ValueError(
                    f"batches is {batches}, but the static streams have {rows:,} rows; it must be "
                    f"at most {most:,}"
                )


def count_partitions(config: JoinConfig, source: StreamSource) -> int:
    """Return the number of partitions without a placement. Default: tasks that run at once."""
    return source.count_parallel_tasks() if config.partitions is None else config.partitions
