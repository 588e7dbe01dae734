"""The operators of a hub at work: they are built from history, and batches go through them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from braid.core.columns import MARK, TIME
from braid.core.environment import environment
from braid.core.work import workers
from braid.engine.disk import disk
from braid.engine.executor import executor
from braid.engine.files import close_all
from braid.engine.memory import cores
from braid.engine.store import Store
from braid.hub.blueprints import Drawing
from braid.hub.flat import Texts, flattened, latest_of, micros_of
from braid.hub.history import History, Writing
from braid.hub.instance import (
    Input,
    Instance,
    Rows,
    blueprint_of,
    check_batches,
    folder_of,
    names_of,
    predicate_of,
)
from braid.hub.ledger import Ledger
from braid.hub.reader import Reader
from braid.papers.reuse.definition import UNBOUNDED
from braid.papers.reuse.deployment import Deployment, Operator


@dataclass
class Fault(Exception):
    """An expression of queries failed on tuples: of a ``query``; or of those that one demand of an
    operator serves, or, if ``bit`` is None, all of its demands.
    """

    error: Exception
    operator: int = -1
    bit: int | None = None
    query: str = ""


@dataclass(frozen=True)
class Built:
    """An instance that was made: of so many tuples and bytes, in so many seconds."""

    instance: Instance
    rows: int
    bytes: int
    seconds: float


class Works:
    """The instances of the operators that run, by operator, in the hub's folder ``path``."""

    def __init__(self, path: Path, reader: Reader, slack: Mapping[str, int]) -> None:
        self.path, self.reader, self.slack = path, reader, slack
        self.history = History(path / "history")
        self.instances: dict[int, Instance] = {}

    def remove_unnamed(self, ledger: Ledger) -> None:
        """Remove what a crash left half done: what a ledger that was read does not name."""
        named = {folder_of(self.path, *key) for key in {*_running(ledger), *_answering(ledger)}}
        for folder in disk().find(self.path / "operators"):
            if folder not in named:
                disk().rmtree(folder)
        self.history.tidy(ledger)
        for key in {*_answering(ledger)} - {*_running(ledger)}:
            self._forget(*key)
            Store(folder_of(self.path, *key)).sweep()

    def open(self, ledger: Ledger) -> None:
        """Have what is deployed run. Raises Damaged for what is not as it was written."""
        for id, version in _running(ledger):
            folder = folder_of(self.path, id, version)
            made, store = blueprint_of(folder), Store(folder)
            store.verify()
            check_batches(store, made, ledger.epoch + 1)
            self.instances[id] = self._instance(folder, made)

    def _instance(self, folder: Path, made: Any) -> Instance:
        return Instance(folder, made, self.reader, self.slack, executor("process"))

    def check(
        self, operators: Iterable[Operator], new: Deployment, ledger: Ledger, texts: Texts
    ) -> None:
        """Raises PredicateError for an operator that cannot be built."""
        drawing = Drawing(new, self.reader.schemas, texts, self.reader.time)
        for operator in operators:
            predicate_of(drawing.of(operator, ledger.epoch), self.reader)

    def build(
        self, operators: Iterable[Operator], new: Deployment, ledger: Ledger, texts: Texts
    ) -> list[Built]:
        """Make instances of operators, each after those that it reads, with the state that they
        would have if they had always run. Nothing is left of any if one fails.
        """
        made: dict[int, Built] = {}
        drawing = Drawing(new, self.reader.schemas, texts, self.reader.time)
        try:
            for operator in operators:
                made[operator.id] = self._built(operator, drawing, ledger, made)
        except BaseException:
            for operator in operators:
                disk().rmtree(folder_of(self.path, operator.id, operator.version))
            raise
        return list(made.values())

    def _built(
        self, operator: Operator, drawing: Drawing, ledger: Ledger, made: Mapping[int, Built]
    ) -> Built:
        began = environment().clock()
        folder = folder_of(self.path, operator.id, operator.version)
        disk().rmtree(folder)
        instance = self._instance(folder, drawing.of(operator, ledger.epoch))
        bits = {d.bit for d in operator.demands}
        came: dict[str, Rows] = {}
        if ledger.epoch >= 0:
            for alias, read in instance.made.inputs.items():
                if (found := self._past(operator, read, ledger, made)) is not None:
                    came[alias] = self._rows(instance, alias, found, bits)
            instance.run(came, ledger.epoch, ledger.clocks)
        rows = sum(r.table.num_rows for r in came.values())
        size = sum(_size(r.table, instance.made.inputs[a].stored) for a, r in came.items())
        return Built(instance, rows, size, environment().clock() - began)

    def _past(
        self, operator: Operator, read: Input, ledger: Ledger, made: Mapping[int, Built]
    ) -> pa.Table | None:
        """What came of an input that may still be of use."""
        if not isinstance(read.read, str):
            upstream = made[read.read].instance if read.read in made else self.instances[read.read]
            return flattened(upstream.files(), upstream.made.shape)
        place = operator.definition.place(read.read)
        longest = max(d.definition.windows[place] for d in operator.demands)
        progress = ledger.progress(operator.definition.streams, self.slack)
        bounded = progress is not None and longest < UNBOUNDED
        after = progress - longest if bounded and progress is not None else None
        return self.history.rows(ledger, read.read, after)

    def _rows(self, instance: Instance, alias: str, table: pa.Table, bits: set[int]) -> Rows:
        """What came under an alias with what is computed of it. Raises Fault."""
        read = instance.made.inputs[alias]
        wanted = instance.wanted(alias, bits)
        names = names_of([wanted])
        told = {name: sql for sql, name in names.items()} | {
            MARK: wanted[MARK],
            TIME: self._time(read),
        }
        try:
            made = self.reader.computed(table, read.arriving, told)
        except self.reader.faults as error:
            for bit in (None, *sorted(bits)):
                self._blame(
                    instance,
                    alias,
                    bit,
                    error,
                    lambda w: self.reader.computed(table, read.arriving, w),
                )
            raise
        for name in made.column_names:
            table = table.append_column(name, made[name])
        return Rows(table, names, MARK)

    def _time(self, read: Input) -> str:
        if isinstance(read.read, str):
            return micros_of(self.reader.time)
        return latest_of(read.streams, self.reader.time)

    def _blame(
        self, instance: Instance, alias: str, bit: int | None, error: Exception, compute: Any
    ) -> None:
        """Raises Fault if what an instance needs of an input fails by itself: for a demand, or,
        None, for all of them.
        """
        wanted = instance.wanted(alias, () if bit is None else (bit,))
        try:
            compute(wanted if bit is None else {MARK: wanted[MARK]})
        except self.reader.faults:
            raise Fault(error, instance.made.operator, bit) from error

    def adopt(self, built: Iterable[Built], dropped: Iterable[tuple[int, int]]) -> None:
        """Have new instances run, and old ones no longer: what they told stays."""
        for id, version in dropped:
            self.instances.pop(id).store.settle()
            self._forget(id, version)
        for each in built:
            self.instances[each.instance.made.operator] = each.instance

    def _forget(self, operator: int, version: int) -> None:
        """Remove the state of an instance that runs no longer."""
        blocks = folder_of(self.path, operator, version) / "blocks"
        close_all(blocks)
        disk().rmtree(blocks)

    def arrivals(
        self, source: Any, deployment: Deployment
    ) -> tuple[dict[str, pa.Table], dict[str, dict[str, str]]]:
        """The tuples of a batch by stream, with all that operators need of them, and by stream
        which Spark SQL is in which column. Raises Fault.
        """
        names, wanted = {}, {}
        for stream in self.reader.schemas:
            reading = {
                id: self.instances[id].wanted(stream, _bits(deployment, id))
                for id in self._readers(stream)
            }
            names[stream] = names_of(list(reading.values()))
            told = {name: sql for sql, name in names[stream].items()}
            told |= {marks_of(id): own[MARK] for id, own in reading.items()}
            wanted[stream] = {**told, TIME: micros_of(self.reader.time)}
        try:
            tables = dict(self.reader.batch(source, wanted))
        except self.reader.faults as error:
            for stream in wanted:
                self._find(source, stream, deployment, error)
            raise
        return tables, names

    def write_history(self, epoch: int, tables: Mapping[str, pa.Table]) -> Writing:
        """Write the tuples of a batch as they came; they are history once the ledger has them."""
        schemas = self.reader.schemas
        raw = {s: rows.select([*schemas[s], TIME]) for s, rows in tables.items()}
        return self.history.write_batch(epoch, raw)

    def _readers(self, stream: str) -> list[int]:
        """The operators that read a stream."""
        return [
            id
            for id, i in self.instances.items()
            if stream in i.made.inputs and i.made.inputs[stream].read == stream
        ]

    def _find(self, source: Any, stream: str, deployment: Deployment, error: Exception) -> None:
        """Raises Fault for the operator or demand whose SQL fails on a stream's tuples; if none
        does, or the stream itself cannot be read, the error is not theirs.
        """

        def compute(wanted: Mapping[str, str]) -> Any:
            return self.reader.batch(source, {stream: wanted})

        compute({TIME: micros_of(self.reader.time)})
        for id in self._readers(stream):
            for bit in (None, *sorted(_bits(deployment, id))):
                self._blame(self.instances[id], stream, bit, error, compute)

    def join(
        self,
        tables: Mapping[str, pa.Table],
        names: Mapping[str, Mapping[str, str]],
        epoch: int,
        latest: Mapping[str, int | None],
        deployment: Deployment,
    ) -> dict[int, dict[str, Rows]]:
        """Have a batch go through all operators, those of one depth side by side; what came to
        each, by alias. Raises Fault.
        """
        came: dict[int, dict[str, Rows]] = {}
        for depth in deployment.depths():
            ids = [operator.id for operator in depth]
            for id in ids:
                came[id] = dict(self._coming(id, tables, names, epoch, _bits(deployment, id)))
            each = [partial(self._run, id, came[id], epoch, latest) for id in ids]
            if len(each) == 1:
                each[0]()
                continue
            with workers().pool("braid-operator", min(len(each), cores())) as pool:
                running = [pool.submit(run) for run in each]
            for future in running:
                future.result()
        return came

    def _coming(
        self,
        operator: int,
        tables: Mapping[str, pa.Table],
        names: Mapping[str, Mapping[str, str]],
        epoch: int,
        bits: set[int],
    ) -> Iterator[tuple[str, Rows]]:
        """What comes to an operator in a batch, by alias."""
        instance = self.instances[operator]
        for alias, read in instance.made.inputs.items():
            if isinstance(read.read, str):
                yield alias, Rows(tables[alias], names[alias], marks_of(operator))
            elif (found := self.results(read.read, epoch)) is not None:
                yield alias, self._rows(instance, alias, found, bits)

    def _run(
        self,
        operator: int,
        came: Mapping[str, Rows],
        epoch: int,
        latest: Mapping[str, int | None],
    ) -> None:
        try:
            self.instances[operator].run(came, epoch, latest)
        except self.reader.faults as error:
            raise Fault(error, operator) from error

    def results(self, operator: int, epoch: int) -> pa.Table | None:
        """What an operator found in a batch, as a plain table; None: nothing."""
        instance = self.instances[operator]
        return flattened(instance.files(epoch, epoch + 1), instance.made.shape)


def _running(ledger: Ledger) -> set[tuple[int, int]]:
    """Return the versions of operators that run."""
    return {(o.id, o.version) for o in ledger.deployment.operators.values()}


def _answering(ledger: Ledger) -> set[tuple[int, int]]:
    """Return the versions of operators that queries have had answers of."""
    return {(span.operator, span.version) for q in ledger.queries for span in q.spans}


def _bits(deployment: Deployment, operator: int) -> set[int]:
    return {d.bit for d in deployment.operators[operator].demands}


def marks_of(operator: int) -> str:
    """The column of an operator's marks."""
    return f"__m{operator}"


def _size(table: pa.Table, columns: Iterable[str]) -> int:
    return int(table.select(list(columns)).nbytes)
