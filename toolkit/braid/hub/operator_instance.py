"""A running version of an operator.

It is a shared join on the engine in a folder of its own. The queries of the join are the operator's
demands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from braid.condition.parser import parse_predicate
from braid.condition.predicate import Predicate, computed_columns
from braid.core.answer_state import split_mark_key
from braid.core.horizon import reach_of_windows
from braid.core.query import Query, unite_kinds
from braid.core.reserved_columns import MARK, MEETS, ROUTING, TIME
from braid.core.run_events import BatchCommitted
from braid.errors import DamagedRunError
from braid.execution.engine import Engine
from braid.execution.executors import Executor
from braid.hub.flat_results import Shape
from braid.hub.hub_backend import StreamReader
from braid.kernels.join_spec import JoinSpec
from braid.papers.reuse.hub_events import OperatorMetrics
from braid.papers.reuse.query_definition import Column
from braid.papers.slices.chain import Chain
from braid.sources.tuple_filter import make_marked_columns
from braid.storage.hub_files import OperatorPin
from braid.storage.run_store import RunStore
from braid.util.clock_and_threads import current_environment
from braid.util.json_codec import from_plain, to_plain


@dataclass(frozen=True)
class OperatorInput:
    """Input of an operator under one alias: a stream, or another operator.

    - ``arrival_columns``: columns that arrive.
    - ``stored_columns``: columns that the operator stores.
    """

    source: str | int
    streams: tuple[str, ...]
    arrival_columns: Mapping[str, Column]
    stored_columns: Mapping[str, Column]


@dataclass(frozen=True)
class OperatorSpec:
    """Stored definition of an operator instance.

    - ``condition``: over ``alias.column``.
    - ``demands``: queries of its shared join, each on a bit. The left stream of a join that is not
      inner is the first input.
    - ``start_epoch``: batch of the hub after which it runs; -1: from the start.
    - ``start_micro_batch``: the micro-batch after which it runs, likewise.
    - ``input_ends``: by input, the batch with its last tuple; None: it is endless.
    """

    operator: int
    version: int
    condition: str
    inputs: Mapping[str, OperatorInput]
    demands: tuple[Query, ...]
    start_epoch: int
    start_micro_batch: int
    input_ends: tuple[int | None, ...]

    @property
    def result_shape(self) -> Shape:
        """Shape of its results."""
        return {alias: i.stored_columns for alias, i in self.inputs.items()}

    def batch_of_epoch(self, epoch: int) -> int:
        """Return the number of this instance's batch that joined a batch of the hub.

        Batch 0 names the demands. Batch 1 comes from history, if there is any.
        """
        return epoch - self.start_epoch + (1 if self.start_epoch >= 0 else 0)


def read_operator_spec(store: RunStore) -> OperatorSpec:
    """Return the definition of the instance in a store.

    Raises DamagedRunError if there is none.
    """
    settings = store.read_settings()
    if settings is None:
        raise DamagedRunError(f"{store.settings.path} is missing")
    return from_plain(settings["operator_spec"], OperatorSpec)


class HubBatch(NamedTuple):
    """A batch of the hub, as its operators see it.

    - ``epoch``: its number.
    - ``micro_batch``: the micro-batch with its tuples; None: it has none.
    - ``clocks``: event-time progress by stream.
    - ``is_last``: whether all streams end with it, for good.
    """

    epoch: int
    micro_batch: int | None = None
    clocks: Mapping[str, int | None] = {}
    is_last: bool = False


@dataclass(frozen=True)
class ArrivedRows:
    """Tuples that arrived under an alias.

    - ``table``: columns that arrive, event time and computed columns.
    - ``column_names``: column by the Spark SQL that it was computed from.
    - ``bitmap_column``: column of the bitmaps of demands.
    """

    table: pa.Table
    column_names: Mapping[str, str]
    bitmap_column: str


def operator_predicate(spec: OperatorSpec, reader: StreamReader) -> Predicate:
    """Return the join predicate of an instance. Raises PredicateError if it is not supported."""
    frames = {alias: reader.empty_frame(i.arrival_columns) for alias, i in spec.inputs.items()}
    return parse_predicate(spec.condition, frames, (None,) * len(frames))


class OperatorInstance:
    """Operator that joins and commits batches.

    A batch that is repeated after a crash is committed once. ``checks_plans``: whether each plan is
    checked against the cover rule and the record of answers.
    """

    checks_plans: ClassVar[bool] = False

    def __init__(
        self,
        store: RunStore,
        spec: OperatorSpec,
        reader: StreamReader,
        slack: Mapping[str, int],
        executor: Executor,
    ) -> None:
        """Open the instance in a store that this driver has taken over, or create it.

        ``slack``: lateness by stream. Results of another operator are as late as any stream they
        are made of.
        """
        self.spec, self.reader, self.store = spec, reader, store
        self.predicate = operator_predicate(spec, reader)
        reach = reach_of_windows((None,) * len(spec.inputs))
        slacks = tuple(max(slack[s] for s in i.streams) for i in spec.inputs.values())
        computed = computed_columns(self.predicate)
        if (settings := store.read_settings()) is None:
            store.create_run({"operator_spec": to_plain(spec), "keys": computed})
        elif settings.get("keys") != computed:
            raise ValueError(
                f"{store.path} holds an operator for which another version of Braid computed the "
                "keys of its condition in another way; use a new folder for the hub"
            )
        store.remove_unnamed_files()
        columns = tuple(tuple(i.stored_columns) for i in spec.inputs.values())
        join_spec = JoinSpec(self.predicate, columns, (), reach, str(store.path), 1)
        if not unite_kinds(spec.demands).is_inner:
            stored = (i.stored_columns for i in spec.inputs.values())
            types = tuple(map(reader.find_struct_type, stored))
            join_spec = replace(join_spec, result_types=types)
        self.committed: list[BatchCommitted] = []
        self.engine = Engine(
            join_spec,
            Chain("memory", (), 1),
            self.store,
            slacks,
            self.checks_plans,
            self._keep_commit,
            executor,
            last_epochs=spec.input_ends,
        )
        if not self.engine.state.queries:
            state = replace(self.engine.state, epoch=max(spec.start_micro_batch - 1, -1))
            self.engine.state = state
            self.engine.commit_change(
                spec.demands, state.placement_state, None, [], current_environment().read_clock()
            )

    def _keep_commit(self, events: list[Any]) -> None:
        self.committed += [e for e in events if isinstance(e, BatchCommitted)]

    def computed_columns(self, alias: str, bits: Collection[int]) -> dict[str, str]:
        """Return Spark SQL, by name, for the columns to compute from an input.

        ``MARK`` is the bitmap of the demands in ``bits``.
        """
        i = list(self.spec.inputs).index(alias)
        marks = " | ".join(self._selection_bitmaps_sql(i, bits)) or "cast(0 as bigint)"
        return {MARK: marks, **self._condition_columns(i)}

    def _condition_columns(self, i: int) -> dict[str, str]:
        """Return Spark SQL, by name, for the columns that the condition reads of an input.

        Tuples of a preserved stream that can have no partner are marked, not left out.
        """
        if i in self.engine.spec.kind.preserved:
            return make_marked_columns(self.predicate, i, f"`{self.reader.time}`")
        return {**self.predicate.key_columns[i], **self.predicate.computed_columns[i]}

    def _selection_bitmaps_sql(self, i: int, bits: Collection[int]) -> Iterator[str]:
        """Yield SQL for the bits of the selections that a tuple passes, each evaluated once."""
        masks: dict[str | None, int] = {}
        for demand in self.spec.demands:
            if demand.bitmap_position in bits:
                where = demand.selections[i]
                masks[where] = masks.get(where, 0) | 1 << demand.bitmap_position
        for where, mask in masks.items():
            some = f"cast({mask} as bigint)"
            yield (
                some
                if where is None
                else f"(case when {where} then {some} else cast(0 as bigint) end)"
            )

    def run_batch(self, arrivals: Mapping[str, ArrivedRows], batch: HubBatch) -> None:
        """Join and commit a batch, unless it is committed already."""
        if self.engine.state.batch >= self.spec.batch_of_epoch(batch.epoch):
            return
        self.committed = []
        if batch.is_last:
            self.engine.end_streams({})
        elif batch.micro_batch is None:
            self.engine.run_empty_batch({})
        else:
            self._join_tuples(arrivals, batch.micro_batch, batch.clocks)

    def _join_tuples(
        self,
        arrivals: Mapping[str, ArrivedRows],
        micro_batch: int,
        clocks: Mapping[str, int | None],
    ) -> None:
        tuples = {
            i: batches
            for i, alias in enumerate(self.spec.inputs)
            if alias in arrivals and (batches := self._make_tuples(i, alias, arrivals[alias]))
        }
        self.engine.run_batch(tuples, micro_batch, lambda: self._input_event_times(clocks))

    def _input_event_times(self, clocks: Mapping[str, int | None]) -> list[int | None]:
        """Return event-time progress by input. Results may run ahead of one of their streams."""
        progress: list[int | None] = []
        for i in self.spec.inputs.values():
            times = [clocks.get(s) for s in i.streams]
            progress.append(None if None in times else min(t for t in times if t is not None))
        return progress

    def select_arrivals(self, alias: str, arrived: ArrivedRows) -> pa.Table:
        """Return the arrived tuples that some demand selects and that can be in a result."""
        rows, i = arrived.table, list(self.spec.inputs).index(alias)
        if i in self.engine.spec.kind.preserved:
            return rows.filter(pc.not_equal(rows[arrived.bitmap_column], 0))
        keys = (arrived.column_names[sql] for sql in self.predicate.key_columns[i].values())
        chosen = pc.not_equal(rows[arrived.bitmap_column], 0)
        for name in (TIME, *keys):
            chosen = pc.and_(chosen, rows[name].is_valid())
        return rows.filter(chosen)

    def _make_tuples(self, i: int, alias: str, arrived: ArrivedRows) -> list[pa.RecordBatch]:
        rows = self.select_arrivals(alias, arrived)
        if not rows.num_rows:
            return []
        computed = self._condition_columns(i)
        columns = {n: rows[n] for n in self._stored_columns(i, alias)}
        columns |= {name: rows[arrived.column_names[sql]] for name, sql in computed.items()}
        if i in self.engine.spec.kind.preserved:
            is_timed = rows[TIME].is_valid()
            columns[MEETS] = pc.and_(columns[MEETS], is_timed) if MEETS in columns else is_timed
        mark = rows[arrived.bitmap_column].combine_chunks()
        bitmaps = self.engine.bitmaps
        assert bitmaps is not None, "an operator has a demand"
        columns |= {MARK: mark, ROUTING: pa.array(bitmaps.longest_window_rank(i, mark.to_numpy()))}
        batches: list[pa.RecordBatch] = pa.table(columns).combine_chunks().to_batches()
        return batches

    def _stored_columns(self, i: int, alias: str) -> list[str]:
        """Return the columns to store: those of results, and those that pairs are compared by."""
        p, read = self.predicate, self.spec.inputs[alias]
        pairs = [c for r in p.residuals for m in r.measures for c in (m.left, m.right)]
        pairs += [c for r in p.residuals for c in r.columns]
        pairs += [c for each in p.common_elements for c in (each.left, each.right)]
        looked = [name for stream, name in pairs if stream == i and name in read.arrival_columns]
        return list(dict.fromkeys([*read.stored_columns, *looked, TIME]))

    def result_files(self, first: int | None = None, end: int | None = None) -> list[str]:
        """Return the result files of the hub's batches from ``first`` up to, excluding, ``end``.

        ``first`` None: from the start, history included. Raises DamagedRunError if a file is
        missing or damaged.
        """
        start = 0 if first is None else self.spec.batch_of_epoch(first)
        stop = None if end is None else self.spec.batch_of_epoch(end)
        return self.store.results.result_files(start, stop, True)

    def pin_last_entry(self) -> OperatorPin:
        """Return a pin to the last entry of its log, which commits its last batch."""
        entry, checksum = self.store.log.last_entry
        return OperatorPin(self.store.path.name, entry, checksum, self.store.log.batch_count - 1)

    @property
    def live_bytes(self) -> int:
        """Bytes of stored tuples."""
        return sum(b.size_bytes for b in self.engine.state.blocks.values())

    def count_waiting(self, bit: int) -> dict[str, int]:
        """Return, by stream that a demand answers, its stored tuples that are not final."""
        counts, inputs = self.engine.state.waiting_by_query, [*self.spec.inputs.values()]
        keys = {split_mark_key(key, True): tuples for key, tuples in counts.items()}
        return {str(inputs[s].source): n for (s, query), n in keys.items() if query == bit}

    def last_metrics(self) -> OperatorMetrics:
        """Return the metrics of the last batch."""
        operator, version = self.spec.operator, self.spec.version
        if not self.committed:
            return OperatorMetrics(operator, version, 0, 0, 0, 0, 0, self.live_bytes, 0.0)
        return _sum_metrics([operator_metrics(self.spec, e) for e in self.committed])


def operator_metrics(spec: OperatorSpec, e: BatchCommitted) -> OperatorMetrics:
    """Return the metrics of an instance in a batch."""
    hosts = e.total_host_metrics
    counts = sum(e.received_tuples), sum(e.received_bytes), hosts.compared_pairs, e.results
    held = sum(e.live_tuples), hosts.stored_bytes, e.seconds_by_phase["total"]
    return OperatorMetrics(spec.operator, spec.version, *counts, *held)


def _sum_metrics(each: Sequence[OperatorMetrics]) -> OperatorMetrics:
    """Return the metrics of the batches that belong to one of Spark."""
    return each[-1]._replace(
        received_tuples=sum(m.received_tuples for m in each),
        received_bytes=sum(m.received_bytes for m in each),
        compared_pairs=sum(m.compared_pairs for m in each),
        results=sum(m.results for m in each),
        seconds=sum(m.seconds for m in each),
    )


def computed_column_names(wanted: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the column for each distinct Spark SQL expression."""
    names: dict[str, str] = {}
    for each in wanted:
        for name, sql in each.items():
            if name != MARK:
                names.setdefault(sql, f"__x{len(names)}")
    return names
