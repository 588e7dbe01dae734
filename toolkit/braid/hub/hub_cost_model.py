"""Cost model of a hub's planner, and the description of its plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from braid.hub.hub_state import HubState
from braid.hub.recent_tuples import BackfillBuffer
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import Deployment, NewOperator, ReusedOperator, Tree
from braid.papers.reuse.network import ONE_SITE, Network
from braid.papers.reuse.planner import Decision
from braid.papers.reuse.query_definition import Definition, JoinCondition
from braid.papers.reuse.relaxation import relax_operator
from braid.papers.reuse.result_rates import Rates, StreamRate

SITE = ONE_SITE.nodes[0].name
SAMPLE = 400
"""Tuples of each stream on which selections are sampled."""


def make_cost_model(
    network: Network | None,
    given: Rates | None,
    ledger: HubState,
    history: BackfillBuffer,
    streams: Iterable[str],
) -> CostModel:
    """Return the cost model of the planner.

    On one site, the cost is work, with equal rates for all streams. On a network, it is traffic,
    with the given rates or else those measured and sampled.
    """
    if network is None:
        return CostModel(ONE_SITE, Rates({s: StreamRate(1.0, {}) for s in streams}))
    up = network.without_nodes(*ledger.failed_nodes) if ledger.failed_nodes else network
    return CostModel(up, given or _measure_rates(ledger, history, list(streams)))


def _measure_rates(ledger: HubState, history: BackfillBuffer, streams: list[str]) -> Rates:
    measured = [
        t
        for s in streams
        for t in (ledger.first_event_times.get(s), ledger.clocks.get(s))
        if t is not None
    ]
    seconds = max((max(measured) - min(measured)) / 1e6, 1.0) if measured else 1.0
    samples = {s: history.sample_rows(ledger, s, SAMPLE) for s in streams}
    rates = {
        s: _measure_stream_rate(ledger.received_counts.get(s, (0, 0))[0], seconds, t)
        for s, t in samples.items()
    }
    joins = {j for o in ledger.deployment.operators.values() for j in o.definition.joins} | {
        j for q in ledger.deployment.queries.values() for j in q.definition.joins
    }
    return Rates(
        rates, {j.text: c for j in joins if (c := _estimate_selectivity(j, samples)) is not None}
    )


def _measure_stream_rate(tuples: int, seconds: float, sample: pa.Table | None) -> StreamRate:
    if sample is None or not sample.num_rows:
        return StreamRate(1.0, {})
    size = {c: sample[c].nbytes / sample.num_rows for c in sample.column_names}
    rows = [{c: _to_plain_value(v) for c, v in row.items()} for row in sample.to_pylist()]
    return StreamRate(max(tuples, 1) / seconds, size, rows)


def _to_plain_value(value: Any) -> Any:
    """Return a value in the form selections use: exact numbers as fractions, days as text."""
    if isinstance(value, Decimal):
        return Fraction(value)
    return value.isoformat() if hasattr(value, "isoformat") else value


def _estimate_selectivity(
    join: JoinCondition, samples: Mapping[str, pa.Table | None]
) -> float | None:
    """Return the estimated share of pairs that satisfy an equality.

    It is one over the larger number of distinct values in the two samples.
    """
    if len(join.columns) != 2 or " = " not in join.text:
        return None
    selectivities = []
    for stream, column in join.columns:
        sample = samples.get(stream)
        if sample is None or column not in sample.column_names:
            return None
        selectivities.append(len(sample[column].unique()))
    return 1 / max(*selectivities, 1)


def explain_decision(
    deployment: Deployment, wanted: Definition, decision: Decision, site: bool
) -> list[str]:
    """Return lines that describe how a query is answered, and the alternatives."""
    lines = list(_describe_plan_tree(deployment, wanted, decision.tree, site, ""))
    what = "work a second at equal rates" if site else "more bytes in transit"
    lines.append(f"considered, by {what} (modelled)")
    described = [(c.description.replace(" at here", ""), c) for c in decision.alternatives]
    return lines + [
        f"  {what}: {c.extra_cost:.4g}{c.rejection and ', ' + c.rejection}" for what, c in described
    ]


def _describe_plan_tree(
    deployment: Deployment, wanted: Definition, tree: Tree, site: bool, indent: str
) -> Iterator[str]:
    if isinstance(tree, NewOperator):
        where = "" if site else f" at {tree.node}"
        yield f"{indent}a new operator{where} joins {', '.join(tree.streams)}"
        for read in tree.inputs:
            if not isinstance(read, str):
                streams = _covered_streams(deployment, read)
                yield from _describe_plan_tree(
                    deployment, wanted.restrict_to(streams), read, site, indent + "  "
                )
    elif isinstance(tree, ReusedOperator):
        yield from _describe_reuse(deployment, wanted, tree, site, indent)


def _covered_streams(deployment: Deployment, tree: Tree) -> tuple[str, ...]:
    if isinstance(tree, NewOperator):
        return tree.streams
    if isinstance(tree, ReusedOperator):
        return deployment.operators[tree.operator].definition.streams
    return (tree.stream,)


def _describe_reuse(
    deployment: Deployment, wanted: Definition, tree: ReusedOperator, site: bool, indent: str
) -> Iterator[str]:
    operator = deployment.operators[tree.operator]
    who = f"{indent}operator {operator.id}" + ("" if site else f" at {operator.node}")
    if operator.serving_demand(wanted) is not None:
        yield f"{who} answers it as it is"
        return
    yield f"{who} answers it after relaxing it"
    changes = relax_operator(operator.definition, wanted, operator.until).changes
    yield from (f"{indent}  {step:<12} {change}" for step, change in changes)
    if not changes:
        yield f"{indent}  it is within the union of several demands, and in none of them"
