"""Settings of a shared join, and checks of its queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from sqlglot import exp

from braid.condition.column_names import parse_condition
from braid.condition.parser import parse_predicate
from braid.condition.spark_dialect import SparkSql
from braid.condition.spark_type_checker import SparkAnalyzer
from braid.condition.sql_types import Analyzer
from braid.condition.term_normalizer import split_conjuncts
from braid.core.join_kinds import parse_kind
from braid.core.match_rules import (
    MatchArguments,
    MatchRule,
    make_time_rule,
    parse_match,
)
from braid.core.query import Query, unite_kinds
from braid.errors import PredicateError
from braid.join_config import JoinConfig
from braid.sources.stream_source import AnalyzedJoin
from braid.time_arguments import Columns
from braid.util.durations import Span
from braid.util.json_codec import to_plain

_STORED = ("name", "windows", "selections", "bitmap_position", "complete_since")
"""Fields of a query in ``run.json``, before its kind and the arguments of an as-of query."""
ChainText = str | tuple[str, ...]
"""A mode of a chain, or the ages at which its slices end."""


@dataclass(frozen=True)
class SharedJoinConfig(JoinConfig):
    """Settings of a SharedJoin. The routing key of a tuple is derived from its query bitmap.

    Its kind preserves the streams that some query preserves.

    - ``chain``: the chain as it was given.
    """

    shares_queries = True
    run_name = "shared run"

    chain: ChainText = "auto"

    def to_json(self) -> dict[str, Any]:
        queries = [
            [
                *(to_plain(getattr(q, name)) for name in _STORED),
                q.kind.to_json(list(self.streams)),
                None if q.match is None else q.match.to_arguments(),
            ]
            for q in self.queries
        ]
        more = {"chain": to_plain(self.chain), "queries": queries}
        return {**super().to_json(), "how": "inner", **more}

    @classmethod
    def can_restore(cls, stored: Mapping[str, Any]) -> bool:
        return "chain" in stored

    @classmethod
    def from_json(
        cls,
        stored: Mapping[str, Any],
        columns: Columns,
        executor: Any = "auto",
        driver_memory: Any = None,
    ) -> Self:
        chain = stored["chain"]
        config = super().from_json(stored, columns, executor, driver_memory)
        queries = tuple(_restore_query(config, each) for each in stored["queries"])
        return replace(
            config,
            chain=chain if isinstance(chain, str) else tuple(chain),
            queries=queries,
            kind=unite_kinds(queries),
        )


def _restore_query(config: JoinConfig, stored: Sequence[Any]) -> Query:
    name, windows, selections, bit, since, how, asof = stored
    kind = parse_kind(how, list(config.streams))
    match = _parse_query_match(config, MatchArguments(**(asof or {})))
    return Query(name, tuple(windows), tuple(selections), bit, tuple(since), kind, match)


def make_query(
    join: AnalyzedJoin,
    name: str,
    windows: Span | Mapping[str, Span] | None = None,
    where: Mapping[str, str] | None = None,
    on: str | None = None,
    streams: Sequence[str] | None = None,
    judges: Mapping[str, Analyzer] | None = None,
    how: Any = "inner",
    **asof: Any,
) -> Query:
    """Return a query for a shared join.

    ``how``: kind of the query; see ``braid.core.join_kinds``. ``asof``: the arguments of an as-of
    query; see ``braid.core.match_rules``. ``judges``: analyzers by stream, as
    ``selection_analyzers`` returns them; None: create them as needed.

    Raises ValueError if the join cannot serve the query.
    """
    config = join.config
    if streams is not None and set(streams) != set(config.streams):
        raise ValueError(
            f"query {name!r} joins {', '.join(streams)}; this join is of "
            f"{', '.join(config.streams)}"
        )
    if on is not None and _normalize_conjuncts(on) != _normalize_conjuncts(config.on):
        raise ValueError(
            f"query {name!r} joins on {on!r}; this join is on {config.on!r}; selections go in where"
        )
    match = _parse_query_match(config, MatchArguments(**asof))
    query = Query.parse(name, tuple(config.streams), windows, where, how, match)
    if match is not None and config.shed is not None:
        raise ValueError(
            f"query {name!r} has match={match.match!r} in a join that sheds load, where pairs are "
            "left out, so that no partner can be said to be the best; leave one of the two out"
        )
    if not query.kind.is_inner and len(config.streams) > 2:
        raise ValueError(
            f"query {name!r} has how={how!r}, and this join is of {len(config.streams)} streams; "
            "queries of a shared join of more than two streams are inner joins, and a StreamJoin "
            "keeps tuples of several"
        )
    if not query.kind.is_inner and config.shed is not None:
        raise ValueError(
            f"query {name!r} has how={how!r} in a join that sheds load, where pairs are left out, "
            "so that no tuple can be said to have no partner; leave one of the two out"
        )
    each, by = zip(config.streams, query.selections, strict=True), judges or {}
    selections = (_check_selection(join, a, sql, name, by.get(a)) for a, sql in each)
    return replace(query, selections=tuple(selections))


def _parse_query_match(config: JoinConfig, given: MatchArguments) -> MatchRule | None:
    """Return the rule of an as-of query; None: it is none. Raises ValueError if it is invalid."""
    options = parse_match(given, config.streams, config.event_time_columns)
    if options is None:
        return None
    if options.order:
        raise ValueError(
            f"order is {given.order!r}, but as-of queries of a shared join compare event times; a "
            "StreamJoin compares other columns"
        )
    return make_time_rule(options, [*[*config.streams.values()][1]])


def selection_analyzers(
    join: AnalyzedJoin, queries: Sequence[Mapping[str, Any]]
) -> dict[str, Analyzer]:
    """Return one analyzer per stream, which has checked all selections of these queries.

    Checking all selections of a stream at once takes as long as checking one. ``queries``:
    arguments of ``make_query``.
    """
    wheres = [w for each in queries if isinstance(w := each.get("where"), Mapping)]
    analyzers = dict[str, Analyzer]()
    for alias, stream in join.source.streams.items():
        if texts := {w[alias] for w in wheres if isinstance(w.get(alias), str)}:
            analyzers[alias] = analyzer = SparkAnalyzer({alias: stream})
            analyzer.check_all(sorted(texts))
    return analyzers


def _check_selection(
    join: AnalyzedJoin, alias: str, sql: str | None, name: str, judge: Analyzer | None
) -> str | None:
    """Return a query's selection, checked against the columns of its stream."""
    if sql is None:
        return None
    stream = join.source.streams[alias]
    try:
        return parse_predicate(sql, {alias: stream}, [None], judge).filters[0]
    except PredicateError as error:
        place = f"in the selection of {name!r} on {alias}"
        raise PredicateError(str(error).replace("in the join condition", place)) from None


def _normalize_conjuncts(on: str) -> set[str]:
    """Return the conjuncts of a condition as a set. The order of sides does not matter."""
    tree, conjuncts = parse_condition(on), set()
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("this", identifier.name.lower())
    for c in split_conjuncts(tree):
        sides = (
            sorted(side.sql(dialect=SparkSql) for side in c.iter_expressions())
            if isinstance(c, exp.EQ)
            else []
        )
        conjuncts.add(" = ".join(sides) or c.sql(dialect=SparkSql))
    return conjuncts
