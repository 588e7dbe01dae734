"""Find the tuples of a run, wherever it keeps them, as DuckDB views.

| place | tuples |
|---|---|
| ``input/`` | all tuples of static streams and of tables, by micro-batch |
| ``blocks/`` | tuples that are held now |
| ``late/`` | late, untimed and early tuples, by micro-batch |
| ``results/`` | tuples that are members of results |
| ``trace/`` | all tuples of streaming sources, by batch, of a run that is started with ``trace=`` |

The last four are for streaming sources, whose tuples are not all kept without a trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import duckdb
import pyarrow as pa

from braid.answer_check_input import FILE, StoredInput, list_input_batches
from braid.answer_check_queries import ServedQuery
from braid.answer_check_text import format_text_list, quote_text
from braid.core.irregular_rows import LATE
from braid.core.join_kinds import parse_kind
from braid.core.reserved_columns import DRAW, ROUTING, WORTH
from braid.core.run_events import BatchPlanned
from braid.core.run_state import ReplicaAddress, RunState
from braid.errors import DamagedRunError
from braid.storage.block_files import read_parquet
from braid.storage.block_readers import read_replica_tuples
from braid.storage.run_files import result_file_batch
from braid.storage.run_store import RunStore

BATCH, TIME, STRUCT, NUMBER = "__batch", "__time", "__struct", "__n"
"""Columns of the views: micro-batch, event time in microseconds, all columns of the stream as one
struct, and the number of a chosen tuple."""

HASHES = (ROUTING, DRAW, WORTH)
"""Columns of blocks with a tuple's routing key, sampling hash and utility."""

T = TypeVar("T")


def read_last_state(store: RunStore, read: Callable[[RunState], T]) -> T | None:
    """Return what a function reads of the last state; None: no batch is committed.

    It is called again if a batch of an active run has removed files that it reads.
    """
    while (state := store.last_state()) is not None:
        try:
            return read(state)
        except (DamagedRunError, FileNotFoundError, duckdb.IOException):
            after = store.last_state()
            if after is None or after.batch == state.batch:
                raise
    return None


class TuplePlace(NamedTuple):
    """The block of a tuple, and the hashes by which it is placed; None: unknown.

    - ``block``: the block that holds it now.
    - ``routing_number``: the number that it arrived with (see ``KeySpace``).
    - ``routing_key``: its routing key.
    - ``sampling_hash``: hash by which it is sampled, in a run that sheds load.
    - ``utility``: its worth, in a run that sheds load by utility; NaN for NULL.
    """

    block: int | None = None
    routing_number: int | None = None
    routing_key: int | None = None
    sampling_hash: int | None = None
    utility: float | None = None


