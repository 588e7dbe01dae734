"""A deployment as plain data, which JSON has, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import msgspec

from braid.core.codec import typed
from braid.papers.reuse.definition import Definition
from braid.papers.reuse.deployment import Demand, Deployment, Operator
from braid.papers.reuse.domains import Domain
from braid.papers.reuse.selections import Box, Selection

_MARK = "\0"
"""Before a fraction that is written as text: no text of SQL begins so."""


def to_plain(deployment: Deployment) -> dict[str, Any]:
    """As plain data."""
    found: dict[str, Any] = msgspec.to_builtins(deployment, str_keys=True, enc_hook=_written)
    return found


def _written(value: Any) -> str:
    if isinstance(value, Fraction):
        return f"{_MARK}{value}"
    raise NotImplementedError(f"a {type(value).__name__} is not stored")


def from_plain(data: Mapping[str, Any]) -> Deployment:
    """From plain data. Raises ValueError for data of another shape."""
    found = typed(data, Deployment, "the stored deployment")
    operators = {id: _operator(o) for id, o in found.operators.items()}
    queries = {
        name: replace(q, definition=_definition(q.definition)) for name, q in found.queries.items()
    }
    return replace(found, operators=operators, queries=queries)


def _operator(operator: Operator) -> Operator:
    demands = tuple(_demand(d) for d in operator.demands)
    return replace(operator, definition=_definition(operator.definition), demands=demands)


def _demand(demand: Demand) -> Demand:
    return replace(demand, definition=_definition(demand.definition))


def _definition(definition: Definition) -> Definition:
    return replace(definition, where=tuple(map(_selection, definition.where)))


def _selection(selection: Selection) -> Selection:
    return Selection(frozenset(map(_box, selection.boxes)))


def _box(box: Box) -> Box:
    return replace(box, domains=tuple((column, _domain(d)) for column, d in box.domains))


def _domain(domain: Domain) -> Domain:
    least, most = (
        None if end is None else (_read(end[0]), end[1]) for end in (domain.least, domain.most)
    )
    among = None if domain.among is None else frozenset(map(_read, domain.among))
    return Domain(least, most, among, frozenset(map(_read, domain.out)), domain.null)


def _read(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_MARK):
        return Fraction(value.removeprefix(_MARK))
    return value
