"""A running hub: one streaming query of Spark, whose batches go through all operators; queries come
and go between two batches.
"""

from __future__ import annotations

import copy
import shutil
import threading
import time as clock
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.streaming.query import StreamingQuery

from braid.condition.sqltypes import SqlType
from braid.core.events import BatchCommitted
from braid.core.spans import Span, written
from braid.engine.executor import executor
from braid.engine.store import Store
from braid.hub.answers import answer, judged
from braid.hub.ledger import Kept, Ledger, Served
from braid.hub.operators import Running, arrived, marks_of, matches, name_of, streams_of
from braid.hub.query import StreamQuery, understood
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.definition import Definition
from braid.papers.reuse.deployment import Asked, Demand, Deployment, New, Operator, Reused
from braid.papers.reuse.network import ONE_SITE
from braid.papers.reuse.planner import Decision, Planner, Reuse
from braid.papers.reuse.rates import Rates, StreamRate
from braid.papers.reuse.relaxation import relax, union

SITE = ONE_SITE.nodes[0].name


@dataclass(frozen=True)
class Settings:
    """What stays the same while a hub runs; ``lateness`` as text, ``slack`` in microseconds."""

    frames: Mapping[str, DataFrame]
    time: str
    lateness: str
    slack: int
    reuse: Reuse
    batches: int | None


class HubQuery:
    """A query of a running hub."""

    def __init__(self, run: HubRun, served: Served) -> None:
        self._run, self._served = run, served

    @property
    def name(self) -> str:
        """What it is called."""
        return self._served.name

    @property
    def match(self) -> str:
        """How it came to be answered: by a "new" operator, by one that "holds" it, or by one that
        was "relaxed".
        """
        return self._served.match

    @property
    def complete(self) -> dict[str, int | None]:
        """By stream the event time (microseconds) from which on the operator held all tuples that
        this query can use, when it came; None: all. Answers whose members are no older are
        complete.
        """
        return dict(self._served.complete)

    def results(self) -> DataFrame:
        """All that it was told so far: a row for each match, or, with a SLIDE, what held at each
        tick, with a column ``tick``.
        """
        return self._run.answers(self.name)

    def table(self) -> Any:
        """The answer at the last tick, or all matches if there is no SLIDE, as a pandas frame."""
        found: Any = self.results().toPandas()
        if "tick" not in found.columns or not len(found):
            return found
        return found[found["tick"] == found["tick"].max()].reset_index(drop=True)

    def withdraw(self) -> None:
        """Have it answered no longer. What it was told stays."""
        self._run.withdraw(self.name)

    def __repr__(self) -> str:
        state = "served" if self._served.end is None else "withdrawn"
        return f"HubQuery({self.name}: {state}, operator {self._served.operator}, {self.match})"


