"""A running hub: batches come one after another; queries come and go, and operators change, between
two of them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pandas as pd

from braid.core.event_logging import LOGGER, log_events
from braid.core.events import RunEnded
from braid.core.plan import Block
from braid.health import RunHealth, read_health
from braid.hub import hub_metrics, operator_moves
from braid.hub.hub_batches import run_batch
from braid.hub.hub_settings import HubSettings
from braid.hub.hub_state import HubState
from braid.hub.query_answers import answer_query
from braid.hub.query_handle import HubQuery
from braid.hub.query_registry import QueryRegistry
from braid.hub.reuse_planning import explain_decision
from braid.hub.stream_reader import StreamReader
from braid.papers.reuse.deployment import Deployment
from braid.storage.block_files import close_block_files
from braid.storage.run_store import RunStore
from braid.util.durations import Span
from braid.util.environment import current_environment
from braid.util.error_summary import summarize_error
from braid.util.html_table import render_html_table
from braid.util.interruptible_wait import wait_interruptibly
from braid.util.worker_threads import current_workers

Windows = Mapping[str, Span] | Span | None


class HubRun:
    """A hub that runs, or has ended. All methods may be called from any thread; what changes
    queries or operators waits for the batch that is on its way, and is there after a restart.
    """

    def __init__(
        self,
        settings: HubSettings,
        store: RunStore,
        reader: StreamReader,
        trigger: Mapping[str, Any],
        queries: Mapping[str, str | Mapping[str, Any]],
        pace: float = 0.0,
    ) -> None:
        self.settings, self.store = settings, store
        self._pace, self._next_turn = pace, 0.0
        self._turn, self._gate = threading.RLock(), threading.Event()
        self._stopping = threading.Event()
        self._gate.set()
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self.seconds: list[float] = []
        """Wall-clock of each batch since this start, of reading, all operators and the commit."""
        self._desk = QueryRegistry(store.path, reader, settings, store.prepare_commit)
        if self.state.epoch < 0:
            self._submit_initial_queries(queries)
        self._query = reader.start_batches(self._run_batch, store.path, self.state.epoch, trigger)
        current_workers().start_thread("braid-hub", self._wait_and_release)

    def _submit_initial_queries(self, queries: Mapping[str, str | Mapping[str, Any]]) -> None:
        """Answer what is asked from the start, and is not there yet: a start may have been killed
        between two. All are refused if one is.
        """
        there = {q.name for q in self.state.queries}
        given = {
            name: {"sql": asked} if isinstance(asked, str) else dict(asked)
            for name, asked in queries.items()
            if name not in there
        }
        self._desk.check_queries(
            [self._desk.admit_query(name=name, **asked) for name, asked in given.items()]
        )
        for name, asked in given.items():
            self.submit(name=name, **asked)

    @property
    def state(self) -> HubState:
        """What the hub remembers."""
        return self._desk.ledger

    @property
    def deployment(self) -> Deployment:
        """What is deployed, as planners see it."""
        return self._desk.current_deployment

    @property
    def operators(self) -> dict[int, Any]:
        """The operators that are deployed, by id."""
        return dict(self.deployment.operators)

    def operator_blocks(self, operator: int) -> tuple[Block, ...]:
        """The live blocks of an operator that is deployed. Raises KeyError for another."""
        return tuple(self._desk.works.instances[operator].engine.state.blocks.values())

    def _run_batch(self, source: Any, epoch: int) -> None:
        """This is called for every micro-batch. An exception must reach the caller."""
        self._gate.wait()
        self._stopping.wait(max(0.0, self._next_turn - current_environment().read_clock()))
        self._next_turn = current_environment().read_clock() + self._pace
        with self._turn:
            if self._stopping.is_set():
                raise RuntimeError("the hub was stopped before this batch")
            began = current_environment().read_clock()
            try:
                self.store.start_checkpoint_sync()
                self.store.copied.check_files(epoch, deep=self._desk.reader.checks_input)
                self._join_batch(source, epoch)
            except Exception as error:
                self._error = error
                raise
            self.seconds.append(current_environment().read_clock() - began)

    def _join_batch(self, source: Any, epoch: int) -> None:
        run_batch(self._desk, source, epoch)

    def _wait_and_release(self) -> None:
        try:
            self._query.awaitTermination()
        except Exception as error:
            self._error = self._error or error
        try:
            self._wait_for_removals()
            with self._turn:
                self._append_end_event()
        finally:
            self.store.release_run()
            self._ended.set()

    def _wait_for_removals(self) -> None:
        """Wait until the block files that operators dropped are gone, however the hub ended."""
        for instance in [*self._desk.works.instances.values()]:
            try:
                instance.store.wait_for_removals()
            except Exception as error:
                self._error = self._error or error
            close_block_files(instance.store.blocks)

    def _append_end_event(self) -> None:
        """As the last event, which a start removes again: it is not of what was committed."""
        failure = self.exception()
        reason = "stopped" if self._stopping.is_set() else "failed" if failure else "completed"
        told = "" if failure is None else f"{type(failure).__name__}: {summarize_error(failure)}"
        ended = RunEnded(self.state.epoch, reason, told)
        log_events([ended])
        try:
            self._desk.event_log.append_events([ended])
        except OSError as error:
            LOGGER.error("the end of the hub is not in events.jsonl: %s", error)

    def health(self) -> RunHealth:
        """How the hub is, as ``braid health`` says it to other processes: printed, a line; and as
        JSON or Prometheus's text.
        """
        return read_health(self.store.path)

    # Queries.

    @property
    def queries(self) -> dict[str, HubQuery]:
        """The queries that are answered now, by name."""
        return {q.name: HubQuery(self, q.number) for q in self.state.serving_queries}

    def query(self, name: str) -> HubQuery:
        """A query that is or was answered, the last one of that name. Raises ValueError if there
        was none.
        """
        return HubQuery(self, self._desk.last_query(name).number)

    def submit(
        self,
        sql: str,
        name: str | None = None,
        windows: Windows = None,
        slide: Span | None = None,
        sink: str | None = None,
        lifetime: Span | None = None,
    ) -> HubQuery:
        """Answer one more query from the next batch on.

        Parameters
        ----------
        sql
            Spark SQL, with windows as in ``FROM flights [RANGE 5 MINUTES SLIDE 1 MINUTE] f``.
        name
            What it is called; left out: q1, q2, ...
        windows, slide
            For a query without brackets: one window for all streams, or one for each by alias; how
            often it is answered.
        sink
            The node that asks, in a hub on a network.
        lifetime
            How long it is answered, in event time; left out: until it is withdrawn.

        Raises ValueError, with one sentence, for a query that is not taken; nothing has changed
        then.
        """
        with self._turn:
            self._check_active()
            new = self._desk.admit_query(
                sql, name, sink, windows=windows, slide=slide, lifetime=lifetime
            )
            return HubQuery(self, self._desk.register_query(new).number)

    def explain(
        self,
        sql: str,
        windows: Windows = None,
        slide: Span | None = None,
        sink: str | None = None,
        lifetime: Span | None = None,
    ) -> str:
        """What would be done for a query, and what was considered; nothing changes."""
        with self._turn:
            new = self._desk.admit_query(
                sql, sink=sink, windows=windows, slide=slide, lifetime=lifetime
            )
            decision = self._desk.plan_query(new)
            site = self.settings.network is None
            return "\n".join(
                explain_decision(self.deployment, new.parsed.definition, decision, site)
            )

    def withdraw(self, name: str) -> None:
        """Answer a query no longer. Raises ValueError when none of that name is answered."""
        with self._turn:
            self._check_active()
            self._desk.withdraw_query(name)

    def query_results(self, number: int | str) -> Any:
        """What a query was told so far; see ``HubQuery.results``."""
        with self._turn:
            if isinstance(number, str):
                number = self._desk.last_query(number).number
            served = self.state.queries[number]
            return answer_query(self._desk, served)

    # Operators.

    def move_operator(self, operator: int, node: str) -> None:
        """Have an operator go on at another node, with its state. Raises ValueError for one that
        is not there, and for a node that is down, or where operators cannot be.
        """
        with self._turn:
            self._check_active()
            operator_moves.move_operator(self._desk, operator, node)

    def fail_node(self, node: str) -> None:
        """Take a node for down, and the state of its operators for lost: what they answer is
        planned anew without it, and built from history. Nothing is lost or told twice.

        Raises ValueError for a node that streams or queries need.
        """
        with self._turn:
            self._check_active()
            operator_moves.fail_node(self._desk, node)

    def restore_node(self, node: str) -> None:
        """Take a node for up again; nothing moves until something is planned."""
        with self._turn:
            self._check_active()
            operator_moves.restore_node(self._desk, node)

    def replan(self, dry: bool = False) -> operator_moves.ReplanResult:
        """Plan all queries anew, and adopt that if it saves more than it costs. ``dry``: only tell
        what it would be.
        """
        with self._turn:
            self._check_active()
            return operator_moves.replan_queries(self._desk, dry)

    # What happened.

    def events(self, since: int = 0) -> list[Any]:
        """What happened, in order, from event number ``since`` on."""
        return self._desk.event_log.read_since(since)

    def metrics(self) -> pd.DataFrame:
        """One row per operator and batch of it: tuples received, pairs compared, results, tuples
        and bytes held, and seconds; counted. Operators that are gone are told too.
        """
        return hub_metrics.metrics_table(self.store.path)

    def network_flows(self) -> pd.DataFrame:
        """What went over the network, counted: rows and bytes by batch and flow."""
        return hub_metrics.flows_table(self.events())

    def link_traffic(self) -> pd.DataFrame:
        """Bytes on each link by batch, counted: every flow on its shortest path."""
        return hub_metrics.link_traffic_table(self.events())

    def network_costs(self) -> pd.DataFrame:
        """By batch, bytes times the latency that they had, counted, and the network usage that is
        modelled of what was deployed. Two figures: they have no unit in common.
        """
        return hub_metrics.costs_table(self.events())

    # Its life.

    def pause(self) -> None:
        """Hold the hub before its next batch."""
        self._gate.clear()

    def unpause(self) -> None:
        """Let a paused hub go on."""
        self._gate.set()

    def stop(self) -> None:
        """Stop within one batch; one that is on its way is done again when the hub is resumed."""
        if self.isActive:
            self._stopping.set()
            self._gate.set()
            self._query.stop()
            wait_interruptibly(self._ended)

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most ``timeout`` seconds; raises what made the hub fail. Returns
        whether it has ended.
        """
        ended = wait_interruptibly(self._ended, timeout)
        if ended and (error := self.exception()) is not None:
            raise error
        return ended

    @property
    def spark_query(self) -> Any:
        """Spark's own handle of the streaming query; of tables, the thread that stands for it."""
        return self._query

    @property
    def isActive(self) -> bool:
        """Whether the hub goes on."""
        return not self._ended.is_set()

    @property
    def isPaused(self) -> bool:
        """Whether the hub is held before its next batch."""
        return self.isActive and not self._gate.is_set()

    def exception(self) -> BaseException | None:
        """What made the hub fail; None while it runs and when it ended well or was stopped."""
        if self._stopping.is_set():
            return None
        found: BaseException | None = self._error or self._query.exception()
        return found

    def _check_active(self) -> None:
        if self._ended.is_set():
            raise RuntimeError("the hub has ended; start it again to change what it answers")

    def __repr__(self) -> str:
        described = self.state.describe_irregular()
        irregular = f" ({described})" if described else ""
        return (
            f"HubRun({', '.join(self._desk.reader.schemas)}: {len(self.queries)} queries on "
            f"{len(self.operators)} operators, {self.state.epoch + 1} batches{irregular}, in "
            f"{str(self.store.path)!r})"
        )

    def _repr_html_(self) -> str:
        rows = [(q.name, repr(q)) for q in self.queries.values()]
        return render_html_table(f"HubRun in {self.store.path}", tuple(rows))
