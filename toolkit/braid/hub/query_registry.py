"""Register queries, change the deployment and run batches of a hub, one at a time.

A change takes effect with its commit, an entry of the hub's log.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from braid.core import run_events
from braid.core.event_jsonl import log_events
from braid.core.touch_events import SettingChanged
from braid.errors import ExpressionError, LostTuples, PlanningError, QueryError
from braid.hub.flat_results import Texts, compensation_sql
from braid.hub.hub_backend import StreamReader
from braid.hub.hub_cost_model import SITE, make_cost_model
from braid.hub.hub_log import HubLog
from braid.hub.hub_settings import HubSettings
from braid.hub.hub_state import HubState, RegisteredQuery, ServingInterval
from braid.hub.query_completeness import (
    answered_tuples_sql,
    find_complete_since,
    find_final_time,
    find_missing_history,
)
from braid.hub.query_requests import AdmittedQuery, QueryReader
from braid.hub.recent_tuples import remove_lost_file
from braid.hub.reoptimizer import Reoptimizer
from braid.hub.running_operators import BuiltOperator, OperatorRuntime
from braid.papers.reuse import deployment_changes as pure
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import (
    DeployedQuery,
    Deployment,
    ReusedOperator,
    add_query,
    remove_queries,
)
from braid.papers.reuse.hub_events import (
    HistoryLost,
    OperatorBuilt,
    OperatorDropped,
    OperatorMoved,
    QueryEnded,
    QuerySubmitted,
)
from braid.papers.reuse.planner import Decision, Planner
from braid.papers.reuse.query_definition import INNER
from braid.storage.hub_files import operator_key
from braid.storage.run_store import RunStore
from braid.util.error_summary import take_first_line
from braid.util.file_system import current_file_system

T = TypeVar("T")


class QueryRegistry:
    """State of a hub, with all operations that change it, in the folder ``path``.

    Callers must not use it concurrently.
    """

    def __init__(
        self, store: RunStore, reader: StreamReader, settings: HubSettings, pace: float = 0.0
    ) -> None:
        """Open the hub in a store, or create it, with ``pace`` seconds from batch to batch."""
        self.path, self.reader, self.settings = store.path, reader, settings
        self.log = HubLog(store)
        self.query_reader = QueryReader(reader, settings.network is None)
        self.works = OperatorRuntime(store.path, reader, settings)
        self.reoptimizer = Reoptimizer(self)
        self._losses: list[run_events.Event] = []
        current_file_system().make_folder(self.works.history.folder)
        state = self.log.open_log()
        self.ledger = state or HubState(deployment=Deployment(dict(settings.stream_nodes)))
        if state is None:
            self.commit_change(self.ledger, [settings.describe_start([*reader.schemas], pace)])
            return
        self.works.open_operators(state, self.log.store.check_driver)
        self.log.remove_unnamed_files()
        if not state.is_closed and (before := self.log.find_pace()) != pace:
            self.commit_change(state, [SettingChanged(state.epoch + 1, "interval", before, pace)])

    @property
    def current_deployment(self) -> Deployment:
        """Deployed operators and queries."""
        return self.ledger.deployment

    def cost_model(self) -> CostModel:
        """Return the cost model for the current rates and the nodes that are up."""
        s = self.settings
        history, streams = self.works.history, self.reader.schemas
        return self._read_history(
            lambda: make_cost_model(s.network, s.rates, self.ledger, history, streams)
        )

    def _read_history(self, use: Callable[[], T]) -> T:
        """Call a function that reads history; repeat it without files that are lost.

        The loss is committed with the next change.
        """
        while True:
            try:
                return use()
            except LostTuples as lost:
                after = self.ledger.copy_mutable()
                remove_lost_file(after, lost)
                self.ledger, since = after, after.backfill_start[lost.stream]
                assert since is not None, "something is lost"
                where = lost.stream, lost.epoch
                self._losses.append(HistoryLost(after.epoch, *where, since, str(lost.error)))

    def make_planner(self) -> Planner:
        """Return a planner for the current state."""
        s = self.settings
        return Planner(self.cost_model(), s.reuse, fuse=True, parts=s.network is not None)

    def event_time_progress(self, streams: Sequence[str]) -> int | None:
        """Return the event time that all these streams have passed; None if one has not begun."""
        return self.ledger.event_time_progress(streams)

    # Queries.

    def admit_query(
        self, sql: str, name: str | None = None, sink: str | None = None, **more: Any
    ) -> AdmittedQuery:
        """Return a query that was parsed and checked. Raises QueryError if it is invalid."""
        if name is None:
            taken = {q.name for q in self.ledger.queries}
            name = next(f"q{n}" for n in range(1, len(taken) + 2) if f"q{n}" not in taken)
        if self.ledger.find_serving(name) is not None:
            raise QueryError(
                f"a query named {name!r} is being answered; withdraw it first, or choose another "
                "name"
            )
        new = self.query_reader.admit_query(sql, name, self._check_sink(sink), **more)
        progress = self.event_time_progress(new.query.definition.streams)
        if new.lifetime is not None and progress is not None:
            new = replace(new, parsed=replace(new.parsed, ends_at=progress + new.lifetime))
        return new

    def parse_query(
        self, sql: str, name: str, sink: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """Return the fields of ``RegisteredQuery`` that a query's arguments set.

        Raises QueryError if it is invalid.
        """
        new = self.query_reader.admit_query(sql, name, self._check_sink(sink), **more)
        fields = {"sql": new.parsed.sql, "windows": new.windows, "slide": new.slide}
        fields |= {"sink": new.parsed.sink, "lifetime": new.lifetime}
        return {field: msgspec.to_builtins(value) for field, value in fields.items()}

    def _check_sink(self, sink: str | None) -> str:
        network = self.settings.network
        if network is None:
            if sink is not None:
                raise QueryError(
                    f"the query is asked at {sink!r}; this hub has one site, no network"
                )
            return SITE
        sinks = [n.name for n in network.nodes if n.role in ("sink", "site")]
        if sink not in sinks:
            where = "is not said where" if sink is None else f"is asked at {sink!r}"
            raise QueryError(f"the query {where}; sink= must be one of {', '.join(sinks)}")
        return sink

    def plan_query(self, new: AdmittedQuery, old: Deployment | None = None) -> Decision:
        """Return the cheapest plan for a query, on the current deployment or on ``old``.

        Raises QueryError if there is no plan.
        """
        try:
            now = self.event_time_progress(new.parsed.definition.streams) or 0
            return self.make_planner().plan_query(old or self.current_deployment, new.parsed, now)
        except PlanningError as error:
            raise QueryError(str(error)) from None

    def check_queries(self, several: Sequence[AdmittedQuery]) -> None:
        """Raise ValueError if one of these queries, submitted in order, has no feasible plan."""
        then = self.current_deployment
        for new in several:
            then = add_query(then, new.parsed, self.plan_query(new, then).tree)
        texts = self.query_reader.selection_texts(self.ledger.queries, *(n.query for n in several))
        todo = pure.diff_deployments(self.current_deployment, then)
        self.works.check_buildable(todo.build, then, self.ledger, texts)

    def register_query(self, new: AdmittedQuery) -> RegisteredQuery:
        """Register a query that is answered from the next batch on."""
        began = clock.perf_counter()
        decision = self.plan_query(new)
        planned = clock.perf_counter()
        old, name = self.current_deployment, new.parsed.name
        after = add_query(old, new.parsed, decision.tree)
        streams = new.query.definition.streams
        served = RegisteredQuery(
            len(self.ledger.queries),
            name,
            new.parsed.sql,
            new.windows,
            new.slide,
            new.parsed.sink,
            _classify_reuse(old, new.parsed, decision),
            [],
            {},
            new.lifetime,
            self.event_time_progress(streams),
        )

        def describe_submission() -> QuerySubmitted:
            ended = clock.perf_counter()
            considered = tuple((c.description, c.extra_cost) for c in decision.alternatives)
            return QuerySubmitted(
                self.ledger.epoch,
                name,
                served.sql,
                served.sink,
                served.reuse_kind,
                after.queries[name].operator,
                decision.cost,
                considered,
                served.complete_since,
                planned - began,
                ended - planned,
            )

        self.switch_deployment(after, [], served, describe_submission, new)
        return served

    def withdraw_query(self, name: str, reason: str = "withdrawn") -> None:
        """Withdraw a query. Raises ValueError if no active query has this name."""
        if self.ledger.find_serving(name) is None:
            self.last_query(name)
            raise ValueError(f"query {name!r} has been withdrawn already")
        ended = QueryEnded(self.ledger.epoch, name, reason)
        self.switch_deployment(
            remove_queries(self.current_deployment, name), [ended], reasons={name: reason}
        )

    def count_waiting(self, queries: Iterable[RegisteredQuery]) -> dict[str, dict[str, int]]:
        """Return, by query and stream, the tuples that wait for an answer.

        Queries that answer no tuples by themselves, as they are inner joins, are left out.
        """
        spans = {q.name: q.serving_intervals[-1] for q in queries if q.serving_intervals}
        instances = self.works.instances
        by_query = {
            name: instances[span.operator].count_waiting(span.bit)
            for name, span in spans.items()
            if span.operator in instances
        }
        return {name: counts for name, counts in by_query.items() if counts}

    def last_query(self, name: str) -> RegisteredQuery:
        """Return the latest query of a name. Raises ValueError if there was none."""
        queries = [q for q in self.ledger.queries if q.name == name]
        if not queries:
            names = ", ".join(dict.fromkeys(q.name for q in self.ledger.queries)) or "none"
            raise ValueError(f"no query is named {name!r}; there are: {names}")
        return queries[-1]

    # Changes of the deployment.

    def migration_events(self, new: Deployment) -> list[run_events.Event]:
        """Return events for the operators that a new deployment moves with their state."""
        moves = pure.diff_deployments(self.current_deployment, new).move
        held = {id: self.works.instances[id].live_bytes for id, _, _ in moves}
        return [OperatorMoved(self.ledger.epoch, id, a, b, held[id]) for id, a, b in moves]

    def latest_event_time(self) -> int:
        """Return the latest event time of all clocks, in microseconds."""
        return max((t for t in self.ledger.clocks.values() if t is not None), default=0)

    def switch_deployment(
        self,
        new: Deployment,
        happened: Sequence[run_events.Event],
        served: RegisteredQuery | None = None,
        describe_submission: Callable[[], run_events.Event] | None = None,
        admitted: AdmittedQuery | None = None,
        reasons: Mapping[str, str] | None = None,
    ) -> None:
        """Build new operators, commit the deployment, then drop old operators."""
        old, todo = self.current_deployment, pure.diff_deployments(self.current_deployment, new)
        query = [] if admitted is None else [admitted.query]
        texts = self.query_reader.selection_texts(self.ledger.queries, *query)
        try:
            built = self._read_history(
                lambda: self.works.build_operators(todo.build, new, self.ledger, texts)
            )
        except ExpressionError as fault:
            raise QueryError(
                f"the query fails on tuples received so far: {take_first_line(fault.error)}"
            ) from None
        after = self.ledger.copy_mutable()
        after.deployment = new
        for rebuilt in pure.queries_reading(new, [operator.id for operator in todo.build]):
            self._limit_completeness(after, rebuilt)
        if served is not None:
            assert admitted is not None, "a new query was admitted"
            served.complete_since = find_complete_since(self.ledger, admitted.query.definition)
            after.queries.append(served)
        for name, reason in (reasons or {}).items():
            self._end_query(after, name, reason)
        self._update_serving_intervals(after, texts)
        after.set_pins({operator_key(*b.key): b.instance.pin_last_entry() for b in built})
        dropped = [OperatorDropped(after.epoch, *key) for key in todo.drop]
        last = [describe_submission()] if describe_submission else []
        happened = [*_make_build_events(built, after), *happened, *last, *dropped]
        self.commit_change(after, happened, built, [operator for operator, _ in todo.drop])
        self.reoptimizer.note_change(old, new, bool(served or reasons))

    def _limit_completeness(self, ledger: HubState, name: str) -> None:
        """Record from when a query's answers are complete if history lacks tuples it can use."""
        if (served := ledger.find_serving(name)) is None:
            return
        definition = ledger.deployment.queries[name].definition
        missing = find_missing_history(self.ledger, definition)
        for stream, floor in missing.items():
            before = served.complete_since.get(stream)
            served.complete_since[stream] = floor if before is None else max(before, floor)

    def _update_serving_intervals(self, ledger: HubState, texts: Texts) -> None:
        """Record which operators answer queries from the next batch on."""
        first, time = ledger.epoch + 1, self.reader.time
        for served in ledger.serving_queries:
            query = ledger.deployment.queries[served.name]
            operator = ledger.deployment.operators[query.operator]
            last = served.serving_intervals[-1] if served.serving_intervals else None
            key = operator.id, operator.version, query.bit
            if last is not None and (last.operator, last.version, last.bit) == key:
                continue
            if last is not None:
                last.end_epoch = first
            aged = any(isinstance(i, int) for i in operator.inputs)
            definition = operator.demand_results(query.bit)
            where = compensation_sql(definition, query.definition, texts, time, aged)
            if definition.kind != INNER:
                where = answered_tuples_sql(definition, served.complete_since, time)
            # A semi join writes a match in the batch after it was made.
            begins = first + (definition.kind == "semi" and ledger.epoch >= 0)
            served.serving_intervals.append(ServingInterval(*key, begins, None, where))

    def _end_query(self, ledger: HubState, name: str, reason: str) -> None:
        served = ledger.find_serving(name)
        assert served is not None
        served.end_time = find_final_time(ledger, served, self.query_reader.restore_query(served))
        served.end_epoch, served.end_reason = ledger.epoch + 1, reason
        served.serving_intervals[-1].end_epoch = served.end_epoch

    def commit_change(
        self,
        after: HubState,
        happened: Sequence[run_events.Event],
        built: Sequence[BuiltOperator] = (),
        dropped: Sequence[int] = (),
    ) -> None:
        """Commit a change with its events, start the operators built and stop those dropped."""
        happened = [*self._losses, *happened]
        self.log.append_state(after, happened)
        self.ledger, self._losses = after, []
        self.works.adopt_built(built, dropped)
        self.log.publish_events(happened)
        log_events(happened)


def _make_build_events(built: Iterable[BuiltOperator], ledger: HubState) -> Iterator[OperatorBuilt]:
    for each in built:
        spec = each.instance.spec
        operator = ledger.deployment.operators[spec.operator]
        where = zip(operator.definition.streams, operator.definition.selections, strict=True)
        yield OperatorBuilt(
            ledger.epoch,
            operator.id,
            operator.version,
            operator.node,
            operator.inputs,
            operator.definition.streams,
            {stream: w.to_sql for stream, w in where},
            len(operator.demands),
            (each.rows, each.bytes),
            each.seconds,
        )


def _classify_reuse(old: Deployment, query: DeployedQuery, decision: Decision) -> str:
    """Return how a query is answered; see ``HubQuery.reuse_kind``."""
    tree = decision.tree
    if isinstance(tree, ReusedOperator):
        held = old.operators[tree.operator].serving_demand(query.definition) is not None
        return "holds" if held else "relaxed"
    return "derived" if decision.reused_operators else "new"
