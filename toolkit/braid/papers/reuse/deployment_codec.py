"""Conversion of deployments to plain data for JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import msgspec

from braid.papers.reuse.deployment import Demand, Deployment, Operator
from braid.papers.reuse.query_definition import Definition
from braid.papers.reuse.selections import ColumnDomain, Conjunction, Selection
from braid.util.json_codec import from_plain

_MARK = "\0"
"""Prefix of a fraction stored as text; no SQL text begins with it."""


def deployment_to_plain(deployment: Deployment) -> dict[str, Any]:
    """Return the deployment as plain data."""
    plain: dict[str, Any] = msgspec.to_builtins(
        deployment, str_keys=True, enc_hook=_encode_fraction
    )
    return plain


def _encode_fraction(value: Any) -> str:
    if isinstance(value, Fraction):
        return f"{_MARK}{value}"
    raise NotImplementedError(f"a {type(value).__name__} is not stored")


def deployment_from_plain(data: Mapping[str, Any]) -> Deployment:
    """Return the deployment from plain data. Raises ValueError for data of another shape."""
    deployment = from_plain(data, Deployment, "the stored deployment")
    operators = {id: _decode_operator(o) for id, o in deployment.operators.items()}
    queries = {
        name: replace(q, definition=_decode_definition(q.definition))
        for name, q in deployment.queries.items()
    }
    return replace(deployment, operators=operators, queries=queries)


def _decode_operator(operator: Operator) -> Operator:
    demands = tuple(_decode_demand(d) for d in operator.demands)
    return replace(operator, definition=_decode_definition(operator.definition), demands=demands)


def _decode_demand(demand: Demand) -> Demand:
    return replace(demand, definition=_decode_definition(demand.definition))


def _decode_definition(definition: Definition) -> Definition:
    return replace(definition, selections=tuple(map(_decode_selection, definition.selections)))


def _decode_selection(selection: Selection) -> Selection:
    return Selection(frozenset(map(_decode_conjunction, selection.conjunctions)))


def _decode_conjunction(box: Conjunction) -> Conjunction:
    return replace(box, domains=tuple((column, _decode_domain(d)) for column, d in box.domains))


def _decode_domain(domain: ColumnDomain) -> ColumnDomain:
    least, most = (
        None if end is None else (_decode_value(end[0]), end[1])
        for end in (domain.lower, domain.upper)
    )
    among = None if domain.values is None else frozenset(map(_decode_value, domain.values))
    return ColumnDomain(
        least, most, among, frozenset(map(_decode_value, domain.excluded)), domain.includes_null
    )


def _decode_value(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_MARK):
        return Fraction(value.removeprefix(_MARK))
    return value
