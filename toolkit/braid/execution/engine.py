"""The batch loop's one turn: compaction, plan, execute, commit.

The driver decides from block facts, an executor moves and joins, files hold the state. Nothing here
knows a policy or Spark, and nothing in a policy knows Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from braid.condition.predicate import with_windows
from braid.core import batch_step
from braid.core.batch_phases import split_batch_seconds
from braid.core.batch_report import BatchReport, TaskReport, merge_replica_reports, merge_reports
from braid.core.batch_step import BatchStep, BatchWork, RunRules
from braid.core.events import BatchCommitted, Event
from braid.core.placement import Placement
from braid.core.query import Query, longest_windows
from braid.core.run_state import FileChecksum, RunState
from braid.core.shedding_policy import Shedder
from braid.execution.executor_choice import ExecutionResult
from braid.execution.executors import Executor
from braid.kernels.join_spec import BatchSpec, JoinSpec
from braid.kernels.query_bitmaps import QueryBitmaps
from braid.storage.log_entries import Named
from braid.storage.run_store import RunStore
from braid.util.environment import current_environment


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
        store: RunStore,
        lateness: Sequence[int],
        check: bool,
        publish: Callable[[list[Any]], None],
        executor: Executor,
        queries: tuple[Query, ...] = (),
        shedder: Shedder | None = None,
        clock: Callable[[], float] | None = None,
        ahead: int | None = None,
    ) -> None:
        self.shedder, self.clock = shedder, clock or current_environment().read_clock
        self.committing = self.last_commit = 0.0
        self.alone = replace(spec, fsync=store.force)
        self.placement, self.store = placement, store
        self.lateness, self.ahead = tuple(lateness), ahead
        self.publish, self.executor = publish, executor
        self.streams, self.check = len(spec.columns), check
        if not store.begun:
            store.log_opening_events()
        shedding = None if shedder is None else shedder.initial_state(self.streams)
        first = RunState.initial(
            self.streams, placement.initial_state(self.streams), queries, shedding
        )
        kind = object if shedder is None else shedder.State
        self.state = store.last_state(placement.State, kind) or first
        self.set_queries(self.state.queries)

    def set_queries(self, queries: tuple[Query, ...]) -> None:
        """Join for these queries from now on: in the longest of their windows."""
        self.spec, self.bitmaps = self.alone, None
        if queries:
            windows = longest_windows(queries)
            self.spec = replace(
                self.alone, predicate=with_windows(self.alone.predicate, windows), windows=windows
            )
            self.bitmaps = QueryBitmaps.from_queries(queries)
        self.rules = RunRules(
            self.placement,
            self.spec.predicate.aliases,
            self.spec.windows,
            self.lateness,
            self.ahead,
            self.check,
            self.shedder,
        )

    def run_batch(
        self, frame: Any, epoch: int, seen: Callable[[], Sequence[int | None]] = tuple
    ) -> None:
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
            with self.store.raise_if_superseded():
                self._execute_and_commit(frame, epoch, seen)

    def drain(self, nothing: Callable[[], Any], stopped: Callable[[], bool]) -> None:
        """At the end of the input, run batches of no tuples, which ``nothing`` makes, until no
        migration owes results.
        """
        frame = None
        while self.placement.has_pending_pairs(self.state.placement_state) and not stopped():
            frame = nothing() if frame is None else frame
            with self.store.raise_if_superseded():
                self._execute_and_commit(frame, self.state.epoch, tuple)

    def _execute_and_commit(
        self, frame: Any, epoch: int, seen: Callable[[], Sequence[int | None]]
    ) -> None:
        began = self.clock()
        self.store.start_checkpoint_sync()
        work = batch_step.plan_batch(self.rules, self.state)
        planned = self.clock()
        done, outcome = self._execute_batch(frame, self._make_batch_spec(work))
        executed = self.clock()
        self._note_turn_seconds(outcome, executed - began + self.committing + self.last_commit)
        after = batch_step.commit_batch(self.rules, self.state, work, outcome, epoch, seen())
        snapshot = self.store.write_state(after.state)
        ended = self.clock()
        self.committing = ended - executed
        seconds = split_batch_seconds(
            ended - began,
            outcome.source_seconds,
            planned - began,
            outcome.kernel_seconds,
            ended - executed,
        )
        took = {
            "executor": done.choice.executor,
            "executor_reason": done.choice.reason,
            "announced_bytes": done.announced_bytes,
            "source_bytes": max(done.received_bytes, outcome.source_bytes),
            "task_count": outcome.tasks,
            "parallelism": done.parallelism,
        }
        results = {name: outcome.files[name] for name in outcome.results}
        self._commit_batch(after, snapshot, results, seconds, took)

    def _execute_batch(self, frame: Any, batch: BatchSpec) -> tuple[ExecutionResult, BatchReport]:
        """Carry a batch out."""
        done = self.executor.execute_batch(frame, batch)
        outcome = merge_reports(done.reports, self.streams)
        self.store.check_reported_files(outcome)
        return done, outcome

    def _note_turn_seconds(self, outcome: BatchReport, turn: float) -> None:
        """Note what the turn took, for the next plan: up to the commit, and the last commit."""
        if outcome.shedding is not None:
            outcome.shedding = replace(outcome.shedding, seconds=turn)

    def _make_batch_spec(self, work: BatchWork) -> BatchSpec:
        return BatchSpec(
            spec=self.spec,
            batch=work.facts.batch,
            key_space=self.placement.key_space(work.plan.state),
            routes=work.plan.routes,
            derivations=work.combined_plan.derivations,
            replica_addresses=self.state.replica_addresses,
            watermarks=work.facts.watermarks,
            block_ages=work.block_ages,
            clocks=self.state.clocks,
            ahead=self.rules.ahead,
            bitmaps=self.bitmaps,
            shedding=work.plan.shedding,
            block_sizes=self._derivation_source_bytes(work),
            files=self.state.block_files,
        )

    def _derivation_source_bytes(self, work: BatchWork) -> dict[int, int]:
        """The bytes of the blocks that derivations read, which may be derived themselves."""
        derived = {d.block.id: d.block for d in work.combined_plan.derivations}
        known = {**self.state.blocks, **derived}
        return {
            s: known[s].size_bytes
            for d in work.combined_plan.derivations
            for s in d.source_blocks
            if s in known
        }

    def _commit_batch(
        self,
        after: BatchStep,
        snapshot: Named,
        results: Mapping[str, FileChecksum],
        seconds: Mapping[str, float],
        took: Mapping[str, Any],
    ) -> None:
        *happened, committed = after.events
        assert isinstance(committed, BatchCommitted)
        happened.append(
            replace(
                committed,
                seconds_by_phase=seconds,
                previous_commit_seconds=self.last_commit,
                **took,
            )
        )
        began = self.clock()
        self.store.commit_batch(after.state.batch, snapshot, results, happened)
        self.store.remove_old_files(after.state, snapshot)
        self.state = after.state
        self.publish(happened)
        self.last_commit = self.clock() - began  # without a roll-up, which comes once in a while
        self.store.log_events(happened)

    def amend_shedder(self, amend: Callable[[Any], Any]) -> None:
        """Give the shedder another state, which is committed with the next batch."""
        self.state = replace(self.state, shedder_state=amend(self.state.shedder_state))

    def commit_change(
        self,
        queries: tuple[Query, ...],
        policy: Any,
        remade: Sequence[TaskReport] | None,
        happened: Sequence[Event],
        began: float,
    ) -> None:
        """Commit a batch of no tuples after which other queries are served, or the placement's
        state is ``policy``.

        ``remade`` has every block's rows anew: a block that is left out is gone. None leaves all as
        they are. ``began`` is when that work did, by ``environment().clock``.
        """
        old, outcome = self.state, merge_replica_reports(remade or ())
        self.store.check_reported_files(outcome)
        state = replace(
            old,
            batch=old.batch + 1,
            placement_state=policy,
            queries=queries,
            previous_received=(0,) * self.streams,
            last_shedding=None,
        )
        if queries != old.queries:  # a routing key is a rank among the queries' windows
            state = replace(state, key_counts=())
        if remade is not None:
            space = self.placement.key_space(policy)
            keys = (space.first, space.key_end)
            blocks = {
                id: replace(batch_step.with_reported_size(b, outcome.block_sizes), key_range=keys)
                for id, b in old.blocks.items()
                if id in outcome.block_sizes
            }
            places = batch_step.locate_replicas(blocks.values(), {}, outcome.replica_addresses)
            named = batch_step.referenced_files(places, {}, outcome.files)
            state = replace(state, blocks=blocks, replica_addresses=places, block_files=named)
        after = batch_step.commit_amendment(self.rules, old, state, outcome)
        snapshot, total = self.store.write_state(state), current_environment().read_clock() - began
        seconds = split_batch_seconds(total, source=0.0, planning=0.0, kernels=0.0, commit=0.0)
        self._commit_batch(BatchStep(state, (*happened, *after.events)), snapshot, {}, seconds, {})
        self.set_queries(queries)
