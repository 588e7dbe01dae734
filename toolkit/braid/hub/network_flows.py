"""Count the rows and bytes that a batch sends over the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from braid.core.reserved_columns import TIME
from braid.hub.flat_results import flat_column_name
from braid.hub.operator_instance import ArrivedRows
from braid.hub.running_operators import OperatorRuntime
from braid.papers.reuse.deployment import DeployedQuery, Deployment
from braid.papers.reuse.hub_events import FlowMetrics


def count_flows(
    works: OperatorRuntime,
    deployment: Deployment,
    arrivals: Mapping[int, Mapping[str, ArrivedRows]],
    delivered: Mapping[str, pa.Table],
) -> Iterator[FlowMetrics]:
    """Yield each flow between nodes in a batch.

    ``delivered``: delivered matches by query.
    """
    for operator in deployment.operators.values():
        instance = works.instances[operator.id]
        inputs = instance.spec.inputs
        for alias, rows in arrivals[operator.id].items():
            read = inputs[alias].source
            node = (
                deployment.source_node(read)
                if isinstance(read, str)
                else deployment.operators[read].node
            )
            taken = instance.select_arrivals(alias, rows).select(
                [*inputs[alias].stored_columns, TIME]
            )
            yield _count_flow(str(read), str(operator.id), node, operator.node, taken)
    for name, matches in delivered.items():
        query = deployment.queries[name]
        node = deployment.operators[query.operator].node
        answer = matches.select(_sent_columns(query, works.reader.time))
        yield _count_flow(str(query.operator), name, node, query.sink, answer)


def _sent_columns(query: DeployedQuery, time: str) -> list[str]:
    """Return the columns of matches that are sent to a query's sink, event times included."""
    columns = zip(query.definition.streams, query.definition.columns, strict=True)
    return [flat_column_name(s, c) for s, names in columns for c in sorted(names | {time})]


def _count_flow(what: str, to: str, source: str, target: str, rows: pa.Table) -> FlowMetrics:
    return FlowMetrics(what, to, source, target, rows.num_rows, int(rows.nbytes))
