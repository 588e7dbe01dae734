"""The work inside the operators of a deployment, modelled: pairs compared and intermediate results.

``processed_tuples_per_second`` counts the tuples at an operator's boundary. An operator of several
inputs also makes intermediate results, and compares every tuple with the windows of the others.
Seshadri 2008, section 5, states "computation costs" and does not say what it counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import Deployment, Operator
from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.result_rates import Rates


def processed_tuples_per_second(model: CostModel, deployment: Deployment) -> float:
    """Return how many tuples operators receive and emit a second."""
    rate = model.rates.result_rate
    return sum(
        sum(rate(f.definition) for f in deployment.operator_inflows(operator, operator.definition))
        + rate(operator.definition)
        for operator in deployment.operators.values()
    )


@dataclass(frozen=True)
class JoinWork:
    """The work of operators, each count by second.

    - ``received``, ``emitted``: tuples at the boundary of operators.
    - ``intermediate``: results of the steps of a join before its last one.
    - ``compared``: pairs of a tuple, or an intermediate result, and a tuple in a window, as nested
      loops compare them.
    """

    received: float = 0.0
    emitted: float = 0.0
    intermediate: float = 0.0
    compared: float = 0.0

    @property
    def indexed(self) -> float:
        """The tuples and results that joins with an index for each condition touch."""
        return self.received + self.intermediate + self.emitted

    def __add__(self, other: JoinWork) -> JoinWork:
        return JoinWork(
            self.received + other.received,
            self.emitted + other.emitted,
            self.intermediate + other.intermediate,
            self.compared + other.compared,
        )


def deployment_work(model: CostModel, deployment: Deployment) -> JoinWork:
    """Return the work of all operators of a deployment."""
    return sum(work_by_node(model, deployment).values(), JoinWork())


def work_by_node(model: CostModel, deployment: Deployment) -> dict[str, JoinWork]:
    """Return the work of the operators of each node that has any."""
    works: dict[str, JoinWork] = {}
    for operator in deployment.operators.values():
        work = operator_work(model.rates, deployment, operator)
        works[operator.node] = works.get(operator.node, JoinWork()) + work
    return works


def operator_work(rates: Rates, deployment: Deployment, operator: Operator) -> JoinWork:
    """Return the work of one operator, whose inputs are joined in the cheapest order found."""
    inputs = [f.definition for f in deployment.operator_inflows(operator, operator.definition)]
    received = sum(map(rates.result_rate, inputs))
    steps = [step for first in inputs for step in _probe_steps(rates, operator, first, inputs)]
    return JoinWork(
        received,
        rates.result_rate(operator.definition),
        sum(results for results, _, is_last in steps if not is_last),
        sum(compared for _, compared, _ in steps),
    )


def _probe_steps(
    rates: Rates, operator: Operator, first: Definition, inputs: Sequence[Definition]
) -> Iterator[tuple[float, float, bool]]:
    """Yield (results, pairs compared, whether it is the last) of each step from one input on.

    The next input is always the one with the fewest results.
    """
    left, streams = [d for d in inputs if d is not first], first.streams
    results = arriving = rates.result_rate(first)
    held = 1.0
    while left:
        counts = [
            arriving
            * held
            * _count_held_tuples(rates, d)
            * _joint_selectivity(rates, operator.definition, streams + d.streams, (first, *inputs))
            for d in left
        ]
        best = min(range(len(left)), key=counts.__getitem__)
        chosen = left.pop(best)
        compared = results * _count_held_tuples(rates, chosen)
        held *= _count_held_tuples(rates, chosen)
        results, streams = counts[best], streams + chosen.streams
        yield results, compared, not left


def _count_held_tuples(rates: Rates, d: Definition) -> float:
    """Return the tuples of an input that are within its shortest window."""
    span = min(min(d.windows) / 1e6, rates.longest_window_seconds)
    return rates.result_rate(d) * span


def _joint_selectivity(
    rates: Rates, definition: Definition, streams: tuple[str, ...], inputs: Sequence[Definition]
) -> float:
    """Return the fraction of combinations of inputs over these streams that are results.

    Conditions within one input have been counted by its rate.
    """
    part = definition.restrict_to(streams)
    within = 1.0
    for d in {d.streams: d for d in inputs if set(d.streams) <= set(streams)}.values():
        within *= rates.join_selectivity(d.streams, d.joins)
    return rates.join_selectivity(part.streams, part.joins) / within
