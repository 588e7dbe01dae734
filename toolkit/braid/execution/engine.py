"""One batch: compaction, plan, execution, commit. It knows no placement and no Spark.

The driver plans from block metadata, an executor moves and joins tuples, and files hold the state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from braid.condition.predicate import with_windows
from braid.core import batch_step, due_answers
from braid.core.answer_ledger import check_all_answered
from braid.core.answer_state import split_mark_key
from braid.core.answers import list_block_births, list_needed_births
from braid.core.asof_releases import RIGHT
from braid.core.batch_history import split_batch_seconds
from braid.core.batch_report import BatchReport, TaskReport, merge_replica_reports, merge_reports
from braid.core.batch_step import BatchStep
from braid.core.batch_work import BatchWork, RunRules
from braid.core.changed_queries import change_state
from braid.core.horizon import reach_of_windows
from braid.core.irregular_rows import IrregularFile, IrregularRowsWritten
from braid.core.placement import Placement, Shedder
from braid.core.query import Query, longest_windows, unite_kinds
from braid.core.run_events import BatchCommitted, Event
from braid.core.run_state import FileChecksum, RunState
from braid.execution.early_answers import make_early_batch
from braid.execution.early_rows import list_early_rows
from braid.execution.executor_choice import ExecutionResult
from braid.execution.executors import Executor
from braid.execution.pending_touches import PendingTouches
from braid.execution.traced_rows import add_trace
from braid.kernels.join_spec import BatchSpec, JoinSpec
from braid.kernels.query_bitmaps import QueryBitmaps
from braid.storage.log_entries import FileRef
from braid.storage.run_store import RunStore
from braid.util.clock_and_threads import current_environment
from braid.util.garbage_collection import pause_garbage_collection


class Engine:
    """Batch loop of one join against one store.

    Parameters
    ----------
    spec
        Constant settings of the join. Its predicate has no windows if it serves many queries.
    placement
        Policy that decides which host stores and probes which block.
    store
        Folder of the run.
    lateness
        Maximum delay by stream, in microseconds.
    check
        Verify before each batch that its plan meets every pair exactly once.
    publish
        Called with the events of each committed batch.
    executor
        Runs the tasks. It may choose another way from batch to batch.
    queries
        Queries of a new run that serves many. Default: none.
    shedder
        Load shedder. Default: none.
    clock
        Returns seconds. Default: the clock of the environment.
    ahead
        How far a single tuple may advance a clock, in microseconds; see RunRules.
    last_epochs
        By stream, the micro-batch with its last tuple; see RunRules.
    timeless
        Streams without event time.
    idle
        How far a clock may be behind another's, in microseconds; see RunRules.
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
        last_epochs: tuple[int | None, ...] = (),
        timeless: tuple[int, ...] = (),
        idle: int | None = None,
    ) -> None:
        self.shedder, self.clock = shedder, clock or current_environment().read_clock
        self.make_empty_batch: Callable[[], Any] = dict  # a task takes tuples by stream
        self._nothing: Any = None
        self.touches = PendingTouches()
        self.committing = self.last_commit = self.last_delivery = 0.0
        self.alone = replace(spec, fsync=store.force)
        self.placement, self.store = placement, store
        self.lateness, self.ahead = tuple(lateness), ahead
        self.last_epochs, self.timeless, self.idle = last_epochs, timeless, idle
        self.publish, self.executor = publish, executor
        self.streams, self.check = len(spec.columns), check
        if not store.archive.has_begun:
            store.log_opening_events()
        shedding = None if shedder is None else shedder.initial_state(self.streams)
        first = RunState.initial(
            self.streams, placement.initial_state(self.streams), queries, shedding
        )
        kind = object if shedder is None else shedder.State
        self.state = store.last_state(placement.State, kind) or first
        self.set_queries(self.state.queries)

    def set_queries(self, queries: tuple[Query, ...]) -> None:
        """Join for these queries from now on, in the longest of their windows."""
        self.spec, self.bitmaps = self.alone, None
        if queries:
            windows = longest_windows(queries)
            self.spec = replace(
                self.alone,
                predicate=with_windows(self.alone.predicate, windows),
                reach=reach_of_windows(windows),
                kind=unite_kinds(queries),
            )
            self.bitmaps = QueryBitmaps.from_queries(queries)
        self.rules = RunRules(
            self.placement,
            self.spec.predicate.aliases,
            self.spec.reach,
            self.lateness,
            self.ahead,
            self.check,
            self.shedder,
            tuple(part.text for part in self.spec.predicate.parts),
            self.last_epochs,
            self.timeless,
            self.idle,
            self.spec.kind,
            self.spec.match,
        )

    def run_batch(
        self, frame: Any, epoch: int, seen: Callable[[], Sequence[int | None]] = tuple
    ) -> None:
        """Execute and commit micro-batch ``epoch`` of the streams' union unless it is committed.

        ``seen``: called after execution; returns the clock by stream, in microseconds, or () if
        ``frame`` determines it. Event time also advances with tuples that no query selects. The
        clock of a stream of results does not run ahead of the streams it is made of.

        Raises RuntimeError if the previous micro-batch is not committed.
        """
        if epoch > self.state.epoch + 1:
            raise RuntimeError(
                f"micro-batch {epoch} has arrived, but the run in {self.store.where} has committed "
                f"only up to {self.state.epoch}; the ones between would be lost"
            )
        if epoch > self.state.epoch:
            with self.store.raise_if_superseded():
                self._execute_and_commit(frame, epoch, seen)

    def drain(self, nothing: Callable[[], Any], stopped: Callable[[], bool]) -> None:
        """Run empty batches at the end of the input until no migration has pending pairs.

        If all streams have ended, all tuples that wait are answered, too. ``nothing`` makes an
        empty frame; ``stopped`` ends the loop early. Raises CoverageError if plans are checked and
        all streams have ended, but some tuples are not answered.
        """
        frame = None
        while self.needs_closing_batch() and not stopped():
            frame = nothing() if frame is None else frame
            self.run_empty_batch(frame)
        if self.check and all(self.state.ended) and not stopped():
            check_all_answered(self.rules.kind, self.rules.streams, self.state)

    def close(self, nothing: Callable[[], Any]) -> None:
        """End all streams, and answer what waits for them in batches without tuples.

        ``nothing`` makes an empty frame. Raises RuntimeError, and closes nothing, if it fails.
        """
        self.drain(nothing, lambda: False)
        self.end_streams(nothing())
        self.drain(nothing, lambda: False)

    def end_streams(self, nothing: Any) -> None:
        """Execute and commit a batch without tuples, ``nothing``, before which all streams end.

        Nothing ends if it fails.
        """
        going_on = self.state
        self.state = replace(going_on, ended=(True,) * self.streams, is_closed=True)
        try:
            self.run_empty_batch(nothing)
        except BaseException:
            self.state = going_on
            raise

    def needs_closing_batch(self) -> bool:
        """Return whether a batch without tuples is needed at the end of the input."""
        return due_answers.needs_closing_batch(self.rules, self.state)

    def has_due_answers(self) -> bool:
        """Return whether a batch without tuples would answer some of those that wait."""
        return due_answers.has_due_answers(self.rules, self.state)

    def run_empty_batch(self, nothing: Any) -> None:
        """Execute and commit a batch without tuples, ``nothing``, between two of the source."""
        with self.store.raise_if_superseded():
            self._execute_and_commit(nothing, self.state.epoch, tuple)

    @pause_garbage_collection()
    def _execute_and_commit(
        self, frame: Any, epoch: int, seen: Callable[[], Sequence[int | None]]
    ) -> None:
        began = self.clock()
        self.store.checkpoint.start_sync()
        run = self.execute_without_tuples
        touched = self.touches.apply_to_state(self.spec, self.placement, self.state, run)
        self.store.check_reported_files(touched.report)
        self.state = touched.state
        work = batch_step.plan_batch(self.rules, self.state)
        planned = self.clock()
        done, outcome = self._execute_batch(frame, self._make_batch_spec(work))
        if self.spec.kind.is_early:
            outcome = self._add_early_answers(work, done, outcome)
        executed = self.clock()
        touched.add_work(outcome)
        self._note_turn_seconds(outcome, executed - began + self.committing + self.last_commit)
        after = batch_step.commit_batch(self.rules, self.state, work, outcome, epoch, seen())
        after = touched.add_events(self._name_irregular_rows(after, work, outcome))
        after = add_trace(after, self.store, work, outcome, self.last_epochs)
        snapshot = self.store.states.write_state(after.state)
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
            "disk_free": self.store.blocks.measure_free_share(),
        }
        results = {name: outcome.files[name] for name in outcome.results}
        self._commit_batch(after, snapshot, results, seconds, took)

    def execute_without_tuples(self, batch: BatchSpec) -> Sequence[TaskReport]:
        """Execute work on stored blocks, and return the reports of its tasks."""
        self._nothing = self._nothing or self.make_empty_batch()
        return self.executor.execute_batch(self._nothing, batch).reports

    def _execute_batch(self, frame: Any, batch: BatchSpec) -> tuple[ExecutionResult, BatchReport]:
        """Execute a batch and merge the reports of its tasks."""
        done = self.executor.execute_batch(frame, batch)
        outcome = merge_reports(done.reports, self.streams)
        self.store.check_reported_files(outcome)
        if outcome.marks or outcome.merged_marks:
            keeps_new = self.spec.kind.keeps_new_matches
            self.store.bitmaps.write_changed(self.state, outcome, keeps_new)
        return done, outcome

    def _add_early_answers(
        self, work: BatchWork, done: ExecutionResult, outcome: BatchReport
    ) -> BatchReport:
        """Return the report of a batch with its early answers: all tasks tell what matched."""
        after = batch_step.commit_batch(self.rules, self.state, work, outcome).state
        keys = self.placement.key_space(work.plan.state)
        if (batch := make_early_batch(self.spec, after, keys)) is None:
            return outcome
        merged = merge_reports([*done.reports, *self.execute_without_tuples(batch)], self.streams)
        self.store.check_reported_files(merged)
        return replace(merged, matched=outcome.matched, files=outcome.files | merged.files)

    def _name_irregular_rows(
        self, after: BatchStep, work: BatchWork, outcome: BatchReport
    ) -> BatchStep:
        """Write the rows too far ahead of the new clocks, and name all files of irregular rows."""
        files = [IrregularFile(name, outcome.files[name]) for name in outcome.irregular]
        state, ahead = after.state, self.rules.ahead
        limits = [None if at is None or ahead is None else at + ahead for at in state.clocks]
        fresh = [route.block for route in work.plan.routes if route.is_fresh]
        early = list_early_rows(fresh, outcome.block_sizes, limits, self.spec.columns)
        files += [self.store.irregular.write_early_rows(state.batch, *rows) for rows in early]
        if not files:
            return after
        written = IrregularRowsWritten(state.batch, tuple(files))
        return after._replace(events=(*after.events[:-1], written, after.events[-1]))

    def _note_turn_seconds(self, outcome: BatchReport, turn: float) -> None:
        """Record the seconds of this batch and of the last commit for load shedding."""
        if outcome.shedding is not None:
            outcome.shedding = replace(outcome.shedding, seconds=turn)

    def _make_batch_spec(self, work: BatchWork) -> BatchSpec:
        answers, plan = self.state.answers, work.combined_plan
        births = {} if self.spec.kind.is_inner else list_block_births(answers, plan)
        needed = list_needed_births(births, (*work.settles, *work.findings), plan)
        return BatchSpec(
            spec=self.spec,
            batch=work.facts.batch,
            key_space=self.placement.key_space(work.plan.state),
            routes=work.plan.routes,
            derivations=work.combined_plan.derivations,
            replica_addresses=self.state.replica_addresses,
            horizons=work.horizons,
            block_ages=work.block_ages,
            clocks=self.state.clocks,
            ahead=self.rules.ahead,
            bitmaps=self.bitmaps and replace(self.bitmaps, horizons=work.query_horizons),
            query_lows={bit: each.low for bit, each in self.state.query_releases.items()},
            shedding=work.plan.shedding,
            block_sizes=work.find_source_bytes(self.state.blocks),
            files=self.state.block_files,
            settles=work.settles,
            findings=work.findings,
            births=births,
            matched={
                key: bitmap
                for key, bitmap in answers.matched.items()
                if split_mark_key(key, bool(self.state.queries))[0] in needed
            },
            held=answers.held,
            releases=work.releases,
            low=self.state.releases.low,
            next_low=work.release_state.low,
        )

    def _commit_batch(
        self,
        after: BatchStep,
        snapshot: FileRef,
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
                previous_sink_seconds=self.last_delivery,
                **took,
            )
        )
        began = self.clock()
        self.store.commit_batch(after.state.batch, snapshot, results, happened)
        self.store.remove_old_files(after.state, snapshot)
        self.state = after.state
        self.publish(happened)
        self.last_commit = self.clock() - began  # without a checkpoint, which is rare
        self.store.log_events(happened)

    def set_placement(self, placement: Placement) -> None:
        """Plan with other settings of the placement from the next batch on."""
        self.placement = placement
        self.set_queries(self.state.queries)

    def amend_shedder(self, amend: Callable[[Any], Any]) -> None:
        """Change the state of the shedder. The new state is committed with the next batch."""
        self.state = replace(self.state, shedder_state=amend(self.state.shedder_state))

    def commit_change(
        self,
        queries: tuple[Query, ...],
        policy: Any,
        remade: Sequence[TaskReport] | None,
        happened: Sequence[Event],
        began: float,
    ) -> None:
        """Commit a batch without tuples that changes the queries or the state of the placement.

        - ``policy``: new state of the placement.
        - ``remade``: reports of the rewritten replicas. A block without a report is dropped. None:
          all blocks stay as they are.
        - ``began``: when the change began, by ``current_environment().read_clock``.
        """
        old, outcome = self.state, merge_replica_reports(remade or ())
        self.store.check_reported_files(outcome)
        space = self.placement.key_space(policy)
        rewritten = None if remade is None else outcome
        keys = space.first, space.key_end
        low = self.rules.find_state_watermarks(old)[RIGHT]
        state = change_state(old, queries, policy, rewritten, keys, low)
        after = batch_step.commit_amendment(self.rules, old, state, outcome)
        snapshot = self.store.states.write_state(state)
        total = current_environment().read_clock() - began
        seconds = split_batch_seconds(total, source=0.0, planning=0.0, kernels=0.0, commit=0.0)
        self._commit_batch(BatchStep(state, (*happened, *after.events)), snapshot, {}, seconds, {})
        self.set_queries(queries)