class HubRun:
    """A hub that runs, or has ended. All methods may be called from any thread; what changes
    queries waits for the batch that is on its way, and is there after a restart.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        trigger: Mapping[str, Any],
        queries: Mapping[str, str],
    ) -> None:
        self.settings, self.store = settings, store
        self._file = store.path / "hub.json"
        self.ledger = Ledger.read(self._file)
        self._executor = executor("process")
        self._turn, self._gate, self._stopping = (
            threading.RLock(),
            threading.Event(),
            threading.Event(),
        )
        self._gate.set()
        self._ended = False
        self._error: BaseException | None = None
        self._schemas = {
            s: {f.name: SqlType.of(f.dataType.simpleString()) for f in frame.schema.fields}
            for s, frame in settings.frames.items()
        }
        self.seconds: list[float] = []
        """Wall-clock of each batch since this start, of reading, all operators and the commit."""
        self._known: dict[tuple[str, str, str], StreamQuery] = {}
        self.operators = {o.id: self._open(o) for o in self.ledger.operators}
        self._recover()
        self._planner = Planner(_model(settings.frames), settings.reuse, fuse=True, parts=False)
        if self.ledger.epoch < 0 and not self.ledger.queries:
            for name, sql in queries.items():
                self._asked(sql, name, None, None)  # all are refused if one is
            for name, sql in queries.items():
                self.submit(sql, name)
        self._trigger = dict(trigger)
        self._spark_query = self._launch()
        self._watcher = threading.Thread(target=self._watch, name="braid-hub", daemon=True)
        self._watcher.start()

    def _open(self, kept: Kept) -> Running:
        s = self.settings
        frames = {name: s.frames[name] for name in kept.streams}
        return Running(self._folder(kept.id), frames, kept.on, s.time, s.lateness, self._executor)

    def _folder(self, operator: int) -> Path:
        return self.store.path / "operators" / f"{operator:04d}"

    def _recover(self) -> None:
        """Undo what a crash left half done: an operator or a demand that the ledger does not
        name.
        """
        folders = self.store.path / "operators"
        named = {self._folder(q.operator) for q in self.ledger.queries}
        for folder in folders.iterdir() if folders.exists() else ():
            if folder not in named:
                shutil.rmtree(folder)
        for kept in self.ledger.operators:
            running = self.operators[kept.id]
            known = set(map(name_of, kept.demands))
            if extra := [q.name for q in running.queries if q.name not in known]:
                running.remove(extra)

    def _launch(self) -> Any:
        frame = streams_of(self.settings.frames)
        writer = frame.writeStream.foreachBatch(self._batch)
        writer = writer.option("checkpointLocation", str(self.store.path / "checkpoint"))
        finite = {"availableNow": True} if self.settings.batches is not None else {}
        trigger = self._trigger or finite
        return (writer.trigger(**trigger) if trigger else writer).start()

    def _batch(self, frame: DataFrame, epoch: int) -> None:
        """Spark calls this for every micro-batch. An exception must reach Spark."""
        self._gate.wait()
        with self._turn:
            if self._stopping.is_set():
                raise RuntimeError("the hub was stopped before this batch")
            try:
                self._joined(frame, epoch)
            except Exception as error:
                self._error = error
                raise

    def _joined(self, frame: DataFrame, epoch: int) -> None:
        if epoch <= self.ledger.epoch:
            return
        frame.sparkSession.conf.set("spark.sql.adaptive.enabled", "false")
        began = clock.perf_counter()
        time, after = self.settings.time, copy.deepcopy(self.ledger)
        tables = {}
        for number, stream in enumerate(self.settings.frames):
            reading = {i: o for i, o in self.operators.items() if stream in o.streams}
            tables[stream] = arrived(frame, number, stream, time, reading)
            came = [t for t in (after.latest.get(stream), tables[stream].latest) if t is not None]
            after.latest[stream] = max(came, default=None)
        for id, operator in self.operators.items():
            operator.run(tables, epoch, marks_of(id))
        after.epoch = epoch
        self._commit(after)
        self.seconds.append(clock.perf_counter() - began)

    def _commit(self, ledger: Ledger) -> None:
        ledger.write(self._file)
        self.ledger = ledger

    def _watch(self) -> None:
        try:
            self._spark_query.awaitTermination()
        except Exception as error:
            self._error = self._error or error
        with self._turn:
            self._ended = True
            if self.exception() is None and not self._stopping.is_set():
                for operator in self.operators.values():
                    operator.finish()
            self.store.release()

    @property
    def queries(self) -> dict[str, HubQuery]:
        """The queries that are served now, by name."""
        return {q.name: HubQuery(self, q) for q in self.ledger.queries if q.end is None}

    def query(self, name: str) -> HubQuery:
        """A query that is or was served, the last one of that name. Raises ValueError if there was
        none.
        """
        return HubQuery(self, self._served(name))

    def _served(self, name: str) -> Served:
        found = [q for q in self.ledger.queries if q.name == name]
        if not found:
            known = ", ".join(dict.fromkeys(q.name for q in self.ledger.queries)) or "none"
            raise ValueError(f"no query is named {name!r}; there are: {known}")
        return found[-1]

    def submit(
        self,
        sql: str,
        name: str | None = None,
        windows: Mapping[str, Span] | Span | None = None,
        every: Span | None = None,
    ) -> HubQuery:
        """Answer one more query from the next batch on.

        Parameters
        ----------
        sql
            Spark SQL, with windows as in ``FROM flights [RANGE 5 MINUTES SLIDE 1 MINUTE] f``.
        name
            What it is called; left out: q1, q2, ...
        windows, every
            For a query without brackets: one window for all streams, or one for each by alias; how
            often it is answered.

        Raises ValueError, with one sentence, for a query that is not taken; nothing has changed
        then.
        """
        with self._turn:
            self._check_active()
            asked = self._asked(sql, name, windows, every)
            decision = self._planner.plan(self.deployment(), asked.asked)
            served, after = self._deploy(asked, decision)
            after.queries.append(served)
            self._commit(after)
            return HubQuery(self, served)

    def _asked(self, sql: str, name: str | None, windows: Any, every: Span | None) -> _Asked:
        if name is None:
            taken = {q.name for q in self.ledger.queries}
            name = next(f"q{n}" for n in range(1, len(taken) + 2) if f"q{n}" not in taken)
        if self.ledger.serving(name) is not None:
            raise ValueError(
                f"a query named {name!r} is being answered; withdraw it first, or choose another "
                "name"
            )
        spans = _written(windows)
        slide = None if every is None else written(every, "every")
        query = understood(sql, self._schemas, self.settings.time, spans, slide)
        self._judge(query)
        asked = Asked(name, self._whole(query), SITE, sql=sql)
        return _Asked(query, asked, spans, slide)

    def _judge(self, query: StreamQuery) -> None:
        frames = self.settings.frames
        fields = [T.StructField(s, frames[s].schema) for s in query.definition.streams]
        spark = next(iter(frames.values())).sparkSession
        judged(spark.createDataFrame([], T.StructType(fields)), query, self.settings.time)

    def _whole(self, query: StreamQuery) -> Definition:
        """The definition with all columns: operators carry whole tuples."""
        columns = tuple(frozenset(self._schemas[s]) for s in query.definition.streams)
        return replace(query.definition, columns=columns, slides=frozenset())

    def deployment(self) -> Deployment:
        """What is deployed, as planners see it."""
        operators = {}
        for kept in self.ledger.operators:
            demands = tuple(
                Demand(bit, self._whole(self._founder(kept.id, bit)), (None,) * len(kept.streams))
                for bit in kept.demands
            )
            first = demands[0].definition
            common = frozenset.intersection(*(d.definition.joins for d in demands))
            definition = union([replace(d.definition, joins=common) for d in demands])
            operators[kept.id] = Operator(
                kept.id, SITE, first.streams, definition, demands, len(demands), kept.next_bit
            )
        return Deployment(dict.fromkeys(self.settings.frames, SITE), operators)

    def _founder(self, operator: int, bit: int) -> StreamQuery:
        """The query that a demand was made for: bits are not given out again."""
        served = self.ledger.queries
        return self._understood(next(q for q in served if q.operator == operator and q.bit == bit))

    def _understood(self, served: Served) -> StreamQuery:
        key = served.sql, repr(served.windows), repr(served.every)
        if key not in self._known:
            self._known[key] = understood(
                served.sql, self._schemas, self.settings.time, served.windows, served.every
            )
        return self._known[key]

    def _deploy(self, new: _Asked, decision: Decision) -> tuple[Served, Ledger]:
        """Have an operator make what is asked; the ledger that says so is still to be committed."""
        after, tree = copy.deepcopy(self.ledger), decision.tree
        if isinstance(tree, New):
            return self._founded(new, after)
        assert isinstance(tree, Reused), "a query reads two streams or more"
        kept = next(o for o in after.operators if o.id == tree.operator)
        running, operator = self.operators[kept.id], self.deployment().operators[kept.id]
        there = operator.serving(new.asked.definition)
        back = None
        if there is None:
            bit = kept.next_bit
            kept.next_bit += 1
            kept.demands.append(bit)
            demand = running.demand(bit, new.query.windows, new.query.filters)
            mark = running.add(demand)
        else:
            bit = there.bit
            mark = next(q for q in running.queries if q.name == name_of(bit))
            same = [q for q in after.queries if q.operator == kept.id and q.bit == bit]
            back = min(q.back for q in same)
        served = new.served(kept.id, bit, mark.bit, running, mark.complete)
        if new.query.every is not None:
            self._told_late(served, [] if there is None else same)
        served.back = served.first if back is None else back
        served.match = "relaxed" if there is None else "holds"
        served.since = self._progress(running.streams)
        return served, after

    def _told_late(self, served: Served, same: list[Served]) -> None:
        """A tick reads pairs that met before the query came; an operator that is relaxed for it has
        none of them, and who shares its demand later has those that ``same`` have.
        """
        for s, known in served.complete.items():
            latest = self.ledger.latest.get(s)
            fresh = [None if latest is None else latest + 1]
            times = [known, *([q.complete[s] for q in same] or fresh)]
            served.complete[s] = max((t for t in times if t is not None), default=None)

    def _founded(self, new: _Asked, after: Ledger) -> tuple[Served, Ledger]:
        streams = list(new.query.definition.streams)
        kept = Kept(after.next_id, streams, new.query.on, [0])
        after.next_id += 1
        shutil.rmtree(self._folder(kept.id), ignore_errors=True)
        running = self._open(kept)
        demand = running.demand(0, new.query.windows, new.query.filters)
        first = running.begin(demand, after.epoch, after.latest)
        self.operators[kept.id] = running
        after.operators.append(kept)
        served = new.served(kept.id, 0, 0, running, first.complete)
        served.since = self._progress(running.streams)
        return served, after

    def _progress(self, streams: tuple[str, ...]) -> int | None:
        """The event time up to which all of these streams have come; None: some has not begun."""
        came = [self.ledger.latest.get(s) for s in streams]
        if None in came:
            return None
        return min(t for t in came if t is not None) - self.settings.slack

    def withdraw(self, name: str) -> None:
        """Answer a query no longer. Raises ValueError when none of that name is answered."""
        with self._turn:
            self._check_active()
            if self.ledger.serving(name) is None:
                self._served(name)
                raise ValueError(f"query {name!r} has been withdrawn already")
            after = copy.deepcopy(self.ledger)
            served = after.serving(name)
            assert served is not None
            running = self.operators[served.operator]
            served.end = running.batch + 1
            served.until = self._until(served, running.streams)
            kept = next(o for o in after.operators if o.id == served.operator)
            alone = not any(
                q.end is None and q.operator == served.operator and q.bit == served.bit
                for q in after.queries
            )
            if alone:
                kept.demands.remove(served.bit)
            if not kept.demands:
                after.operators.remove(kept)
                del self.operators[kept.id]
            self._commit(after)
            if alone and kept.demands:
                running.remove([name_of(served.bit)])

    def answers(self, name: str) -> DataFrame:
        """What a query was told so far; see ``HubQuery.results``."""
        with self._turn:
            served = self._served(name)
            query = self._understood(served)
            frames = {s: self.settings.frames[s] for s in query.definition.streams}
            first = served.first if query.every is None else served.back
            folder = self._folder(served.operator)
            found = matches(folder, frames, served.mark, first, served.end)
            until = self._until(served, tuple(frames))
            return answer(found, query, self.settings.time, served.since, until)

    def _until(self, served: Served, streams: tuple[str, ...]) -> int | None:
        if served.until is not None:
            return served.until
        if self._ended and self.exception() is None and not self._stopping.is_set():
            latest = [t for s in streams if (t := self.ledger.latest.get(s)) is not None]
            return max(latest) + 1 if latest else None
        return self._progress(streams)

    def explain(
        self,
        sql: str,
        windows: Mapping[str, Span] | Span | None = None,
        every: Span | None = None,
    ) -> str:
        """What would be done for a query, and what was considered; nothing changes."""
        with self._turn:
            new = self._asked(sql, None, windows, every)
            deployment = self.deployment()
            decision = self._planner.plan(deployment, new.asked)
            return "\n".join(_explained(deployment, new.asked.definition, decision))

    def metrics(self) -> pd.DataFrame:
        """One row per operator and batch of it: tuples received, pairs compared, results, tuples
        and bytes held, and seconds. Operators that are gone are told too.
        """
        rows = []
        for id in range(self.ledger.next_id):
            for e in Store(self._folder(id)).history():
                if isinstance(e, BatchCommitted):
                    did = {"operator": id, "batch": e.batch, "received": sum(e.received)}
                    did |= {"received_bytes": sum(e.received_bytes), "results": e.results}
                    did |= {"compared": e.all_hosts.compared, "live": sum(e.live)}
                    did |= {"stored_bytes": e.all_hosts.stored_bytes}
                    rows.append({**did, "seconds": e.seconds["total"]})
        return pd.DataFrame(rows)

    def pause(self) -> None:
        """Hold the hub before its next batch."""
        self._gate.clear()

    def unpause(self) -> None:
        """Let a paused hub go on."""
        self._gate.set()

    def stop(self) -> None:
        """Stop within one batch; one that is on its way is done again when the hub is resumed."""
        if self._watcher.is_alive():
            self._stopping.set()
            self._gate.set()
            self._spark_query.stop()
            self._watcher.join()

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most ``timeout`` seconds; raises what made the hub fail. Returns
        whether it has ended.
        """
        self._watcher.join(timeout)
        if not self._watcher.is_alive() and (error := self.exception()) is not None:
            raise error
        return not self._watcher.is_alive()

    @property
    def spark_query(self) -> StreamingQuery:
        """Spark's own handle of the streaming query."""
        found: StreamingQuery = self._spark_query
        return found

    @property
    def isActive(self) -> bool:
        """Whether the hub goes on."""
        return self._watcher.is_alive()

    def exception(self) -> BaseException | None:
        """What made the hub fail; None while it runs and when it ended well or was stopped."""
        if self._stopping.is_set():
            return None
        return self._error or self._spark_query.exception()

    def _check_active(self) -> None:
        if self._ended:
            raise RuntimeError("the hub has ended; start it again to change what it answers")

    def __repr__(self) -> str:
        return (
            f"HubRun({', '.join(self.settings.frames)}: {len(self.queries)} queries on "
            f"{len(self.operators)} operators, {self.ledger.epoch + 1} batches, in "
            f"{str(self.store.path)!r})"
        )


