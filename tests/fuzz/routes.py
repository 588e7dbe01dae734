"""The ways in which Braid answers a case.

They are kernels in this process over tables or over values computed by Spark, whole runs of tables,
the engine on Spark's schemas, and a run on Spark.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from braid.condition.parser import parse_predicate
from braid.condition.predicate import Predicate
from braid.core.reserved_columns import TIME
from braid.kernels.block_builder import build_block
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.probe import BlockJoiner
from braid.papers.baselines.centralized import Centralized
from braid.sources.arrow_replay import ArrowFeed
from braid.stream_join import JoinRun, StreamJoin
from local_runs import LocalRun
from oracle import PLACEMENTS

from fuzz.cases import AUTO, Case, table
from fuzz.column_types import to_arrow
from fuzz.guarded import guard_expressions, parse_expression
from fuzz.kinds import kind_arguments, read_ids
from fuzz.outcomes import Answer, Ids, to_answer

_TIMED = "ts"


def timed(case: Case, alias: str) -> pa.Table:
    """Return the rows with their micro-batch, and with an event time inside it."""
    stream = case.streams[alias]
    rows = table(stream)
    rows = rows.append_column(_TIMED, to_arrow(stream.event_times(), "timestamp"))
    return rows.append_column("batch", pa.array(stream.batches, pa.int32()))


def within_windows(case: Case, rows: Ids) -> Ids:
    """Return the results whose members are all alive at the latest of their event times."""
    if not case.windows:
        return rows
    streams = list(case.streams.items())
    times = [s.event_times() for _, s in streams]
    found: Ids = Counter()
    for key, count in rows.items():
        at = [times[n][k] for n, k in enumerate(key)]
        if all(
            max(at) - t < case.windows.get(a, 1 << 62)
            for t, (a, _) in zip(at, streams, strict=True)
        ):
            found[key] = count
    return found


@contextlib.contextmanager
def _always_search_ranks() -> Iterator[None]:
    """Search within equal keys and by trees of ranks, although the rows are few."""
    with (
        patch("braid.kernels.block_orders._WORTH", 0),
        patch("braid.kernels.order_search._should_check", lambda *_: False),
    ):
        yield


@_always_search_ranks()
def table_kernels(case: Case) -> Answer:
    """Answer a case over two tables: computed columns of each, and one join of two blocks."""
    has_started = False
    try:
        tables = {a: table(s) for a, s in case.streams.items()}
        schemas = {a: t.schema for a, t in tables.items()}
        predicate = parse_predicate(case.on, schemas, [None] * len(tables))
        feed = ArrowFeed(
            schemas, predicate, dict.fromkeys(tables, "cast(0 as bigint)"), Centralized(), 0
        )
        has_started = True
        blocks = []
        for place, (alias, rows) in enumerate(tables.items()):
            whole = feed.compute_tuples(alias, rows)
            blocks.append(_block(whole, predicate, place))
        return Answer("rows", _met(predicate, blocks))
    except Exception as error:
        return to_answer(error, has_started)


def _block(rows: pa.Table, predicate: Predicate, place: int) -> BlockRows:
    whole = rows.combine_chunks()
    batches = whole.to_batches() or [
        pa.RecordBatch.from_arrays(
            [pa.array([], f.type) for f in whole.schema], schema=whole.schema
        )
    ]
    return BlockRows(build_block(batches[0], predicate.stream_orders(place)))


def _met(predicate: Predicate, blocks: Sequence[BlockRows]) -> Ids:
    """Return the results of the kernels in a block of each stream, one after the other."""
    nothing = [None] * len(blocks)
    joiner, counts = BlockJoiner(predicate, nothing), SimpleNamespace(compared_pairs=0)
    partials = [PartialMatches({0: (blocks[0], np.arange(blocks[0].batch.num_rows))})]
    for place in range(1, len(blocks)):
        partials = [
            found
            for partial in partials
            for found in joiner.probe_block(partial, blocks[place], place, False, counts)
        ]
    rows: Ids = Counter()
    for found in partials:
        rows.update(
            zip(*(found.column_values(n, "id").tolist() for n in range(len(blocks))), strict=True)
        )
    return rows


def table_run(case: Case) -> Answer:
    """Answer a case by a whole run of tables with its files of input, batches, state and
    results.
    """
    has_started = False
    tables = {a: timed(case, a) for a in case.streams}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            join = _make_table_join(case, tables)
            run = join.start(f"{folder}/run", batches="batch")
            has_started = True
            run.awaitTermination()
            found = run.results(net=case.emit == "early")
            fault = find_unexplained(run)
        except Exception as error:
            return to_answer(error, has_started)
    if wrong := fault or changed_rows(tables, found):
        return Answer("crashed", sentence=wrong)
    return Answer("rows", read_ids(found, case))


def find_unexplained(run: JoinRun) -> str:
    """Return the explanation of a pair that ``why`` cannot explain; empty if there is none.

    The check of a run's answers refuses conditions that DuckDB may evaluate differently from
    Spark; ``why`` does not judge pairs by them.
    """
    answer = run.why(dict.fromkeys([*run.config.streams][:2], "true"), limit=12)
    faults = [pair for pair in answer.pairs if pair.verdict == "fault"]
    return f"why cannot explain {faults[0]}" if faults else ""


def is_accepted(case: Case) -> bool:
    """Return whether a join of tables takes the condition, with the placement of the case."""
    try:
        _make_table_join(case, {a: timed(case, a) for a in case.streams})
    except Exception:
        return False
    return True


def _make_table_join(case: Case, tables: Mapping[str, pa.Table]) -> StreamJoin:
    more = event_time(case) | kind_arguments(case) | {"emit": case.emit}
    return StreamJoin(tables, case.on, _placement(case), check=True, **more)


def event_time(case: Case) -> dict[str, Any]:
    """Return the arguments of a join for event time.

    Without windows, event time is a column that the condition may name, so that windows are derived
    from it. No tuple is late then, as rows come in any order.
    """
    if case.match:
        return {"time": _TIMED}
    if case.windows:
        windows = {a: f"{w} microseconds" for a, w in case.windows.items()}
        return {"windows": windows, "time": _TIMED}
    times = {
        alias: name
        for alias, stream in case.streams.items()
        for name, kind in reversed(stream.columns.items())
        if kind in ("timestamp", "timestamp_ntz", "date")
    }
    return {"time": times, "lateness": "3650000 days"} if times else {}


def _placement(case: Case) -> Any:
    return AUTO if case.placement == AUTO else PLACEMENTS[case.placement]


def changed_rows(tables: Mapping[str, pa.Table], found: pa.Table) -> str:
    """Return the stream whose rows were changed by the join; empty if none."""
    for alias, rows in tables.items():
        if alias not in found.column_names:
            continue
        column = found[alias].combine_chunks().drop_null()
        given = rows.drop_columns(["batch"]).take(column.field("id"))
        for name in given.column_names:
            mine, theirs = column.field(name), given[name].combine_chunks()
            if mine.to_pylist() != theirs.to_pylist() and not _same_reals(mine, theirs):
                return f"column {alias}.{name} came out as another one"
    return ""


def _same_reals(mine: pa.Array, theirs: pa.Array) -> bool:
    return pa.types.is_floating(mine.type) and repr(mine.to_pylist()) == repr(theirs.to_pylist())


class SparkKernels:
    """Many conditions over the same Spark frames.

    Spark computes the columns of a stream for all of them in one query; no streaming query is
    started.
    """

    def __init__(self, spark: Any, case: Case) -> None:
        from braid.condition.spark_type_checker import SparkAnalyzer

        self.spark = spark
        self.frames = {a: spark.createDataFrame(table(s)) for a, s in case.streams.items()}
        self.tables = {a: table(s) for a, s in case.streams.items()}
        self.analyser = SparkAnalyzer(self.frames)

    def take(self, conditions: Sequence[str]) -> None:
        """Judge conditions together; those that Spark rejects are judged again one by one."""
        middle = len(conditions) // 2
        if conditions and not self.analyser.check_all(conditions) and middle:
            self.take(conditions[:middle])
            self.take(conditions[middle:])

    def answers(self, conditions: Sequence[str]) -> list[Answer]:
        """Return the answer to each condition."""
        found: dict[int, Answer] = {}
        parsed: dict[int, Predicate] = {}
        for number, on in enumerate(conditions):
            try:
                parsed[number] = parse_predicate(
                    on, self.frames, [None] * len(self.frames), self.analyser
                )
            except Exception as error:
                found[number] = to_answer(error, False)
        columns = [self._computed(place, parsed) for place in range(len(self.frames))]
        for number, predicate in parsed.items():
            failed = [c[number] for c in columns if isinstance(c[number], Exception)]
            found[number] = (
                to_answer(failed[0], True) if failed else self._joined(predicate, number, columns)
            )
        return [found[n] for n in range(len(conditions))]

    def _joined(self, predicate: Predicate, number: int, columns: Sequence[Any]) -> Answer:
        try:
            blocks = []
            for place, rows in enumerate(self.tables.values()):
                for name, values in columns[place][number].items():
                    rows = rows.append_column(name, values)
                needed = [*predicate.key_columns[place], "__filter"]
                keep = [pc.is_valid(rows[n]) for n in needed] + [rows["__filter"]]
                mask = keep[0]
                for more in keep[1:]:
                    mask = pc.and_(mask, pc.fill_null(more, False))
                rows = rows.filter(mask).drop_columns(["__filter"])
                rows = rows.append_column(TIME, pa.array(np.zeros(rows.num_rows, np.int64)))
                blocks.append(_block(rows, predicate, place))
            return Answer("rows", _met(predicate, blocks))
        except Exception as error:
            return to_answer(error, True)

    def _computed(self, place: int, parsed: Mapping[int, Predicate]) -> dict[int, Any]:
        """Return, for each condition, the columns that Spark computes of a stream, or its error."""
        wanted = {
            n: {
                "__filter": p.filters[place] or "true",
                **p.key_columns[place],
                **p.computed_columns[place],
            }
            for n, p in parsed.items()
        }
        frame = list(self.frames.values())[place]
        found: dict[int, Any] = {}
        waiting = [list(wanted)]
        while waiting:
            numbers = waiting.pop()
            try:
                found |= self._evaluate_columns(frame, {n: wanted[n] for n in numbers})
            except Exception as error:
                middle = len(numbers) // 2
                if len(numbers) == 1:
                    found[numbers[0]] = error
                else:
                    waiting += [numbers[:middle], numbers[middle:]]
        return found

    def _evaluate_columns(
        self, frame: Any, wanted: Mapping[int, Mapping[str, str]]
    ) -> dict[int, Any]:
        from pyspark.sql import DataFrame

        names = [(n, name) for n, columns in wanted.items() for name in columns]
        trees = [parse_expression(self.spark, wanted[n][name]) for n, name in names]
        made = frame._jdf.select(guard_expressions(self.spark, trees)) if trees else None
        rows = None if made is None else _collected(DataFrame(made, self.spark))
        found: dict[int, Any] = {n: {} for n in wanted}
        for k, (n, name) in enumerate(names):
            assert rows is not None
            column = rows.column(k).combine_chunks()
            if column.null_count:
                found[n] = ArithmeticError(f"Spark raises an error in {wanted[n][name]}")
            elif isinstance(found[n], dict):
                found[n][name] = column.field("it")
        return found


def _collected(frame: Any) -> pa.Table:
    """Return the rows of a frame without ``toArrow``, whose cast rejects NULL structs of NOT NULL
    fields.
    """
    return pa.Table.from_batches(frame._collect_as_arrow(empty_list_if_zero_records=False))


def process_run(spark: Any, case: Case) -> Answer:
    """Answer a case by the engine and the process executor on batches prepared by Spark."""
    has_started = False
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            join = _spark_join(spark, case)
            has_started = True
            found, _ = LocalRun(join).run(join.placement, Path(folder))
            return Answer("rows", found)
        except Exception as error:
            return to_answer(error, has_started)


def spark_run(spark: Any, case: Case, executor: str = "auto") -> Answer:
    """Answer a case by a whole run on Spark."""
    has_started = False
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            run = _spark_join(spark, case, executor).start(f"{folder}/run", batches="batch")
            has_started = True
            run.awaitTermination()
            found = run.results().toArrow()
        except Exception as error:
            return to_answer(error, has_started)
        finally:
            with contextlib.suppress(UnboundLocalError):
                run.stop()
    return Answer("rows", read_ids(found, case))


def _spark_join(spark: Any, case: Case, executor: str = "auto") -> StreamJoin:
    frames = {a: spark.createDataFrame(timed(case, a)) for a in case.streams}
    placement, more = _placement(case), event_time(case) | kind_arguments(case)
    return StreamJoin(frames, case.on, placement, check=True, executor=executor, **more)
