"""Derive the definition of an instance from a deployed operator.

Source: Seshadri 2008, section 3.1, step 5. The conditions embedded in inputs are evaluated by the
operators that produce them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import sqlglot
from sqlglot import exp

from braid.condition.spark_dialect import SparkSql
from braid.core.join_kinds import parse_kind
from braid.core.query import Query
from braid.hub.flat_results import (
    Texts,
    compensation_sql,
    demand_filter_sql,
    flat_column_name,
    rename_columns,
)
from braid.hub.operator_instance import OperatorInput, OperatorSpec
from braid.hub.query_conditions import Schemas
from braid.papers.reuse.deployment import Demand, Deployment, Operator, upstream_demand
from braid.papers.reuse.query_definition import ASOF, ASOF_LEFT, INNER, Column, Definition
from braid.papers.reuse.selections import EVERYTHING

_KINDS = {ASOF: INNER, ASOF_LEFT: "left"}
"""Kinds of the queries of as-of operators."""
Joined = frozenset[str]
"""Streams that arrive joined, under one alias."""


class OperatorSpecBuilder:
    """Builder of the definitions of a deployment's operators.

    - ``texts``: SQL of the selections.
    - ``last_batches``: by finite stream, the batch with its last tuple.
    """

    def __init__(
        self,
        deployment: Deployment,
        schemas: Schemas,
        texts: Texts,
        time: str,
        last_batches: Mapping[str, int],
    ) -> None:
        self.deployment, self.schemas = deployment, schemas
        self.texts, self.time, self.last_batches = texts, time, last_batches

    def build_spec(self, operator: Operator, epoch: int, micro_batch: int) -> OperatorSpec:
        """Return the definition of an operator that runs after batch ``epoch`` of the hub.

        ``micro_batch``: the last micro-batch then.
        """
        definition = operator.definition
        ordered = sorted(operator.inputs, key=lambda read: read != definition.left_stream)
        inputs = {self._make_alias(read): self._make_input(operator, read) for read in ordered}
        return OperatorSpec(
            operator.id,
            operator.version,
            self._make_join_condition(operator, inputs),
            inputs,
            tuple(self._make_demand_query(operator, inputs, d) for d in operator.demands),
            epoch,
            micro_batch,
            tuple(self._find_end(i.streams) for i in inputs.values()),
        )

    def _find_end(self, streams: Sequence[str]) -> int | None:
        """Return the batch with the last tuple of these streams; None: one of them is endless."""
        ends = [self.last_batches[s] for s in streams if s in self.last_batches]
        return max(ends) if len(ends) == len(streams) else None

    def _make_alias(self, read: str | int) -> str:
        if isinstance(read, str):
            return read
        alias = f"o{read}"
        while alias.lower() in {s.lower() for s in self.schemas}:
            alias += "_"
        return alias

    def _list_columns(self, stream: str, columns: frozenset[str]) -> list[str]:
        return [c for c in self.schemas[stream] if c in columns or c == self.time]

    def _make_input(self, operator: Operator, read: str | int) -> OperatorInput:
        columns_by_stream = dict(
            zip(operator.definition.streams, operator.definition.columns, strict=True)
        )
        if isinstance(read, str):
            arriving = {c: (read, c) for c in self.schemas[read]}
            return OperatorInput(
                read, (read,), arriving, self._stored_columns(read, columns_by_stream[read])
            )
        upstream = self.deployment.operators[read].definition
        coming: dict[str, Column] = {}
        stored: dict[str, Column] = {}
        for stream, columns in zip(upstream.streams, upstream.columns, strict=True):
            coming |= {
                flat_column_name(stream, c): (stream, c)
                for c in self._list_columns(stream, columns)
            }
            stored |= {
                flat_column_name(stream, c): (stream, c)
                for c in self._list_columns(stream, columns_by_stream[stream])
            }
        return OperatorInput(read, upstream.streams, coming, stored)

    def _stored_columns(self, stream: str, columns: frozenset[str]) -> dict[str, Column]:
        return {c: (stream, c) for c in self._list_columns(stream, columns)}

    def _make_join_condition(self, operator: Operator, inputs: Mapping[str, OperatorInput]) -> str:
        """Return the conjuncts over several inputs, and over one if the join is not inner.

        Implied conjuncts are left out if the stated ones link all inputs.
        """
        groups = [frozenset(i.streams) for i in inputs.values()]
        across = [
            j
            for j in operator.definition.joins
            if operator.definition.kind != INNER or not any(j.joined_streams <= g for g in groups)
        ]
        stated = [j for j in across if not j.is_implied]
        linked = _are_linked(groups, [j.joined_streams for j in stated])
        owner = {s: alias for alias, i in inputs.items() for s in i.streams}
        texts = sorted(j.text for j in (stated if linked else across))
        return " AND ".join(f"({_rewrite_over_inputs(t, owner, inputs)})" for t in texts) or "true"

    def _make_demand_query(
        self, operator: Operator, inputs: Mapping[str, OperatorInput], demand: Demand
    ) -> Query:
        windows, where = [], []
        for i, use in zip(inputs.values(), demand.upstream_bits, strict=True):
            restricted = demand.definition.restrict_to(i.streams)
            windows.append(min(restricted.windows))
            where.append(self._make_demand_filter(operator, demand, i, use))
        return Query(
            f"d{demand.bit}",
            tuple(windows),
            tuple(where),
            demand.bit,
            (None,) * len(windows),
            parse_kind(_KINDS.get(operator.definition.kind, operator.definition.kind), [*inputs]),
            operator.definition.match,
        )

    def _make_demand_filter(
        self, operator: Operator, demand: Demand, i: OperatorInput, use: int | None
    ) -> str | None:
        if isinstance(i.source, str):
            where = demand.definition.selections[demand.definition.stream_index(i.source)]
            if where == EVERYTHING:
                return None
            return rename_columns(self.texts[i.source, where], lambda stream, column: column)
        upstream = self.deployment.operators[i.source]
        assert use is not None, "an operator that is read has a demand for it"
        existing = upstream.demand_results(use)
        wanted = upstream_demand(operator.definition, demand.definition, upstream)
        aged = any(isinstance(r, int) for r in upstream.inputs)
        more = compensation_sql(existing, wanted, self.texts, self.time, aged)
        return demand_filter_sql(use) if more is None else f"{demand_filter_sql(use)} AND {more}"


def _rewrite_over_inputs(
    text: str, owner: Mapping[str, str], inputs: Mapping[str, OperatorInput]
) -> str:
    """Rewrite a join condition over streams to ``alias.column`` of inputs."""
    tree = sqlglot.parse_one(text, dialect=SparkSql)
    for column in list(tree.find_all(exp.Column)):
        alias, stream = owner[column.table], column.table
        name = (
            column.name
            if isinstance(inputs[alias].source, str)
            else flat_column_name(stream, column.name)
        )
        column.replace(exp.column(name, table=alias, quoted=True))
    return tree.sql(dialect=SparkSql, normalize_functions=False)


def _are_linked(groups: list[Joined], joins: list[Joined]) -> bool:
    """Return whether conditions over these streams link all groups."""
    reached, before = set(groups[0]), 0
    while len(reached) > before:
        before = len(reached)
        for group in groups:
            if any(j & reached and j & group for j in joins):
                reached |= group
    return len(reached) == sum(map(len, groups))


def selection_texts(definitions: Iterator[tuple[Definition, Mapping[str, str]]]) -> Texts:
    """Return the SQL of selections, from the definitions of queries and their filters by stream."""
    texts = {}
    for definition, filters in definitions:
        for stream, where in zip(definition.streams, definition.selections, strict=True):
            if stream in filters:
                texts[stream, where] = filters[stream]
    return texts
