"""HubRun: a running hub, whose queries and operators can change between batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from braid.batch_sink import BatchSink, Give
from braid.core.plan import Block
from braid.hub import hub_metrics, operator_moves
from braid.hub.batch_answers import BatchAnswers
from braid.hub.hub_backend import StreamReader
from braid.hub.hub_batch_loop import HubBatchLoop
from braid.hub.hub_cost_model import explain_decision
from braid.hub.hub_settings import HubSettings
from braid.hub.query_answers import answer_query, read_last_rows
from braid.hub.query_handle import HubQuery
from braid.hub.query_registry import QueryRegistry
from braid.papers.reuse.deployment import Deployment
from braid.sources.batch_drivers import BatchThread
from braid.storage.run_store import RunStore, open_store
from braid.util.durations import Span
from braid.util.html_table import render_html_table

if TYPE_CHECKING:
    from braid.result_explanation import Why
    from braid.row_selectors import Selector
    from braid.util.row_tables import RowTable

Windows = Mapping[str, Span] | Span | None


class HubRun(HubBatchLoop):
    """A hub that is running or has ended.

    All methods are thread-safe. A change of queries or operators waits for the current batch, and
    survives a restart. ``RunLifecycle`` has the methods that every run has, such as ``stop``.
    """

    def __init__(
        self,
        settings: HubSettings,
        store: RunStore,
        reader: StreamReader,
        trigger: Mapping[str, Any],
        queries: Mapping[str, str | Mapping[str, Any]],
        pace: float = 0.0,
        give: Give | None = None,
    ) -> None:
        super().__init__(store, pace, QueryRegistry(store, reader, settings, pace))
        self.settings = settings
        answers = BatchAnswers(self._registry)
        self._sink = None if give is None else BatchSink(give, store, answers.read_batch)
        if self.state.epoch < 0:
            self._submit_initial_queries(queries)
        else:
            self._check_initial_queries(queries)
        if self.state.is_closed:  # its answers can be read, and delivered if they were not
            self._start_batches(BatchThread(range(0), self._stopping.is_set))
            return
        done = self.state.micro_batch
        self._start_batches(reader.make_driver(store.path, done, trigger, self._stopping.is_set))
        self._start_watch()

    def _submit_initial_queries(self, queries: Mapping[str, str | Mapping[str, Any]]) -> None:
        """Submit the initial queries that are not registered yet: all of them, or none.

        A start that was killed may have registered some of them.
        """
        there = {q.name for q in self.state.queries}
        given = {
            name: {"sql": arguments} if isinstance(arguments, str) else dict(arguments)
            for name, arguments in queries.items()
            if name not in there
        }
        self._registry.check_queries(
            [
                self._registry.admit_query(name=name, **arguments)
                for name, arguments in given.items()
            ]
        )
        for name, arguments in given.items():
            self.submit(name=name, **arguments)

    def _check_initial_queries(self, queries: Mapping[str, str | Mapping[str, Any]]) -> None:
        """Raise ValueError unless the hub in the folder has been asked these queries.

        They may have ended since.
        """
        there = {q.name: q for q in self.state.queries}
        for name, given in queries.items():
            arguments = {"sql": given} if isinstance(given, str) else dict(given)
            here = self._registry.parse_query(name=name, **arguments)
            if name not in there:
                raise ValueError(
                    f"{self.store.path} holds a hub that has not been asked query {name!r}; start "
                    "it without the query, then submit it to the running hub"
                )
            for field, value in here.items():
                if (before := getattr(there[name], field)) != value:
                    raise ValueError(
                        f"{self.store.path} holds a hub with another query {name!r}: {field} is "
                        f"{before!r} there and {value!r} here; use another name or a new folder"
                    )

    @property
    def deployment(self) -> Deployment:
        """Deployed operators and queries, as planners see them."""
        return self._registry.current_deployment

    @property
    def operators(self) -> dict[int, Any]:
        """Deployed operators, by id."""
        return dict(self.deployment.operators)

    def operator_blocks(self, operator: int) -> tuple[Block, ...]:
        """Return the live blocks of an operator. Raises ValueError if it is not deployed."""
        operator_moves.check_operator(self._registry, operator)
        return tuple(self._registry.works.instances[operator].engine.state.blocks.values())

    # Queries.

    @property
    def queries(self) -> dict[str, HubQuery]:
        """Queries that are answered now, by name."""
        return {q.name: HubQuery(self, q.number) for q in self.state.serving_queries}

    def query(self, name: str) -> HubQuery:
        """Return the latest query of this name, whether active or ended.

        Raises ValueError if there was none.
        """
        return HubQuery(self, self._registry.last_query(name).number)

    def submit(
        self,
        sql: str,
        name: str | None = None,
        windows: Windows = None,
        slide: Span | None = None,
        sink: str | None = None,
        lifetime: Span | None = None,
    ) -> HubQuery:
        """Submit a query that is answered from the next batch on.

        Parameters
        ----------
        sql
            Spark SQL, with windows as in ``FROM flights [RANGE 5 MINUTES SLIDE 1 MINUTE] f``.
        name
            Name of the query. Default: q1, q2, ...
        windows
            For a query without brackets: one window for all streams, or windows by alias.
        slide
            For a query without brackets: interval between answers. Default: every match is an
            answer.
        sink
            Node that receives the answer, in a hub on a network.
        lifetime
            How long the query is answered, in event time. Default: until it is withdrawn.

        Raises ValueError for an invalid query; nothing has changed then.
        """
        with self._take_turn():
            new = self._registry.admit_query(
                sql, name, sink, windows=windows, slide=slide, lifetime=lifetime
            )
            return HubQuery(self, self._registry.register_query(new).number)

    def explain(
        self,
        sql: str,
        windows: Windows = None,
        slide: Span | None = None,
        sink: str | None = None,
        lifetime: Span | None = None,
    ) -> str:
        """Return in words how a query would be answered, and the alternatives. Nothing changes."""
        with self._turn:
            new = self._registry.admit_query(
                sql, sink=sink, windows=windows, slide=slide, lifetime=lifetime
            )
            decision = self._registry.plan_query(new)
            site = self.settings.network is None
            return "\n".join(
                explain_decision(self.deployment, new.parsed.definition, decision, site)
            )

    def withdraw(self, name: str) -> None:
        """Withdraw a query. Raises ValueError if no active query has this name."""
        with self._take_turn():
            self._registry.withdraw_query(name)

    def query_results(self, number: int | str) -> Any:
        """Return the answer to a query so far; see ``HubQuery.results``."""
        with self._turn:
            if isinstance(number, str):
                number = self._registry.last_query(number).number
            served = self.state.queries[number]
            return answer_query(self._registry, served)

    def last_query_rows(self, number: int, limit: int) -> RowTable:
        """Return the last rows of a query's answer; see ``HubQuery.current_answer``."""
        return read_last_rows(self._registry, number, limit, self._turn)

    def why(
        self,
        rows: Mapping[str, Selector],
        limit: int = 20,
        query: str | None = None,
        blocks: bool = False,
    ) -> Why:
        """Return why tuples are joined for a query, or are not, as ``braid.why`` does."""
        from braid.hub.hub_explanation import explain_hub_rows

        store = open_store(self.store.url or self.store.path)
        with self._turn:
            settings, reader = store.read_settings() or {}, self._registry.reader
            on_spark = None if settings["tables"] else reader
            return explain_hub_rows(store, settings, rows, limit, query, blocks, on_spark)

    # Operators.

    def move_operator(self, operator: int, node: str) -> None:
        """Move an operator with its state to another node.

        Raises ValueError if there is no such operator, or if the node is down or cannot run
        operators.
        """
        with self._take_turn():
            operator_moves.move_operator(self._registry, operator, node)

    def fail_node(self, node: str) -> None:
        """Mark a node as failed and the state of its operators as lost.

        Their queries are planned again without the node, and new operators are built from history.
        No result is lost or delivered twice. Raises ValueError if a stream or query needs the node.
        """
        with self._take_turn():
            operator_moves.fail_node(self._registry, node)

    def restore_node(self, node: str) -> None:
        """Mark a failed node as available. Operators move only with the next planning."""
        with self._take_turn():
            operator_moves.restore_node(self._registry, node)

    def replan(self, dry: bool = False) -> operator_moves.ReplanResult:
        """Plan all queries again, and adopt the plan if it saves more than it costs.

        ``dry``: return the result without adopting it.
        """
        with self._take_turn():
            return operator_moves.replan_queries(self._registry, dry)

    # Metrics.

    def metrics(self) -> RowTable:
        """Return one row per operator and batch, with those removed whose results a query has.

        Columns, all measured:

        - ``operator``, ``batch``, ``version``: the operator's id, the batch from 0, and how often
          the operator was rebuilt.
        - ``received_tuples``, ``received_bytes``: with results of other operators.
        - ``compared_pairs``, ``results``, ``seconds``: pairs compared, results found, and the time.
        - ``live_tuples``, ``stored_bytes``: held after the batch.
        """
        return hub_metrics.metrics_table(self.store.path, self.state.operators.values())

    def network_flows(self) -> RowTable:
        """Return the measured network traffic, one row per batch and flow.

        - ``batch``: its number, from 0.
        - ``item``, ``consumer``: a stream or an operator, and the operator or query that reads it.
        - ``source_node``, ``target_node``: where both are.
        - ``rows``, ``bytes``: sent.
        """
        return hub_metrics.flows_table(self.events())

    def link_traffic(self) -> RowTable:
        """Return the measured bytes on each link by batch. Every flow takes its shortest path.

        - ``batch``, ``node_a``, ``node_b``: the batch from 0, and the ends of the link.
        - ``bytes_measured``: in both directions.
        """
        return hub_metrics.link_traffic_table(self.events())

    def network_costs(self) -> RowTable:
        """Return measured bytes times latency and modelled network usage, by batch.

        The two have no unit in common.

        - ``batch``, ``bytes_measured``: the batch from 0, and its bytes.
        - ``byte_seconds_measured``: bytes times the latency of their path.
        - ``network_usage_modelled``: bytes a second times latency, by the cost model.
        """
        return hub_metrics.costs_table(self.events())

    @contextmanager
    def _take_turn(self) -> Iterator[None]:
        """Wait for the current batch, and hold the next one during a change.

        Raises RuntimeError if the hub has ended, FencedError if another driver has taken it over.
        """
        with self._turn:
            if self.state.is_closed:
                raise RuntimeError(
                    "the hub was closed, so what it answers stays as it is; use a new folder"
                )
            if self._outcome:
                raise RuntimeError("the hub has ended; start it again to change what it answers")
            with self.store.raise_if_superseded():
                yield

    def __repr__(self) -> str:
        described = self.state.describe_irregular()
        irregular = f" ({described})" if described else ""
        return (
            f"HubRun({', '.join(self._registry.reader.schemas)}: {len(self.queries)} queries on "
            f"{len(self.operators)} operators, {self.state.epoch + 1} batches{irregular}, in "
            f"{str(self.store.path)!r})"
        )

    def _repr_html_(self) -> str:
        rows = [(q.name, repr(q)) for q in self.queries.values()]
        return render_html_table(f"HubRun in {self.store.path}", tuple(rows))
