"""Where queries are handed in: plans, changes of what is deployed, and batches, one after another.
What a change leaves is committed by one rename, before it counts.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from braid.core import events
from braid.core.log import log
from braid.engine import durable
from braid.engine.disk import disk
from braid.hub.asking import Asking, New
from braid.hub.dialect import QueryError
from braid.hub.flat import Texts, compensating
from braid.hub.history import LostTuples, forget_lost
from braid.hub.ledger import Ledger, Served, Span, check_nothing_is_left, open_event_log
from braid.hub.planning import SITE, model_of
from braid.hub.reader import Reader
from braid.hub.resting import Resting
from braid.hub.settings import Settings
from braid.hub.works import Built, Fault, Works
from braid.papers.reuse import changes as pure
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.definition import UNBOUNDED, Definition
from braid.papers.reuse.deployment import Asked, Deployment, Reused, submitted, withdrawn
from braid.papers.reuse.events import (
    HistoryLost,
    HubStarted,
    OperatorBuilt,
    OperatorDropped,
    OperatorMoved,
    QueryEnded,
    QuerySubmitted,
)
from braid.papers.reuse.network import ONE_SITE
from braid.papers.reuse.planner import Decision, PlanError, Planner

T = TypeVar("T")


class Desk:
    """A hub's state and all that changes it, in the folder ``path``; one caller at a time."""

    def __init__(
        self,
        path: Path,
        reader: Reader,
        settings: Settings,
        prepare_commit: Callable[[], None] = lambda: None,
    ) -> None:
        """``prepare_commit`` is called before each commit, and raises if there must be none."""
        self.path, self.reader, self.settings = path, reader, settings
        self.file, self.prepare_commit = path / "hub.json", prepare_commit
        self.asking = Asking(reader, settings.network is None)
        self.works = Works(path, reader, settings.slack)
        self.resting = Resting(self)
        self._losses: list[events.Event] = []
        self._forced: Future[None] | None = None
        known = Ledger.read(self.file)
        if known is None:
            check_nothing_is_left(self.file)
        self.ledger = known or Ledger(deployment=Deployment(dict(settings.at)))
        self.event_log = open_event_log(path / "events.jsonl", self.ledger)
        disk().mkdir(self.works.history.folder)
        if known is None:
            self.commit(self.ledger, [self._started()])
        else:
            self.works.remove_unnamed(known)
        self.works.open(self.ledger)

    def _started(self) -> HubStarted:
        s = self.settings
        network = (s.network or ONE_SITE).to_dict()
        streams = tuple(self.reader.schemas)
        return HubStarted(streams, s.time, s.reuse, network, s.at, s.history)

    @property
    def deployment(self) -> Deployment:
        """What is deployed."""
        return self.ledger.deployment

    def model(self) -> CostModel:
        """Costs as they are known now, on the nodes that are up."""
        s = self.settings
        history, streams = self.works.history, self.reader.schemas
        return self._read_history(
            lambda: model_of(s.network, s.rates, self.ledger, history, streams)
        )

    def _read_history(self, use: Callable[[], T]) -> T:
        """Return what is made of history, of less if files of it are lost. The loss is committed
        with what comes next.
        """
        while True:
            try:
                return use()
            except LostTuples as lost:
                after = self.ledger.copy()
                forget_lost(after, lost)
                self.ledger, since = after, after.floor[lost.stream]
                assert since is not None, "something is lost"
                where = lost.stream, lost.file.epoch
                self._losses.append(HistoryLost(after.epoch, *where, since, str(lost.error)))

    def planner(self) -> Planner:
        """What plans queries now."""
        several = self.settings.network is not None
        return Planner(self.model(), self.settings.reuse, fuse=True, parts=several)

    def progress(self, streams: Sequence[str]) -> int | None:
        """The event time up to which all of these streams have come; None: some has not begun."""
        return self.ledger.progress(streams, self.settings.slack)

    def has_ended(self) -> bool:
        """Return whether all streams are finite and the last batch is committed."""
        last = self.reader.last_batch
        return last is not None and self.ledger.epoch >= last

    def happened(self) -> list[events.Event]:
        """All that happened, in order."""
        return self.event_log.since(0)

    # Queries come and go.

    def asked(self, sql: str, name: str | None = None, at: str | None = None, **more: Any) -> New:
        """A query, read and judged. Raises QueryError for one that is not taken."""
        if name is None:
            taken = {q.name for q in self.ledger.queries}
            name = next(f"q{n}" for n in range(1, len(taken) + 2) if f"q{n}" not in taken)
        if self.ledger.serving(name) is not None:
            raise QueryError(
                f"a query named {name!r} is being answered; withdraw it first, or choose another "
                "name"
            )
        new = self.asking.new(sql, name, self._sink(at), **more)
        progress = self.progress(new.query.definition.streams)
        if new.lifetime is not None and progress is not None:
            new = replace(new, asked=replace(new.asked, until=progress + new.lifetime))
        return new

    def _sink(self, at: str | None) -> str:
        network = self.settings.network
        if network is None:
            if at is not None:
                raise QueryError(f"the query is asked at {at!r}; this hub has one site, no network")
            return SITE
        sinks = [n.name for n in network.nodes if n.kind in ("sink", "site")]
        if at not in sinks:
            said = "is not said where" if at is None else f"is asked at {at!r}"
            raise QueryError(f"the query {said}; at= must be one of {', '.join(sinks)}")
        return at

    def plan(self, new: New, old: Deployment | None = None) -> Decision:
        """The cheapest plan for a query, on what is deployed or on ``old``. Raises QueryError if
        there is none.
        """
        try:
            now = self.progress(new.asked.definition.streams) or 0
            return self.planner().plan(old or self.deployment, new.asked, now)
        except PlanError as error:
            raise QueryError(str(error)) from None

    def check(self, several: Sequence[New]) -> None:
        """Raises ValueError if one of these, submitted one after the other, has no plan, or one
        that cannot be built.
        """
        then = self.deployment
        for new in several:
            then = submitted(then, new.asked, self.plan(new, then).tree)
        texts = self.asking.texts(self.ledger.queries, *(new.query for new in several))
        todo = pure.changes(self.deployment, then)
        self.works.check(todo.build, then, self.ledger, texts)

    def submit(self, new: New) -> Served:
        """Answer a query from the next batch on."""
        began = clock.perf_counter()
        decision = self.plan(new)
        planned = clock.perf_counter()
        old, name = self.deployment, new.asked.name
        after = submitted(old, new.asked, decision.tree)
        streams = new.query.definition.streams
        served = Served(
            len(self.ledger.queries),
            name,
            new.asked.sql,
            new.windows,
            new.every,
            new.asked.sink,
            _match(old, new.asked, decision),
            [],
            {},
            new.lifetime,
            self.progress(streams),
        )

        def told() -> QuerySubmitted:
            ended = clock.perf_counter()
            considered = tuple((c.what, c.cost) for c in decision.considered)
            return QuerySubmitted(
                self.ledger.epoch,
                name,
                served.sql,
                served.sink,
                served.match,
                after.queries[name].operator,
                decision.cost,
                considered,
                served.complete,
                planned - began,
                ended - planned,
            )

        self.switch(after, [], served, told, new)
        return served

    def _complete(self, new: New) -> dict[str, int | None]:
        """By stream, from which event time on history has all that a query can use; None: all.
        Operators that are there were built when it had no less.
        """
        definition = new.query.definition
        return dict.fromkeys(definition.streams) | self._lacking(definition)

    def _lacking(self, definition: Definition) -> dict[str, int]:
        """Return by stream from which event time on history has all, if a query can use more."""
        progress, lacking = self.progress(definition.streams), dict[str, int]()
        for stream, window in zip(definition.streams, definition.windows, strict=True):
            floor = self.ledger.floor.get(stream)
            used = None if progress is None or window >= UNBOUNDED else progress - window
            if floor is not None and (used is None or floor > used):
                lacking[stream] = floor
        return lacking

    def withdraw(self, name: str, reason: str = "withdrawn") -> None:
        """Answer a query no longer. Raises ValueError when none of that name is answered."""
        if self.ledger.serving(name) is None:
            self.last(name)
            raise ValueError(f"query {name!r} has been withdrawn already")
        ended = QueryEnded(self.ledger.epoch, name, reason)
        self.switch(withdrawn(self.deployment, name), [ended], reasons={name: reason})

    def last(self, name: str) -> Served:
        """The last query of a name. Raises ValueError if there was none."""
        found = [q for q in self.ledger.queries if q.name == name]
        if not found:
            known = ", ".join(dict.fromkeys(q.name for q in self.ledger.queries)) or "none"
            raise ValueError(f"no query is named {name!r}; there are: {known}")
        return found[-1]

    # From one deployment to the next.

    def moves(self, new: Deployment) -> list[events.Event]:
        """What is to be told of operators that go on elsewhere, with their state."""
        found = pure.changes(self.deployment, new).move
        held = {id: self.works.instances[id].live_bytes for id, _, _ in found}
        return [OperatorMoved(self.ledger.epoch, id, a, b, held[id]) for id, a, b in found]

    def now(self) -> int:
        """How far event time has come."""
        return max((t for t in self.ledger.clocks.values() if t is not None), default=0)

    def switch(
        self,
        new: Deployment,
        happened: Sequence[events.Event],
        served: Served | None = None,
        told: Callable[[], events.Event] | None = None,
        asked: New | None = None,
        reasons: Mapping[str, str] | None = None,
    ) -> None:
        """Build what is new, commit, and then let go of what is old."""
        old, todo = self.deployment, pure.changes(self.deployment, new)
        query = [] if asked is None else [asked.query]
        texts = self.asking.texts(self.ledger.queries, *query)
        try:
            built = self._read_history(
                lambda: self.works.build(todo.build, new, self.ledger, texts)
            )
        except Fault as fault:
            raise QueryError(
                f"the query fails on tuples that have come: {said(fault.error)}"
            ) from None
        after = self.ledger.copy()
        after.deployment = new
        for rebuilt in pure.reading(new, [operator.id for operator in todo.build]):
            self._limit_complete(after, rebuilt)
        if served is not None:
            assert asked is not None, "a query that comes was asked"
            served.complete = self._complete(asked)
            after.queries.append(served)
        for name, reason in (reasons or {}).items():
            self._end(after, name, reason)
        self._respan(after, texts)
        dropped = [OperatorDropped(after.epoch, *key) for key in todo.drop]
        last = [told()] if told else []
        self.commit(after, [*_built(built, after), *happened, *last, *dropped])
        self.works.adopt(built, todo.drop)
        self.resting.note(old, new, bool(served or reasons))

    def _limit_complete(self, ledger: Ledger, name: str) -> None:
        """Note from when on a query's answers are complete if history lacks what it can use."""
        if (served := ledger.serving(name)) is None:
            return
        for stream, floor in self._lacking(ledger.deployment.queries[name].definition).items():
            before = served.complete.get(stream)
            served.complete[stream] = floor if before is None else max(before, floor)

    def _respan(self, ledger: Ledger, texts: Texts) -> None:
        """Note by whom queries are answered from the next batch on."""
        first, time = ledger.epoch + 1, self.reader.time
        for served in ledger.served:
            asked = ledger.deployment.queries[served.name]
            operator = ledger.deployment.operators[asked.operator]
            last = served.spans[-1] if served.spans else None
            key = operator.id, operator.version, asked.bit
            if last is not None and (last.operator, last.version, last.bit) == key:
                continue
            if last is not None:
                last.end = first
            aged = any(isinstance(i, int) for i in operator.inputs)
            definition = operator.offered(asked.bit)
            where = compensating(definition, asked.definition, texts, time, aged)
            served.spans.append(Span(*key, first, None, where))

    def _end(self, ledger: Ledger, name: str, reason: str) -> None:
        served = ledger.serving(name)
        assert served is not None
        served.end, served.reason = ledger.epoch + 1, reason
        served.spans[-1].end = served.end
        served.until = self.progress(self.asking.of(served).definition.streams)

    def commit(self, after: Ledger, happened: Sequence[events.Event]) -> None:
        """Make a change real, and tell what happened."""
        self.prepare_commit()
        if self._forced is not None:
            self._forced.result()
        happened = [*self._losses, *happened]
        after.write(self.file, happened)
        self.ledger, self._losses = after, []
        self.event_log.append(happened)
        self._forced = durable.beside(partial(durable.sync, self.event_log.path))
        log(happened)


def _built(built: Iterable[Built], ledger: Ledger) -> Iterator[OperatorBuilt]:
    for each in built:
        made = each.instance.made
        operator = ledger.deployment.operators[made.operator]
        where = zip(operator.definition.streams, operator.definition.where, strict=True)
        yield OperatorBuilt(
            ledger.epoch,
            operator.id,
            operator.version,
            operator.node,
            operator.inputs,
            operator.definition.streams,
            {stream: w.text for stream, w in where},
            len(operator.demands),
            (each.rows, each.bytes),
            each.seconds,
        )


def _match(old: Deployment, asked: Asked, decision: Decision) -> str:
    """How a query comes to be answered; see ``HubQuery.match``."""
    tree = decision.tree
    if isinstance(tree, Reused):
        held = old.operators[tree.operator].serving(asked.definition) is not None
        return "holds" if held else "relaxed"
    return "derived" if decision.reused else "new"


def said(error: Exception) -> str:
    """The first line of an error."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