class StoredTuples:
    """The tuples of a run, of the batches that are committed.

    - ``database``: a connection; its views are ``stream_0`` and so on, ``late_0``, and ``results``.
    - ``store``, ``settings``: the run, or one query of it.
    - ``state``: its last state; None: no batch is committed.
    - ``served``: the query of a shared run; None: the run serves none.
    """

    def __init__(
        self,
        database: duckdb.DuckDBPyConnection,
        store: RunStore,
        settings: Mapping[str, Any],
        state: RunState,
        served: ServedQuery | None = None,
    ) -> None:
        self.database, self.store, self.settings, self.state = database, store, settings, state
        self.aliases: list[str] = settings["streams"]
        self.served = served
        batches = list_input_batches(store, state.epoch) if served is None else served.batches
        is_table_run, landed = "" in settings["schemas"], settings.get("sources", ())
        self.input = StoredInput(database, store, self.aliases, batches, is_table_run, landed)
        self.columns: dict[str, list[str]] = {}
        self.complete_streams: set[str] = set()
        """The aliases whose tuples are all there, also those that came long ago."""
        self.traced_streams: set[str] = set()
        """Those that are complete by their trace, but for tuples that can have no partner."""
        self.late_types: dict[str, pa.DataType] = {}
        """By alias, the type of late tuples, if there are some."""
        span = () if served is None else (served.first, served.end)
        self._register_results(store.results.result_files(*span))
        for stream, alias in enumerate(self.aliases):
            self._register_late(stream, alias)
            self._register_stream(stream, alias)

    @property
    def time_columns(self) -> dict[str, str]:
        """The event-time columns by alias."""
        time = self.settings["time"]
        if time is None:
            return {}
        return dict(time) if isinstance(time, Mapping) else dict.fromkeys(self.aliases, time)

    @property
    def last_batch(self) -> int:
        """The last committed batch."""
        return self.state.batch

    # Results

    def _register_results(self, files: Sequence[str]) -> None:
        """Create the view ``results``: structs by alias and the batch, of the retained batches."""
        self.result_types: dict[str, str] = {}
        if not files:
            return
        source = f"read_parquet({format_text_list(files)}, filename = '{FILE}')"
        batches = {"file": [*files], "of": [result_file_batch(Path(f).name) for f in files]}
        self.database.register("__result_files", pa.table(batches))
        described = self.database.sql(f"DESCRIBE SELECT * FROM {source}").fetchall()
        written = self._list_written_streams()
        self.result_types = {name: kind for name, kind, *_ in described if name in written}
        of_query = "" if self.served is None else f" WHERE {self.served.make_result_filter()}"
        self.database.execute(
            f"CREATE TEMP VIEW results AS SELECT r.* EXCLUDE ({FILE}), b.of AS {BATCH} "
            f"FROM {source} r JOIN __result_files b ON b.file = r.{FILE}{of_query}"
        )

    def _list_written_streams(self) -> list[str]:
        """Return the aliases that results have: of a semi or anti join, that of one stream."""
        if self.settings["match"]:
            return self.aliases
        structs = parse_kind(self.settings["how"], self.aliases).structs
        return [self.aliases[stream] for stream in structs] or self.aliases

    # Irregular tuples

    def _register_late(self, stream: int, alias: str) -> None:
        """Create the table ``late_0``: struct, batch, reason, and microseconds behind."""
        files = [
            self.store.irregular.find_file(file, False)
            for file in self.store.irregular.list_committed()
            if file.stream == stream
        ]
        tables = [read_parquet(str(file)) for file in files if file is not None]
        tables = [table for table in tables if table.num_rows]
        if tables:
            self.database.register(f"__late_{stream}", pa.concat_tables(tables))
            self.database.execute(f"CREATE TEMP VIEW late_{stream} AS FROM __late_{stream}")
            self.late_types[alias] = tables[0].schema.field("row").type

    # Streams

    def _register_stream(self, stream: int, alias: str) -> None:
        """Create the view ``stream_0`` of a stream's tuples."""
        source = self.input.find_rows(alias)
        if source is None:
            source = self._read_held_tuples(stream, alias)
        else:
            self.complete_streams.add(alias)
        described = self.database.sql(f"DESCRIBE SELECT * FROM ({source})").fetchall()
        self.columns[alias] = [name for name, *_ in described if not name.startswith("__")]
        time = self.time_columns.get(alias)
        micros = "NULL::BIGINT" if time is None else f"epoch_us({quote_text(time)}::TIMESTAMPTZ)"
        self.database.execute(
            f"CREATE TEMP VIEW stream_{stream} AS SELECT *, {micros} AS {TIME}, "
            f"{self._pack_struct(alias)} AS {STRUCT} FROM ({source})"
        )

    def _pack_struct(self, alias: str) -> str:
        """Return SQL for the columns that results have, as one struct of their type."""
        change = (self.settings.get("changes") or {}).get(alias)
        names = [quote_text(n) for n in self.columns[alias] if n != change]
        packed = f"struct_pack({', '.join(f'{n} := {n}' for n in names)})"
        kind = self.result_types.get(alias)
        return f"CAST({packed} AS {kind})" if kind else packed

    def _read_held_tuples(self, stream: int, alias: str) -> str:
        """Return SQL for a stream's traced, held, irregular and joined tuples, each value once."""
        paths, is_traced = self._find_trace(stream)
        parts = [f"SELECT * FROM read_parquet({format_text_list(paths)})"] if paths else []
        if is_traced:
            self.complete_streams.add(alias)
            self.traced_streams.add(alias)
        elif held := self._read_held_blocks(stream):
            self.database.register(f"__held_{stream}", pa.Table.from_batches(held))
            parts.append(f"SELECT * FROM __held_{stream}")
        if alias in self.late_types:
            parts.append(f'SELECT "row".*, batch AS {BATCH} FROM late_{stream}')
        if alias in self.result_types and not is_traced:
            name = quote_text(alias)
            parts.append(
                f"SELECT DISTINCT {name}.*, NULL AS {BATCH} FROM results WHERE {name} IS NOT NULL"
            )
        if not parts:
            raise ValueError(
                f"{self.store.where} keeps no tuple of {alias}: it is a stream that does not end, "
                "none of its tuples is held, and none is in a result"
            )
        names = f"COLUMNS(lambda c: NOT starts_with(c, '__') OR c = '{BATCH}')"
        rows = " UNION ALL BY NAME ".join(f"(SELECT {names} FROM ({part}))" for part in parts)
        return f"SELECT * EXCLUDE ({BATCH}), max({BATCH}) AS {BATCH} FROM ({rows}) GROUP BY ALL"

    def _find_trace(self, stream: int) -> tuple[list[str], bool]:
        """Return the files of a stream's trace, and whether they have all of its tuples."""
        files = [file for file in self.store.trace.list_committed() if file.stream == stream]
        paths = ((file, self.store.trace.find_file(file)) for file in files)
        present = [(file.rows, str(path)) for file, path in paths if path is not None]
        rows = sum(count for count, _ in present)
        return [path for _, path in present], bool(files) and rows == self.state.received[stream]

    def _read_held_blocks(self, stream: int) -> list[pa.RecordBatch]:
        """Return the held tuples of a stream, each once although several hosts hold it."""
        births: dict[ReplicaAddress, int | None] = {}
        fresh = self._list_unmerged_blocks()
        for (id, _), address in self.state.replica_addresses.items():
            block = self.state.blocks[id]
            if block.stream == stream:
                births[address] = block.batch if id in fresh else None
        folder, files = self.store.blocks.folder, self.state.block_files
        return [
            rows.append_column(
                BATCH, pa.repeat(pa.scalar(births[address], pa.int64()), rows.num_rows)
            )
            for address, rows in read_replica_tuples(folder, births, files).items()
        ]

    def find_places(self, stream: int, alias: str, chosen: str) -> dict[int, TuplePlace]:
        """Return where the chosen tuples of a stream that are held now are, by number.

        ``chosen``: a table with ``__n`` and ``__struct``.
        """
        ids = {
            address: id
            for (id, _), address in self.state.replica_addresses.items()
            if self.state.blocks[id].stream == stream
        }
        folder, files = self.store.blocks.folder, self.state.block_files
        parts = [
            rows.append_column(BATCH, pa.repeat(pa.scalar(ids[address], pa.int64()), rows.num_rows))
            for address, rows in read_replica_tuples(folder, ids, files, HASHES).items()
        ]
        if not parts:
            return {}
        blocks = pa.Table.from_batches(parts)
        self.database.register(f"__blocks_{stream}", blocks)
        present = {h: h for h in HASHES if h in blocks.column_names}
        if WORTH in present:
            present[WORTH] = f"coalesce({WORTH}, 'NaN'::DOUBLE)"
        hashes = ", ".join(f"{present.get(name, 'NULL')} AS {name}" for name in HASHES)
        rows = self.database.execute(
            f"SELECT c.{NUMBER}, b.* EXCLUDE (row) FROM {chosen} c JOIN (SELECT {BATCH}, {hashes}, "
            f"{self._pack_struct(alias)} AS row FROM __blocks_{stream}) b ON c.{STRUCT} "
            "IS NOT DISTINCT FROM b.row ORDER BY ALL"
        ).fetchall()
        return {n: TuplePlace(block, None, *hashes) for n, block, *hashes in rows}

    def count_equal_tuples(self, stream: int, chosen: str) -> dict[int, int]:
        """Return how many equal tuples of a stream came in the batch of a chosen one, by number.

        ``chosen``: a table with ``__n``, ``__batch`` and ``__struct``.
        """
        rows = self.database.execute(
            f"SELECT c.{NUMBER}, count(*) FROM {chosen} c JOIN stream_{stream} s ON c.{STRUCT} "
            f"IS NOT DISTINCT FROM s.{STRUCT} AND c.{BATCH} = s.{BATCH} GROUP BY ALL"
        ).fetchall()
        return dict(rows)

    def _list_unmerged_blocks(self) -> set[int]:
        """Return the blocks whose tuples came in one batch, as far as events are kept."""
        fresh: set[int] = set()
        for event in self.store.archive.committed_events():
            if isinstance(event, BatchPlanned):
                for derivation in event.derivations:
                    sources = set(derivation.source_blocks)
                    if len(sources) == 1 and sources <= fresh:
                        fresh.add(derivation.block.id)
                fresh.update(route.block.id for route in event.routes if route.is_fresh)
        return fresh

    def find_late_tuples(self, stream: int, alias: str, chosen: str) -> dict[int, int | None]:
        """Return by how many microseconds chosen tuples of a stream were late, by number.

        ``chosen``: a table with ``__n`` and ``__struct``.
        """
        if alias not in self.late_types:
            return {}
        row = self._cast_late_row(alias)
        rows = self.database.execute(
            f"SELECT c.{NUMBER}, max(l.behind) FROM {chosen} c JOIN late_{stream} l ON "
            f"c.{STRUCT} IS NOT DISTINCT FROM {row} WHERE l.reason = '{LATE}' GROUP BY ALL"
        ).fetchall()
        return dict(rows)

    def _cast_late_row(self, alias: str) -> str:
        change = (self.settings.get("changes") or {}).get(alias)
        names = [quote_text(n) for n in self.columns[alias] if n != change]
        packed = ", ".join(f'{n} := l."row".{n}' for n in names)
        kind = self.result_types.get(alias)
        return f"CAST(struct_pack({packed}) AS {kind})" if kind else f"struct_pack({packed})"
