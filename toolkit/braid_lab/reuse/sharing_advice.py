"""Advise on sharing: the operators that a file of queries needs and the work they save.

Costs are modelled; nothing runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import sqlglot
from braid.condition.sql_types import SqlType
from braid.errors import QueryError
from braid.hub.query_conditions import Schemas
from braid.hub.query_dialect import CQL, parse_query
from braid.hub.query_parser import parse_stream_query
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import DeployedQuery, Deployment
from braid.papers.reuse.network import ONE_SITE
from braid.papers.reuse.planner import Planner, PlanningService, Reuse
from braid.papers.reuse.result_rates import Rates, StreamRate
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from braid_lab.reuse.join_work import processed_tuples_per_second

_SITE = ONE_SITE.nodes[0].name


@dataclass(frozen=True)
class SharingAdvice:
    """Joins needed by a set of queries, with equal rates for all streams.

    - ``operators``: streams, the queries answered and the number of demands of each join.
    - ``work``: by kind of reuse, tuples per second relative to no reuse; modelled.
    """

    queries: int
    operators: tuple[tuple[str, tuple[str, ...], int], ...]
    work: Mapping[str, float]

    def __str__(self) -> str:
        lines = [f"{self.queries} queries need {len(self.operators)} joins on a hub"]
        for streams, names, demands in self.operators:
            held = f"{demands} different" if demands > 1 else "all by one"
            lines.append(f"  {streams}: {', '.join(names)} ({held})")
        lines.append("work relative to a join for each query (modelled, all streams alike)")
        lines += [f"  {how}: {ratio:.2f}" for how, ratio in self.work.items()]
        return "\n".join(lines)


def advise_sharing(text: str, time: str = "ts") -> SharingAdvice:
    """Return advice on queries that each end in ";".

    ``time``: event-time column. Columns must be written alias.column, since the columns of streams
    are not known.

    Raises QueryError if a query is invalid.
    """
    texts = list(_split_queries(text))
    if not texts:
        raise QueryError("there is no query in the text; queries are SQL, each ended by ;")
    schemas = infer_schemas(texts, time)
    queries = [
        replace(_parse_query(n, sql, schemas, time), name=f"q{n}") for n, sql in enumerate(texts, 1)
    ]
    shared, alone = _plan_deployment(queries, "relaxed"), _plan_deployment(queries, "separate")
    work = {
        how: _deployment_work(_plan_deployment(queries, how)) / _deployment_work(alone)
        for how in ("exact", "contained", "relaxed")
    }  # type: Mapping[str, float]
    deployment = shared.deployment
    operators = tuple(
        (
            ", ".join(o.definition.streams),
            tuple(q.name for q in deployment.queries.values() if q.operator == o.id),
            len(o.demands),
        )
        for o in deployment.operators.values()
    )
    return SharingAdvice(len(queries), operators, work)


def _split_queries(text: str) -> Iterator[str]:
    """Yield each query without surrounding space and comments; text without tokens is one query."""
    try:
        tokens = CQL().tokenize(text)
    except sqlglot.errors.SqlglotError:
        yield text
        return
    for ended, query in groupby(tokens, lambda t: t.token_type == TokenType.SEMICOLON):
        if not ended:
            first, *rest = query
            yield text[first.start : (rest or [first])[-1].end + 1]


def _parse_query(number: int, sql: str, schemas: Schemas, time: str) -> DeployedQuery:
    try:
        query = parse_stream_query(sql, schemas, time)
    except ValueError as error:
        raise QueryError(f"query {number}: {error}") from None
    all_columns = tuple(frozenset(schemas[s]) for s in query.definition.streams)
    definition = replace(query.definition, slides=frozenset(), columns=all_columns)
    return DeployedQuery("", definition, _SITE, sql=sql)


def _plan_deployment(queries: Sequence[DeployedQuery], reuse: Reuse) -> PlanningService:
    streams = {s for q in queries for s in q.definition.streams}
    model = CostModel(ONE_SITE, Rates({s: StreamRate(1.0, {}) for s in streams}))
    planner = Planner(model, reuse, fuse=True, parts=False)
    service = PlanningService(planner, Deployment(dict.fromkeys(streams, _SITE)))
    for query in queries:
        service.submit_query(query)
    return service


def _deployment_work(service: PlanningService) -> float:
    return processed_tuples_per_second(service.planner.model, service.deployment)


def infer_schemas(texts: Sequence[str], time: str) -> Schemas:
    """Return the columns of streams named in queries, with types inferred from comparisons."""
    schemas: dict[str, dict[str, SqlType]] = {}
    for sql in texts:
        tree = parse_query(sql)
        tables = {t.alias_or_name: t.name for t in tree.find_all(exp.Table)}
        for name in tables.values():
            schemas.setdefault(name, {time: SqlType("timestamp")})
        for column in tree.find_all(exp.Column):
            stream = tables.get(column.table)
            if stream is not None and not isinstance(column.this, exp.Star):
                inferred = schemas[stream].get(column.name)
                kind = _infer_literal_type(column)
                if inferred is None or (inferred.name == "binary" and kind is not None):
                    schemas[stream][column.name] = kind or SqlType("binary")
    return schemas


def _infer_literal_type(column: exp.Column) -> SqlType | None:
    """Return the type of a literal beside a column; None if there is none."""
    column_parent = column.parent
    for literal in column_parent.find_all(exp.Literal) if column_parent is not None else ():
        if literal.is_string:
            return SqlType("string")
        return SqlType("double" if "." in literal.this else "bigint")
    return None
