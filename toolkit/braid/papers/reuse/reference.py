"""What a deployment makes of given tuples, one by one: operators by their demands, queries by
compensation. Small and slow, for tests; join conditions are equalities.

Source: Seshadri 2008, sections 3 and 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from braid.papers.reuse.definition import Compensation, Definition, Join, compensation
from braid.papers.reuse.deployment import Asked, Demand, Deployment, Operator, cascaded


@dataclass(frozen=True)
class Arrival:
    """A tuple: which one of its stream, its event time in microseconds, its values."""

    id: int
    time: int
    values: Mapping[str, Any]


Match = dict[str, Arrival]
"""A result: its members by stream."""
Arrivals = Mapping[str, Sequence[Arrival]]
Made = list[tuple[Match, frozenset[int]]]
"""An operator's results, each with the demands (bits) that it serves."""


def answers(deployment: Deployment, arrivals: Arrivals) -> dict[str, list[Match]]:
    """What each query is told: its operator's results, compensated."""
    made = results(deployment, arrivals)
    return {
        q.name: list(taken(deployment.operators[q.operator], q.bit, q.definition, made[q.operator]))
        for q in deployment.queries.values()
    }


def alone(asked: Asked, arrivals: Arrivals) -> list[Match]:
    """What a query is told that is evaluated by itself."""
    d = asked.definition
    chosen = [
        [{s: a} for a in arrivals[s] if where.passes(a.values)]
        for s, where in zip(d.streams, d.where, strict=True)
    ]
    every = (_whole(parts) for parts in product(*chosen))
    return [_only(m, d) for m in every if _joined(m, d.joins) and _near(m, d.streams, d.windows)]


def results(deployment: Deployment, arrivals: Arrivals) -> dict[int, Made]:
    """By operator, its results: what one of its demands makes, each once."""
    made: dict[int, Made] = {}
    for operator in deployment.upstream():
        found: dict[tuple[int, ...], Match] = {}
        serves: dict[tuple[int, ...], set[int]] = {}
        for demand in operator.demands:
            for match in _of_demand(deployment, operator, demand, made, arrivals):
                key = tuple(match[s].id for s in operator.definition.streams)
                found[key] = match
                serves.setdefault(key, set()).add(demand.bit)
        made[operator.id] = [
            (_only(m, operator.definition), frozenset(serves[key])) for key, m in found.items()
        ]
    return made


def _of_demand(
    deployment: Deployment,
    operator: Operator,
    demand: Demand,
    made: Mapping[int, Made],
    arrivals: Arrivals,
) -> Iterator[Match]:
    d = demand.definition
    inputs = []
    for read, use in zip(operator.inputs, demand.uses, strict=True):
        if isinstance(read, str) or use is None:
            assert isinstance(read, str), "a demand uses one of what is read"
            where = d.where[d.place(read)]
            inputs.append([{read: a} for a in arrivals[read] if where.passes(a.values)])
        else:
            upstream = deployment.operators[read]
            part = cascaded(operator.definition, d, upstream)
            inputs.append(list(taken(upstream, use, part, made[read])))
    for parts in product(*inputs):
        match = _whole(parts)
        if _joined(match, operator.definition.joins) and _near(match, d.streams, d.windows):
            yield match


def taken(operator: Operator, bit: int, wanted: Definition, made: Made) -> Iterator[Match]:
    """What is wanted, of an operator's results for one of its demands."""
    own = compensation(operator.offered(bit), wanted)
    return (_only(m, wanted) for m, serves in made if bit in serves and _passes(m, wanted, own))


def _passes(match: Match, wanted: Definition, own: Compensation) -> bool:
    chosen = all(
        where is None or where.passes(match[s].values)
        for s, where in zip(wanted.streams, own.where, strict=True)
    )
    return chosen and _joined(match, own.joins) and _near(match, wanted.streams, own.windows)


def _whole(parts: Sequence[Match]) -> Match:
    return {s: a for part in parts for s, a in part.items()}


def _joined(match: Match, joins: frozenset[Join]) -> bool:
    """Whether the equalities hold whose columns have come so far."""
    for join in joins:
        if all(c in match[s].values for s, c in join.columns):
            values = [match[s].values[c] for s, c in join.columns]
            if None in values or len(set(values)) > 1:
                return False
    return True


def _near(match: Match, streams: Sequence[str], windows: Sequence[int | None]) -> bool:
    latest = max(a.time for a in match.values())
    return all(
        w is None or latest - match[s].time < w for s, w in zip(streams, windows, strict=True)
    )


def _only(match: Match, definition: Definition) -> Match:
    """With the columns that a definition has, and no others."""
    return {
        s: Arrival(match[s].id, match[s].time, {c: match[s].values[c] for c in columns})
        for s, columns in zip(definition.streams, definition.columns, strict=True)
    }
