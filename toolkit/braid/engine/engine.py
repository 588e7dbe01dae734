"""The batch loop's one turn: compaction, plan, execute, commit.

The driver decides from block facts, an executor moves and joins, files hold the state. Nothing here
knows a policy or Spark, and nothing in a policy knows Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from braid.condition.predicate import windowed
from braid.core import step
from braid.core.environment import environment
from braid.core.events import BatchCommitted, Event
from braid.core.placement import Placement
from braid.core.query import Query, longest
from braid.core.report import Outcome, Report, made, merged
from braid.core.seconds import split
from braid.core.shedder import Shedder
from braid.core.state import Seal, State
from braid.core.step import Rules, Step, Work
from braid.engine.choice import Executed
from braid.engine.entries import Named
from braid.engine.executor import Executor
from braid.engine.store import Store
from braid.engine.wire import Batch, JoinSpec
from braid.local.bitmaps import QueryBitmaps


class Engine:
    """Runs batches of one query against one store; ``publish`` receives the events of each
    committed batch; ``executor`` runs the tasks, and may be another one from batch to batch.

    ``lateness``, by stream, and ``ahead`` are in microseconds (see Rules). With ``check`` every
    plan is held against the cover rule before it runs. ``queries`` are those that a new run serves,
    if it serves many; ``query`` has no windows then. ``shedder`` is what sheds load, if anything
    does; ``clock`` tells seconds.
    """

    def __init__(
        self,
        spec: JoinSpec,
        placement: Placement,
        store: Store,
        lateness: Sequence[int],
        check: bool,
        publish: Callable[[list[Any]], None],
        executor: Executor,
        queries: tuple[Query, ...] = (),
        shedder: Shedder | None = None,
        clock: Callable[[], float] | None = None,
        ahead: int | None = None,
    ) -> None:
        self.shedder, self.clock = shedder, clock or environment().clock
        self.committing = self.last_commit = 0.0
        self.alone = replace(spec, force=store.force)
        self.placement, self.store = placement, store
        self.lateness, self.ahead = tuple(lateness), ahead
        self.publish, self.executor = publish, executor
        self.streams, self.check = len(spec.columns), check
        if not store.begun:
            store.begin()
        shedding = None if shedder is None else shedder.start(self.streams)
        first = State.first(self.streams, placement.start(self.streams), queries, shedding)
        kind = object if shedder is None else shedder.State
        self.state = store.state(placement.State, kind) or first
        self.serve(self.state.queries)

    def serve(self, queries: tuple[Query, ...]) -> None:
        """Join for these queries from now on: in the longest of their windows."""
        self.spec, self.bitmaps = self.alone, None
        if queries:
            windows = longest(queries)
            self.spec = replace(
                self.alone, predicate=windowed(self.alone.predicate, windows), windows=windows
            )
            self.bitmaps = QueryBitmaps.of(queries)
        self.rules = Rules(
            self.placement,
            self.spec.predicate.aliases,
            self.spec.windows,
            self.lateness,
            self.ahead,
            self.check,
            self.shedder,
        )

    def run(self, frame: Any, epoch: int, seen: Callable[[], Sequence[int | None]] = tuple) -> None:
        """Execute and commit Spark's micro-batch ``epoch`` of the streams' union, unless it has
        been committed before. Raises RuntimeError when the one before it has not.

        ``seen`` tells afterwards, by stream, the clock (microseconds), if ``frame``
        does not say it: event time goes on with tuples too that no query selects, and it is not
        ahead of the streams that a stream of results is made of.
        """
        if epoch > self.state.epoch + 1:
            raise RuntimeError(
                f"micro-batch {epoch} has come, but the last that the run in {self.store.where} "
                f"has committed is {self.state.epoch}; what lies between would be lost"
            )
        if epoch > self.state.epoch:
            with self.store.superseding():
                self._turn(frame, epoch, seen)

    def finish(self, nothing: Callable[[], Any], stopped: Callable[[], bool]) -> None:
        """At the end of the input, run batches of no tuples, which ``nothing`` makes, until no
        migration owes results.
        """
        frame = None
        while self.placement.owes(self.state.policy) and not stopped():
            frame = nothing() if frame is None else frame
            with self.store.superseding():
                self._turn(frame, self.state.epoch, tuple)

    def _turn(self, frame: Any, epoch: int, seen: Callable[[], Sequence[int | None]]) -> None:
        began = self.clock()
        self.store.expect()
        work = step.plan(self.rules, self.state)
        planned = self.clock()
        done, outcome = self._executed(frame, self._batch(work))
        executed = self.clock()
        self._timed(outcome, executed - began + self.committing + self.last_commit)
        after = step.commit(self.rules, self.state, work, outcome, epoch, seen())
        snapshot = self.store.snapshot(after.state)
        ended = self.clock()
        self.committing = ended - executed
        seconds = split(
            ended - began, outcome.source, planned - began, outcome.kernels, ended - executed
        )
        took = {
            "executor": done.choice.way,
            "why": done.choice.why,
            "announced": done.announced,
            "source_bytes": max(done.came, outcome.source_bytes),
            "tasks": outcome.tasks,
            "machine": done.machine,
        }
        results = {name: outcome.files[name] for name in outcome.results}
        self._commit(after, snapshot, results, seconds, took)

    def _executed(self, frame: Any, batch: Batch) -> tuple[Executed, Outcome]:
        """Carry a batch out."""
        done = self.executor.execute(frame, batch)
        outcome = merged(done.reports, self.streams)
        self.store.present(outcome)
        return done, outcome

    def _timed(self, outcome: Outcome, turn: float) -> None:
        """Note what the turn took, for the next plan: up to the commit, and the last commit."""
        if outcome.harvested is not None:
            outcome.harvested = replace(outcome.harvested, seconds=turn)

    def _batch(self, work: Work) -> Batch:
        return Batch(
            spec=self.spec,
            number=work.facts.batch,
            space=self.placement.keyspace(work.plan.state),
            routes=work.plan.routes,
            derivations=work.whole.derivations,
            places=self.state.places,
            watermarks=work.facts.watermarks,
            ages=work.ages,
            clocks=self.state.clocks,
            ahead=self.rules.ahead,
            bitmaps=self.bitmaps,
            harvest=work.plan.harvest,
            sizes=self._read(work),
            files=self.state.files,
        )

    def _read(self, work: Work) -> dict[int, int]:
        """The bytes of the blocks that derivations read, which may be derived themselves."""
        derived = {d.block.id: d.block for d in work.whole.derivations}
        known = {**self.state.blocks, **derived}
        return {s: known[s].bytes for d in work.whole.derivations for s in d.sources if s in known}

    def _commit(
        self,
        after: Step,
        snapshot: Named,
        results: Mapping[str, Seal],
        seconds: Mapping[str, float],
        took: Mapping[str, Any],
    ) -> None:
        *happened, committed = after.events
        assert isinstance(committed, BatchCommitted)
        happened.append(replace(committed, seconds=seconds, last_commit=self.last_commit, **took))
        began = self.clock()
        self.store.commit(after.state.batch, snapshot, results, happened)
        self.store.tidy(after.state, snapshot)
        self.state = after.state
        self.publish(happened)
        self.last_commit = self.clock() - began  # without a roll-up, which comes once in a while
        self.store.tell(happened)

    def adjust(self, amend: Callable[[Any], Any]) -> None:
        """Give the shedder another state, which is committed with the next batch."""
        self.state = replace(self.state, shedding=amend(self.state.shedding))

    def amend(
        self,
        queries: tuple[Query, ...],
        policy: Any,
        remade: Sequence[Report] | None,
        happened: Sequence[Event],
        began: float,
    ) -> None:
        """Commit a batch of no tuples after which other queries are served, or the placement's
        state is ``policy``.

        ``remade`` has every block's rows anew: a block that is left out is gone. None leaves all as
        they are. ``began`` is when that work did, by ``environment().clock``.
        """
        old, outcome = self.state, made(remade or ())
        self.store.present(outcome)
        state = replace(
            old,
            batch=old.batch + 1,
            policy=policy,
            queries=queries,
            last_received=(0,) * self.streams,
            harvested=None,
        )
        if queries != old.queries:  # a routing key is a rank among the queries' windows
            state = replace(state, key_counts=())
        if remade is not None:
            space = self.placement.keyspace(policy)
            keys = (space.first, space.end)
            blocks = {
                id: replace(step.sized(b, outcome.sizes), keys=keys)
                for id, b in old.blocks.items()
                if id in outcome.sizes
            }
            places = step.placed(blocks.values(), {}, outcome.places)
            named = step.named(places, {}, outcome.files)
            state = replace(state, blocks=blocks, places=places, files=named)
        after = step.amended(self.rules, old, state, outcome)
        snapshot, total = self.store.snapshot(state), environment().clock() - began
        seconds = split(total, source=0.0, planning=0.0, kernels=0.0, commit=0.0)
        self._commit(Step(state, (*happened, *after.events)), snapshot, {}, seconds, {})
        self.serve(queries)
