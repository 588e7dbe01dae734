"""Run the operators of a hub: build them from history and pass batches through them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from braid.core.reserved_columns import MARK, TIME
from braid.errors import ExpressionError
from braid.execution.executors import make_executor
from braid.hub.flat_results import Texts, latest_time_sql, microseconds_sql, read_flat
from braid.hub.hub_backend import StreamReader
from braid.hub.hub_settings import HubSettings
from braid.hub.hub_state import HubState
from braid.hub.operator_definitions import OperatorSpecBuilder
from braid.hub.operator_instance import (
    ArrivedRows,
    HubBatch,
    OperatorInput,
    OperatorInstance,
    OperatorSpec,
    computed_column_names,
    operator_predicate,
    read_operator_spec,
)
from braid.hub.recent_tuples import BackfillBuffer, HistoryWrite
from braid.papers.reuse.deployment import Deployment, Operator
from braid.papers.reuse.query_definition import UNBOUNDED
from braid.storage.hub_files import (
    HISTORY,
    OPERATORS,
    OperatorPin,
    check_pin,
    open_operator,
    operator_key,
)
from braid.storage.run_store import RunStore
from braid.util.clock_and_threads import current_environment, current_workers
from braid.util.file_system import current_file_system
from braid.util.machine import available_cores


@dataclass(frozen=True)
class BuiltOperator:
    """A new instance, with the rows and bytes it was built from, and the seconds it took."""

    instance: OperatorInstance
    rows: int
    bytes: int
    seconds: float

    @property
    def key(self) -> tuple[int, int]:
        """Operator and version."""
        return self.instance.spec.operator, self.instance.spec.version


class OperatorRuntime:
    """Running operator instances, by operator, in the hub's folder ``path``."""

    def __init__(self, path: Path, reader: StreamReader, settings: HubSettings) -> None:
        self.path, self.reader, self.settings = path, reader, settings
        self.history = BackfillBuffer(path / HISTORY)
        self.instances: dict[int, OperatorInstance] = {}

    def open_operators(self, ledger: HubState, check_driver: Callable[[], None]) -> None:
        """Open the operators that run, as of the entries to which the hub pins them.

        Also checks those that have stopped. ``check_driver`` raises FencedError if another driver
        has taken over the hub. Raises DamagedRunError if a file is missing or damaged.
        """
        for pin in ledger.operators.values():
            store = open_operator(self.path, pin)
            check_pin(store, pin)
            # After the log was read: a later driver appends to what was read here.
            check_driver()
            if pin.is_running:
                # A driver may have been killed between an operator's commit and the hub's.
                store.take_over(pin.batch)
                store.verify_files()
                spec = read_operator_spec(store)
                self.instances[spec.operator] = self._open_instance(store, spec)
            else:
                store.sweep()

    def _open_instance(self, store: RunStore, spec: OperatorSpec) -> OperatorInstance:
        slack = self.settings.lateness
        return OperatorInstance(store, spec, self.reader, slack, make_executor("process"))

    def pin_operators(self) -> dict[str, OperatorPin]:
        """Return pins to the last batches of the operators that run, by ``operator_key``."""
        return {
            operator_key(i.spec.operator, i.spec.version): i.pin_last_entry()
            for i in self.instances.values()
        }

    def _make_spec_builder(self, deployment: Deployment, texts: Texts) -> OperatorSpecBuilder:
        r = self.reader
        return OperatorSpecBuilder(deployment, r.schemas, texts, r.time, r.last_batches)

    def check_buildable(
        self, operators: Iterable[Operator], new: Deployment, ledger: HubState, texts: Texts
    ) -> None:
        """Raise PredicateError if an operator cannot be built."""
        drawing = self._make_spec_builder(new, texts)
        for operator in operators:
            spec = drawing.build_spec(operator, ledger.epoch, ledger.micro_batch)
            operator_predicate(spec, self.reader)

    def build_operators(
        self, operators: Iterable[Operator], new: Deployment, ledger: HubState, texts: Texts
    ) -> list[BuiltOperator]:
        """Build instances of operators, each after the operators it reads.

        Each gets the state it would have if it had always run. If one fails, no files of any
        remain.
        """
        built, folders = dict[int, BuiltOperator](), list[Path]()
        drawing = self._make_spec_builder(new, texts)
        try:
            for operator in operators:
                folders.append(self._name_folder(operator))
                built[operator.id] = self._build_operator(
                    operator, folders[-1], drawing, ledger, built
                )
        except BaseException:
            for folder in folders:
                current_file_system().remove_folder(folder)
            raise
        return list(built.values())

    def _name_folder(self, operator: Operator) -> Path:
        """Return a new folder, which no other driver builds an operator in."""
        token = current_environment().make_token()
        return self.path / OPERATORS / f"{operator.id:04d}-{operator.version:03d}-{token}"

    def _build_operator(
        self,
        operator: Operator,
        folder: Path,
        drawing: OperatorSpecBuilder,
        ledger: HubState,
        built: Mapping[int, BuiltOperator],
    ) -> BuiltOperator:
        began = current_environment().read_clock()
        spec = drawing.build_spec(operator, ledger.epoch, ledger.micro_batch)
        instance = self._open_instance(RunStore(folder), spec)
        bits = {d.bit for d in operator.demands}
        arrivals: dict[str, ArrivedRows] = {}
        if ledger.epoch >= 0:
            for alias, read in instance.spec.inputs.items():
                if (rows_read := self._read_history(operator, read, ledger, built)) is not None:
                    arrivals[alias] = self._compute_arrived_rows(instance, alias, rows_read, bits)
            ended = self.reader.list_ended(ledger.micro_batch)
            clocks = self.settings.advance_clocks(ledger.clocks, ended)
            instance.run_batch(arrivals, HubBatch(ledger.epoch, ledger.micro_batch, clocks))
        rows = sum(r.table.num_rows for r in arrivals.values())
        size = sum(
            _stored_bytes(r.table, instance.spec.inputs[a].stored_columns)
            for a, r in arrivals.items()
        )
        return BuiltOperator(instance, rows, size, current_environment().read_clock() - began)

    def _read_history(
        self,
        operator: Operator,
        read: OperatorInput,
        ledger: HubState,
        built: Mapping[int, BuiltOperator],
    ) -> pa.Table | None:
        """Return the tuples of an input that may still match; None if there are none.

        Results of it may meet tuples of the slowest stream of all, in an operator that reads them
        now or later.
        """
        if not isinstance(read.source, str):
            upstream = (
                built[read.source].instance if read.source in built else self.instances[read.source]
            )
            files = upstream.result_files(end=ledger.epoch + 1)  # it may be one batch ahead
            return read_flat(files, upstream.spec.result_shape)
        place = operator.definition.stream_index(read.source)
        longest = max(d.definition.history_spans[place] for d in operator.demands)
        progress = ledger.event_time_progress([*self.reader.schemas])
        bounded = progress is not None and longest < UNBOUNDED
        after = progress - longest if bounded and progress is not None else None
        return self.history.read_rows(ledger, read.source, after)

    def _compute_arrived_rows(
        self, instance: OperatorInstance, alias: str, table: pa.Table, bits: set[int]
    ) -> ArrivedRows:
        """Return the tuples of an input with their computed columns. Raises ExpressionError."""
        read = instance.spec.inputs[alias]
        wanted = instance.computed_columns(alias, bits)
        names = computed_column_names([wanted])
        computed = {name: sql for sql, name in names.items()} | {
            MARK: wanted[MARK],
            TIME: self._event_time_sql(read),
        }
        try:
            columns = self.reader.compute_columns(table, read.arrival_columns, computed)
        except self.reader.evaluation_errors as error:
            for bit in (None, *sorted(bits)):
                self._raise_if_failing(
                    instance,
                    alias,
                    bit,
                    error,
                    lambda w: self.reader.compute_columns(table, read.arrival_columns, w),
                )
            raise
        for name in columns.column_names:
            table = table.append_column(name, columns[name])
        return ArrivedRows(table, names, MARK)

    def _event_time_sql(self, read: OperatorInput) -> str:
        if isinstance(read.source, str):
            return microseconds_sql(self.reader.time)
        return latest_time_sql(read.streams, self.reader.time)

    def _raise_if_failing(
        self,
        instance: OperatorInstance,
        alias: str,
        bit: int | None,
        error: Exception,
        compute: Any,
    ) -> None:
        """Raise ExpressionError if an expression of a demand fails by itself.

        ``bit`` None: check the expressions that all demands need.
        """
        wanted = instance.computed_columns(alias, () if bit is None else (bit,))
        try:
            compute(wanted if bit is None else {MARK: wanted[MARK]})
        except self.reader.evaluation_errors:
            raise ExpressionError(error, instance.spec.operator, bit) from error

    def adopt_built(self, built: Iterable[BuiltOperator], dropped: Iterable[int]) -> None:
        """Start new instances and stop old ones. The results of old ones remain."""
        for operator in dropped:
            stopped = self.instances.pop(operator).store
            stopped.blocks.wait_for_removals()
            stopped.blocks.close_files()
        for each in built:
            self.instances[each.instance.spec.operator] = each.instance

    def read_arrivals(
        self, source: Any, deployment: Deployment
    ) -> tuple[dict[str, pa.Table], dict[str, dict[str, str]]]:
        """Return a batch's tuples by stream with all columns that operators need.

        Also returns, by stream, the column computed from each Spark SQL expression. Raises
        ExpressionError.
        """
        names, wanted = {}, {}
        for stream in self.reader.schemas:
            reading = {
                id: self.instances[id].computed_columns(stream, _demand_bits(deployment, id))
                for id in self._find_readers(stream)
            }
            names[stream] = computed_column_names(list(reading.values()))
            computed = {name: sql for sql, name in names[stream].items()}
            computed |= {bitmap_column(id): columns[MARK] for id, columns in reading.items()}
            wanted[stream] = {**computed, TIME: microseconds_sql(self.reader.time)}
        try:
            tables = dict(self.reader.read_batch(source, wanted))
        except self.reader.evaluation_errors as error:
            for stream in wanted:
                self._find_failing_operator(source, stream, deployment, error)
            raise
        return tables, names

    def write_history(self, epoch: int, tables: Mapping[str, pa.Table]) -> HistoryWrite:
        """Write the tuples of a batch. They become history once the hub state names them."""
        schemas = self.reader.schemas
        raw = {s: rows.select([*schemas[s], TIME]) for s, rows in tables.items()}
        return self.history.write_batch(epoch, raw)

    def _find_readers(self, stream: str) -> list[int]:
        """Return the operators that read a stream."""
        return [
            id
            for id, i in self.instances.items()
            if stream in i.spec.inputs and i.spec.inputs[stream].source == stream
        ]

    def _find_failing_operator(
        self, source: Any, stream: str, deployment: Deployment, error: Exception
    ) -> None:
        """Raise ExpressionError for the operator or demand whose SQL fails on a stream's tuples.

        Returns if none fails. Raises the error of the stream if it cannot be read at all.
        """

        def compute(wanted: Mapping[str, str]) -> Any:
            return self.reader.read_batch(source, {stream: wanted})

        compute({TIME: microseconds_sql(self.reader.time)})
        for id in self._find_readers(stream):
            for bit in (None, *sorted(_demand_bits(deployment, id))):
                self._raise_if_failing(self.instances[id], stream, bit, error, compute)

    def run_batch(
        self,
        tables: Mapping[str, pa.Table],
        names: Mapping[str, Mapping[str, str]],
        batch: HubBatch,
        deployment: Deployment,
    ) -> dict[int, dict[str, ArrivedRows]]:
        """Run a batch through all operators, those of one depth in parallel.

        Returns the inputs of each operator by alias. Raises ExpressionError.
        """
        arrivals: dict[int, dict[str, ArrivedRows]] = {}
        for depth in deployment.operators_by_depth():
            ids = [operator.id for operator in depth]
            for id in ids:
                bits = _demand_bits(deployment, id)
                arrivals[id] = dict(self._collect_inputs(id, tables, names, batch.epoch, bits))
            each = [partial(self._run_operator, id, arrivals[id], batch) for id in ids]
            if len(each) == 1:
                each[0]()
                continue
            with current_workers().open_pool(
                "braid-operator", min(len(each), available_cores())
            ) as pool:
                running = [pool.submit(run) for run in each]
            for future in running:
                future.result()
        return arrivals

    def _collect_inputs(
        self,
        operator: int,
        tables: Mapping[str, pa.Table],
        names: Mapping[str, Mapping[str, str]],
        epoch: int,
        bits: set[int],
    ) -> Iterator[tuple[str, ArrivedRows]]:
        """Yield the inputs of an operator in a batch, by alias."""
        instance = self.instances[operator]
        for alias, read in instance.spec.inputs.items():
            if isinstance(read.source, str):
                if alias in tables:
                    yield alias, ArrivedRows(tables[alias], names[alias], bitmap_column(operator))
            elif (results := self.operator_results(read.source, epoch)) is not None:
                yield alias, self._compute_arrived_rows(instance, alias, results, bits)

    def _run_operator(
        self, operator: int, arrivals: Mapping[str, ArrivedRows], batch: HubBatch
    ) -> None:
        try:
            self.instances[operator].run_batch(arrivals, batch)
        except self.reader.evaluation_errors as error:
            raise ExpressionError(error, operator) from error

    def has_due_answers(self) -> bool:
        """Return whether a batch without tuples would answer some tuples that wait."""
        return any(each.engine.has_due_answers() for each in self.instances.values())

    def needs_closing_batch(self) -> bool:
        """Return whether a batch without tuples is needed once all streams have ended."""
        return any(each.engine.needs_closing_batch() for each in self.instances.values())

    def operator_results(self, operator: int, epoch: int) -> pa.Table | None:
        """Return the results of an operator in a batch as a flat table; None if there are none."""
        instance = self.instances[operator]
        return read_flat(instance.result_files(epoch, epoch + 1), instance.spec.result_shape)


def _demand_bits(deployment: Deployment, operator: int) -> set[int]:
    return {d.bit for d in deployment.operators[operator].demands}


def bitmap_column(operator: int) -> str:
    """Return the name of the column with an operator's bitmaps."""
    return f"__m{operator}"


def _stored_bytes(table: pa.Table, columns: Iterable[str]) -> int:
    return int(table.select(list(columns)).nbytes)