@dataclass(frozen=True)
class _Asked:
    """A query that was read, as planners take it, and as it is written down."""

    query: StreamQuery
    asked: Asked
    windows: Any
    every: str | None

    def served(
        self,
        operator: int,
        bit: int,
        mark: int,
        running: Running,
        complete: tuple[int | None, ...],
    ) -> Served:
        first = running.batch + 1
        told = dict(zip(running.streams, complete, strict=True))
        named = self.asked.name, self.asked.sql, self.windows, self.every
        return Served(*named, operator, bit, mark, first, first, told, "new")


def _written(windows: Mapping[str, Span] | Span | None) -> Any:
    if windows is None:
        return None
    if isinstance(windows, Mapping):
        return {a: written(w, f"window of {a}") for a, w in windows.items()}
    return written(windows, "window")


def _model(frames: Mapping[str, DataFrame]) -> CostModel:
    """On one site the cost is work. Nothing is known of rates, so all streams count alike."""
    return CostModel(ONE_SITE, Rates({s: StreamRate(1.0, {}) for s in frames}))


def _explained(deployment: Deployment, wanted: Definition, decision: Decision) -> list[str]:
    tree = decision.tree
    if isinstance(tree, New):
        lines = [f"a new operator joins {', '.join(wanted.streams)}"]
    else:
        assert isinstance(tree, Reused)
        operator = deployment.operators[tree.operator]
        if operator.serving(wanted) is not None:
            lines = [f"operator {operator.id} answers it as it is"]
        else:
            lines = [f"operator {operator.id} answers it after relaxing it"]
            changes = relax(operator.definition, wanted).changes
            lines += [f"  {step:<12} {said}" for step, said in changes]
            if not changes:
                lines.append("  it is within the union of several demands, and in none of them")
    lines.append("considered, by work a second at equal rates (modelled)")
    lines += [f"  {c.what.replace(' at here', '')}: {c.cost:.4g}" for c in decision.considered]
    return lines
