"""A reference model of a deployment on given tuples: operators by demands, queries by compensation.

It is small and slow, for tests; join conditions are equalities. Source: Seshadri 2008, sections 3
and 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from braid.papers.reuse.deployment import (
    Demand,
    DeployedQuery,
    Deployment,
    Operator,
    upstream_demand,
)
from braid.papers.reuse.query_definition import (
    Compensation,
    Definition,
    JoinCondition,
    make_compensation,
    may_reuse,
)
from braid.papers.reuse.reuse_lattice import ALL, LatticeEntry
from braid.papers.reuse.selections import Selection


@dataclass(frozen=True)
class Arrival:
    """A tuple: its number within the stream, its event time in microseconds, its values."""

    id: int
    time: int
    values: Mapping[str, Any]


Match = dict[str, Arrival]
"""A result: its members by stream."""
Arrivals = Mapping[str, Sequence[Arrival]]
ServedMatches = list[tuple[Match, frozenset[int]]]
"""An operator's results, each with the demands (bits) that it serves."""


def accepts_row(
    selection: Selection, row: Mapping[str, Any], opaque: Mapping[str, bool] | None = None
) -> bool:
    """Return whether a tuple passes; ``opaque`` has the opaque conditions by text."""
    conditions = opaque or {}
    return any(
        all(domain.contains(row.get(c)) for c, domain in box.domains)
        and all(conditions.get(o.text, False) for o in box.opaque_conditions)
        for box in selection.conjunctions
    )


def query_results(deployment: Deployment, arrivals: Arrivals) -> dict[str, list[Match]]:
    """Return the results of each query: its operator's results, compensated."""
    results = operator_results(deployment, arrivals)
    return {
        q.name: list(
            compensated_results(
                deployment.operators[q.operator], q.bit, q.definition, results[q.operator]
            )
        )
        for q in deployment.queries.values()
    }


def isolated_results(query: DeployedQuery, arrivals: Arrivals) -> list[Match]:
    """Return the results of a query that is evaluated alone."""
    d = query.definition
    chosen = [
        [{s: a} for a in arrivals[s] if accepts_row(where, a.values)]
        for s, where in zip(d.streams, d.selections, strict=True)
    ]
    every = (_merge_matches(parts) for parts in product(*chosen))
    return [
        _project_match(m, d)
        for m in every
        if _has_equal_join_values(m, d.joins) and _is_within_windows(m, d.streams, d.windows)
    ]


def operator_results(deployment: Deployment, arrivals: Arrivals) -> dict[int, ServedMatches]:
    """Return, by operator, the results of all its demands, each once."""
    results: dict[int, ServedMatches] = {}
    for operator in deployment.topological_order():
        matches: dict[tuple[int, ...], Match] = {}
        serves: dict[tuple[int, ...], set[int]] = {}
        for demand in operator.demands:
            for match in _list_demand_matches(deployment, operator, demand, results, arrivals):
                key = tuple(match[s].id for s in operator.definition.streams)
                matches[key] = match
                serves.setdefault(key, set()).add(demand.bit)
        results[operator.id] = [
            (_project_match(m, operator.definition), frozenset(serves[key]))
            for key, m in matches.items()
        ]
    return results


def _list_demand_matches(
    deployment: Deployment,
    operator: Operator,
    demand: Demand,
    results: Mapping[int, ServedMatches],
    arrivals: Arrivals,
) -> Iterator[Match]:
    d = demand.definition
    inputs = []
    for read, use in zip(operator.inputs, demand.upstream_bits, strict=True):
        if isinstance(read, str) or use is None:
            assert isinstance(read, str), "a demand uses one of what is read"
            where = d.selections[d.stream_index(read)]
            inputs.append([{read: a} for a in arrivals[read] if accepts_row(where, a.values)])
        else:
            upstream = deployment.operators[read]
            part = upstream_demand(operator.definition, d, upstream)
            inputs.append(list(compensated_results(upstream, use, part, results[read])))
    for parts in product(*inputs):
        match = _merge_matches(parts)
        if _has_equal_join_values(match, operator.definition.joins) and _is_within_windows(
            match, d.streams, d.windows
        ):
            yield match


def compensated_results(
    operator: Operator, bit: int, wanted: Definition, results: ServedMatches
) -> Iterator[Match]:
    """Yield the wanted results from an operator's results for one of its demands."""
    compensation = make_compensation(operator.demand_results(bit), wanted)
    return (
        _project_match(m, wanted)
        for m, serves in results
        if bit in serves and _is_query_result(m, wanted, compensation)
    )


def _is_query_result(match: Match, wanted: Definition, compensation: Compensation) -> bool:
    chosen = all(
        where is None or accepts_row(where, match[s].values)
        for s, where in zip(wanted.streams, compensation.where, strict=True)
    )
    return (
        chosen
        and _has_equal_join_values(match, compensation.joins)
        and _is_within_windows(match, wanted.streams, compensation.windows)
    )


def _merge_matches(parts: Sequence[Match]) -> Match:
    return {s: a for part in parts for s, a in part.items()}


def _has_equal_join_values(match: Match, joins: frozenset[JoinCondition]) -> bool:
    """Return whether the equalities hold whose columns are all present."""
    for join in joins:
        if all(c in match[s].values for s, c in join.columns):
            values = [match[s].values[c] for s, c in join.columns]
            if None in values or len(set(values)) > 1:
                return False
    return True


def _is_within_windows(match: Match, streams: Sequence[str], windows: Sequence[int | None]) -> bool:
    latest = max(a.time for a in match.values())
    return all(
        w is None or latest - match[s].time < w for s, w in zip(streams, windows, strict=True)
    )


def _project_match(match: Match, definition: Definition) -> Match:
    """Return the match with exactly the columns of a definition."""
    return {
        s: Arrival(match[s].id, match[s].time, {c: match[s].values[c] for c in columns})
        for s, columns in zip(definition.streams, definition.columns, strict=True)
    }


def linear_search(
    offers: Iterable[LatticeEntry], wanted: Definition, regions: int = ALL, relax: bool = True
) -> list[tuple[LatticeEntry, bool]]:
    """Return what ``ReuseLattice.find_reusable_operators`` returns, by checking every operator."""
    reusable = [
        (offer, offer.can_serve(wanted))
        for offer in offers
        if offer.nid & regions and may_reuse(offer.definition, wanted)
    ]
    return sorted((f for f in reusable if relax or f[1]), key=lambda f: f[0].id)
