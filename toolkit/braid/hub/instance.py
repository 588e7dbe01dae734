"""A version of an operator that runs: a shared join on the engine, whose queries are the operator's
demands, in a folder of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from braid.condition.kept import computed_by
from braid.condition.parse import parse
from braid.condition.predicate import Predicate
from braid.core.codec import plain, typed
from braid.core.columns import MARK, ROUTING, TIME
from braid.core.environment import environment
from braid.core.events import BatchCommitted
from braid.core.query import Query
from braid.engine.durable import Damaged
from braid.engine.engine import Engine
from braid.engine.executor import Executor
from braid.engine.store import Store
from braid.engine.wire import JoinSpec
from braid.hub.flat import Shape
from braid.hub.reader import Reader
from braid.papers.reuse.definition import Column
from braid.papers.reuse.events import Did
from braid.papers.slices.chain import Chain


@dataclass(frozen=True)
class Input:
    """What an operator reads under an alias: a stream, or another operator. ``arriving`` are the
    columns that come, ``stored`` those that it keeps.
    """

    read: str | int
    streams: tuple[str, ...]
    arriving: Mapping[str, Column]
    stored: Mapping[str, Column]


@dataclass(frozen=True)
class Blueprint:
    """What an instance is made of, as it is written down: ``on`` over ``alias.column``, by bit its
    demands, and ``epoch``, the batch of Spark after which it runs.
    """

    operator: int
    version: int
    on: str
    inputs: Mapping[str, Input]
    demands: tuple[Query, ...]
    epoch: int

    @property
    def shape(self) -> Shape:
        """The shape of its results."""
        return {alias: i.stored for alias, i in self.inputs.items()}

    def batch(self, epoch: int) -> int:
        """The number of the batch in which it joined this one of Spark. Batch 0 names the demands,
        batch 1 is made of history, if there is any.
        """
        return epoch - self.epoch + (1 if self.epoch >= 0 else 0)


def folder_of(path: Path, operator: int, version: int) -> Path:
    """Where a version of an operator is."""
    return path / "operators" / f"{operator:04d}-{version:03d}"


def blueprint_of(folder: Path) -> Blueprint:
    """What the instance in a folder is made of. Raises Damaged where none is."""
    found = Store(folder).query()
    if found is None:
        raise Damaged(f"{folder / 'run.json'} is missing")
    return typed(found["blueprint"], Blueprint)


@dataclass(frozen=True)
class Rows:
    """Tuples that came under an alias: ``table`` with the columns that arrive, with event time and
    what is computed: Spark SQL in ``names``; and the column of their ``marks``.
    """

    table: pa.Table
    names: Mapping[str, str]
    marks: str


def predicate_of(made: Blueprint, reader: Reader) -> Predicate:
    """What an instance joins on. Raises PredicateError for what cannot be joined on."""
    frames = {alias: reader.frame(i.arriving) for alias, i in made.inputs.items()}
    return parse(made.on, frames, (None,) * len(frames))


class Instance:
    """Runs batches; results of each are committed once, whatever is done again after a crash."""

    def __init__(
        self,
        folder: Path,
        made: Blueprint,
        reader: Reader,
        slack: Mapping[str, int],
        executor: Executor,
    ) -> None:
        """``slack``: how late tuples of each stream may be. Results of others are as late as one of
        the streams that they are made of.
        """
        self.made, self.reader, self.folder = made, reader, folder
        self.store = Store(folder)
        self.predicate = predicate_of(made, reader)
        limits = (None,) * len(made.inputs)
        slacks = tuple(max(slack[s] for s in i.streams) for i in made.inputs.values())
        computed = computed_by(self.predicate)
        if (known := self.store.query()) is None:
            self.store.create({"blueprint": plain(made), "keys": computed})
        elif known.get("keys") != computed:
            raise ValueError(
                f"{folder} holds an operator for which another version of Braid computed the keys "
                "of its condition in another way; use a new folder for the hub"
            )
        self.store.sweep()
        self.store.clean()
        columns = tuple(tuple(i.stored) for i in made.inputs.values())
        spec = JoinSpec(self.predicate, columns, (), limits, str(folder), 1)
        self.last: BatchCommitted | None = None
        self.engine = Engine(
            spec, Chain("memory", (), 1), self.store, slacks, False, self._happened, executor
        )
        if not self.engine.state.queries:
            state = replace(self.engine.state, epoch=max(made.epoch - 1, -1))
            self.engine.state = state
            self.engine.amend(made.demands, state.policy, None, [], environment().clock())

    def _happened(self, events: list[Any]) -> None:
        self.last = next(e for e in reversed(events) if isinstance(e, BatchCommitted))

    def wanted(self, alias: str, bits: Collection[int]) -> dict[str, str]:
        """What it needs computed of what comes under an alias: Spark SQL by name; ``MARK`` for
        the demands with these bits.
        """
        i = list(self.made.inputs).index(alias)
        marks = " | ".join(self._marks(i, bits)) or "cast(0 as bigint)"
        return {MARK: marks, **self.predicate.keys[i], **self.predicate.computed[i]}

    def _marks(self, i: int, bits: Collection[int]) -> Iterator[str]:
        """The bits of the selections that a tuple passes, each evaluated once."""
        found: dict[str | None, int] = {}
        for demand in self.made.demands:
            if demand.bit in bits:
                where = demand.where[i]
                found[where] = found.get(where, 0) | 1 << demand.bit
        for where, mask in found.items():
            some = f"cast({mask} as bigint)"
            yield (
                some
                if where is None
                else f"(case when {where} then {some} else cast(0 as bigint) end)"
            )

    def run(self, came: Mapping[str, Rows], epoch: int, clocks: Mapping[str, int | None]) -> None:
        """Join and commit a batch. ``clocks`` is how far the event time of each stream is."""
        tuples = {
            i: found
            for i, alias in enumerate(self.made.inputs)
            if alias in came and (found := self._tuples(i, alias, came[alias]))
        }
        self.engine.run(tuples, epoch, lambda: self._seen(clocks))

    def _seen(self, clocks: Mapping[str, int | None]) -> list[int | None]:
        """How far event time is, by input: results may run ahead of one of their streams."""
        found: list[int | None] = []
        for i in self.made.inputs.values():
            times = [clocks.get(s) for s in i.streams]
            found.append(None if None in times else min(t for t in times if t is not None))
        return found

    def taken(self, alias: str, came: Rows) -> pa.Table:
        """What it takes of what came: what some demand asks for and can match."""
        rows, i = came.table, list(self.made.inputs).index(alias)
        keys = (came.names[sql] for sql in self.predicate.keys[i].values())
        chosen = pc.not_equal(rows[came.marks], 0)
        for name in (TIME, *keys):
            chosen = pc.and_(chosen, rows[name].is_valid())
        return rows.filter(chosen)

    def _tuples(self, i: int, alias: str, came: Rows) -> list[pa.RecordBatch]:
        rows = self.taken(alias, came)
        keys, computed = self.predicate.keys[i], self.predicate.computed[i]
        if not rows.num_rows:
            return []
        columns = {n: rows[n] for n in self._kept(i, alias)}
        columns |= {name: rows[came.names[sql]] for name, sql in (keys | computed).items()}
        mark = rows[came.marks].combine_chunks()
        bitmaps = self.engine.bitmaps
        assert bitmaps is not None, "an operator has a demand"
        columns |= {MARK: mark, ROUTING: pa.array(bitmaps.rank(i, mark.to_numpy()))}
        whole: list[pa.RecordBatch] = pa.table(columns).combine_chunks().to_batches()
        return whole

    def _kept(self, i: int, alias: str) -> list[str]:
        """The columns that tuples are kept with: those of results, and what pairs are judged by."""
        p, read = self.predicate, self.made.inputs[alias]
        pairs = [c for r in p.residuals for m in r.measures for c in (m.left, m.right)]
        pairs += [c for r in p.residuals for c in r.columns]
        pairs += [c for each in p.commons for c in (each.left, each.right)]
        looked = [name for stream, name in pairs if stream == i and name in read.arriving]
        return list(dict.fromkeys([*read.stored, *looked, TIME]))

    def files(self, first: int | None = None, end: int | None = None) -> list[str]:
        """The result files of the batches of Spark from ``first`` (None: and of history) up to, not
        with, ``end``.
        """
        return files_of(self.store, self.made, first, end)

    @property
    def live_bytes(self) -> int:
        """The bytes that it holds."""
        return sum(b.bytes for b in self.engine.state.blocks.values())

    def did(self) -> Did:
        """What it did in its last batch."""
        e = self.last
        if e is None:
            return Did(self.made.operator, self.made.version, 0, 0, 0, 0, 0, self.live_bytes, 0.0)
        return did_of(self.made, e)


def did_of(made: Blueprint, e: BatchCommitted) -> Did:
    """What an instance did in a batch."""
    hosts = e.all_hosts
    counts = sum(e.received), sum(e.received_bytes), hosts.compared, e.results
    held = sum(e.live), hosts.stored_bytes, e.seconds["total"]
    return Did(made.operator, made.version, *counts, *held)


def files_of(
    store: Store, made: Blueprint, first: int | None = None, end: int | None = None
) -> list[str]:
    """The result files of an instance; see ``Instance.files``. Raises Damaged for a file that is
    not what was written.
    """
    start = 0 if first is None else made.batch(first)
    return store.result_files(start, None if end is None else made.batch(end), deep=True)


def check_batches(store: Store, made: Blueprint, end: int) -> None:
    """Raise Damaged unless an instance has committed the batches of Spark up to, not with,
    ``end``.
    """
    store.log.refresh()
    has, wanted = store.log.batches, made.batch(end)
    if has < wanted:
        raise Damaged(
            f"{store.commits} is damaged: it has {has} batches, {wanted} were committed; restore it"
        )


def names_of(wanted: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """By Spark SQL, the column that it is computed into, the same for all."""
    found: dict[str, str] = {}
    for each in wanted:
        for name, sql in each.items():
            if name != MARK:
                found.setdefault(sql, f"__x{len(found)}")
    return found
