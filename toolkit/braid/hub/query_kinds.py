"""The kind of a query's join: what its words, its subqueries and its WHERE ask for.

No kind is ever taken for another one: a statement is of one of the kinds of
``braid.core.join_kinds``, or it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn

from sqlglot import exp

from braid.condition.syntax_arguments import AsWritten
from braid.condition.term_normalizer import split_conjuncts
from braid.core.join_kinds import JoinKind, parse_kind
from braid.core.match_rules import Match, MatchRule
from braid.errors import QueryError
from braid.hub.query_conditions import Schemas, referenced_aliases, to_sql

_KINDS = {
    **dict.fromkeys([("", ""), ("", "INNER"), ("", "CROSS")], "inner"),
    **{(side, kind): side.lower() for side in ("LEFT", "RIGHT", "FULL") for kind in ("", "OUTER")},
    **{(side, kind): kind.lower() for side in ("", "LEFT") for kind in ("SEMI", "ANTI")},
}
"""Kinds by side and kind of a JOIN. Without a kind, sqlglot's CROSS is a comma."""
_JOIN_WORDS = ("ANY", "APPLY", "GLOBAL", "HASH", "LOOP", "MERGE", "OUTER", "PASTE", "POSITIONAL")
"""Words of joins in other dialects, which Spark takes as the alias of the stream before them."""
_MATCHES: dict[type[exp.Expr], Match] = {
    exp.GTE: "latest",
    exp.GT: "latest",
    exp.LTE: "first",
    exp.LT: "first",
}
"""As-of matches by how the left time is compared with the right one."""
_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
}


class QueryKind(NamedTuple):
    """The kind of a query's join.

    - ``kind``: which tuples are answered without a partner.
    - ``match``: of an as-of join, latest or first; None: it is none.
    - ``is_strict``: whether an as-of join leaves out partners at the same time.
    - ``words``: the join as the query has it.
    - ``is_null_test``: whether it is an anti join written as LEFT JOIN with IS NULL in WHERE.
    - ``order``: of an as-of join, the conjunct that compares the event times.
    """

    kind: JoinKind
    match: Match | None = None
    is_strict: bool = False
    words: str = "JOIN"
    is_null_test: bool = False
    order: exp.Expr | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it is an inner join, and no as-of join."""
        return self.kind.is_inner and not self.match

    def visible_aliases(self, aliases: Sequence[str]) -> list[str]:
        """Return the streams whose columns the query can select."""
        is_half = self.kind.name in ("semi", "anti") and not self.is_null_test
        return [*aliases[:1]] if is_half else [*aliases]

    def make_match_rule(self, columns: Sequence[str]) -> MatchRule | None:
        """Return the rule of an as-of join by event time; None: it is none.

        ``columns``: those of the second stream, which decide between partners at the same time.
        """
        if self.match is None:
            return None
        return MatchRule(self.match, is_strict=self.is_strict, ties=tuple(columns))


def parse_query_kind(
    joins: Sequence[exp.Join],
    aliases: Sequence[str],
    on: Sequence[exp.Expr],
    where: Sequence[exp.Expr],
    time: str,
) -> QueryKind:
    """Return the kind of a query's join.

    Parameters
    ----------
    joins
        Joins of the query.
    aliases
        The streams, in order.
    on, where
        Conjuncts of ON and of WHERE, with alias and exact spelling of each column.
    time
        The event-time column.

    Raises QueryError for words that ask for anything else.
    """
    names = [(_find_kind_name(join), join) for join in joins]
    special = [(name, join) for name, join in names if name != "inner" or join.method]
    if not special:
        return QueryKind(parse_kind("inner", aliases))
    name, join = special[0]
    words = _describe_join_words(join)
    if len(joins) > 1:
        raise QueryError(
            f"{words} stands beside another join; a query has one join if it is no inner join"
        )
    if join.method:
        return _parse_asof_match(name, words, aliases, on, where, time)
    shown = _check_absent_sides(name, words, aliases, on, where)
    return QueryKind(parse_kind(shown, aliases), words=words, is_null_test=shown != name)


def _find_kind_name(join: exp.Join) -> str:
    if (method := join.method.upper()) not in ("", "ASOF"):
        raise QueryError(
            f"a {method} JOIN is asked for, whose columns depend on the streams; write JOIN ... ON"
        )
    name = _KINDS.get((join.side.upper(), join.kind.upper()))
    if name is None:
        raise QueryError(
            f"{_describe_join_words(join)} is asked for; a join is [INNER] JOIN, or LEFT, RIGHT, "
            "FULL, SEMI or ANTI JOIN"
        )
    return name


def _describe_join_words(join: exp.Join) -> str:
    words = [join.method, join.side, join.kind, "JOIN"]
    text = " ".join(word.upper() for word in words if word)
    return f"{'an' if text[0] in 'AEIOU' else 'a'} {text}"


def check_join_words(tables: Mapping[str, exp.Table]) -> None:
    """Raise QueryError for an alias that is the word of a join elsewhere, unless it is quoted."""
    for alias, table in tables.items():
        given = table.args.get("alias")
        if given and alias.upper() in _JOIN_WORDS and not given.this.args.get("quoted"):
            raise QueryError(
                f"{alias} after {table.name} would be its alias, as Spark's joins have no such "
                f"word; write `{alias}` if it is one"
            )


def _check_absent_sides(
    name: str,
    words: str,
    aliases: Sequence[str],
    on: Sequence[exp.Expr],
    where: Sequence[exp.Expr],
) -> str:
    """Return the kind of a join, which is anti if WHERE keeps unmatched rows alone.

    Raises QueryError for another condition in WHERE on a side that may be absent.
    """
    absent = {"right": aliases[:1], "full": aliases}.get(name, aliases[1:])
    reading = [part for part in where if referenced_aliases(part) & {*absent}]
    if name == "left" and len(reading) == 1 and _is_key_null(reading[0], on):
        return "anti"
    if reading and name in ("semi", "anti"):
        raise QueryError(
            f"WHERE {to_sql(reading[0]).replace('`', '')} reads {absent[0]}, but {words} "
            "gives no column of it; write the condition into ON"
        )
    if reading:
        alias = min(referenced_aliases(reading[0]) & {*absent})
        raise QueryError(
            f"WHERE {to_sql(reading[0]).replace('`', '')} reads {alias}, which is NULL in the "
            f"unmatched rows of {words}, so that it is another join; write the condition into ON, "
            f"or write {_suggest_join(reading[0], alias, aliases)}"
        )
    return name


def _suggest_join(part: exp.Expr, absent: str, aliases: Sequence[str]) -> str:
    """Return the join that a condition of WHERE on an absent side may mean."""
    if not isinstance(part, exp.Is) or not isinstance(part.expression, exp.Null):
        return "JOIN"
    preserved = next(alias for alias in aliases if alias != absent)
    return f"{preserved} LEFT ANTI JOIN {absent} for the rows of {preserved} without a match"


def _is_key_null(part: exp.Expr, on: Sequence[exp.Expr]) -> bool:
    """Return whether a conjunct says that a column is NULL that is not in matched rows."""
    if not isinstance(part, exp.Is) or not isinstance(part.expression, exp.Null):
        return False
    sides = [side for each in on if isinstance(each, exp.EQ) for side in _list_sides(each)]
    return isinstance(part.this, exp.Column) and part.this in sides


def _list_sides(comparison: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    return comparison.this.unnest(), comparison.expression.unnest()


def _parse_asof_match(
    name: str,
    words: str,
    aliases: Sequence[str],
    on: Sequence[exp.Expr],
    where: Sequence[exp.Expr],
    time: str,
) -> QueryKind:
    """Return the kind of an as-of join.

    Raises QueryError unless ON has one comparison of the event times, and for conditions that are
    evaluated after a partner is chosen.
    """
    if name not in ("inner", "left"):
        raise QueryError(f"{words} is asked for; an as-of join is ASOF JOIN or ASOF LEFT JOIN")
    if late := [part for part in where if referenced_aliases(part) & {*aliases[1:]}]:
        raise QueryError(
            f"WHERE {to_sql(late[0]).replace('`', '')} reads {aliases[1]}, whose row {words} "
            "chooses before WHERE; write the condition into ON"
        )
    orders = [(part, sign) for part in on if (sign := _find_time_order(part, aliases, time))]
    if len(orders) != 1:
        raise QueryError(
            f"{words} has {len(orders)} comparisons of {aliases[0]}.{time} with "
            f"{aliases[1]}.{time} by >=, >, <= or < in ON; it takes exactly one"
        )
    part, sign = orders[0]
    is_strict = sign in (exp.GT, exp.LT)
    return QueryKind(parse_kind(name, aliases), _MATCHES[sign], is_strict, words, order=part)


def _find_time_order(part: exp.Expr, aliases: Sequence[str], time: str) -> type[exp.Expr] | None:
    """Return how a conjunct compares the first stream's time with the second one's."""
    if type(part) not in _FLIPPED:
        return None
    sides = [(side.table, side.name) for side in _list_sides(part) if isinstance(side, exp.Column)]
    times = [(alias, time) for alias in aliases]
    if sides == times:
        return type(part)
    return _FLIPPED[type(part)] if sides == times[::-1] else None


def join_subqueries(tree: exp.Select, columns: Schemas) -> exp.Select:
    """Return a query whose EXISTS and IN are written as SEMI and ANTI JOIN.

    ``columns``: columns by stream. A query in any other place is left as it is.

    Raises QueryError for one that a hub does not read, and for NOT IN.
    """
    where = tree.args.get("where")
    subqueries = [] if where is None else [*_find_subqueries(where.this)]
    if not subqueries:
        return tree
    if tree.args.get("joins"):
        raise QueryError(
            f"{to_sql(subqueries[0].part)} stands beside a join; a query has one join if it is no "
            "inner join"
        )
    if len(subqueries) > 1:
        raise QueryError("WHERE has two queries, which are two joins; a query has one join")
    source = tree.args.get("from_")
    if source is None or not isinstance(source.this, exp.Table):
        return tree
    return _join_subquery(tree, source.this, subqueries[0], columns)


def refuse_misplaced_subquery(tree: exp.Select) -> None:
    """Raise QueryError for an EXISTS or IN that is no condition of WHERE by itself."""
    within = (each for each in tree.find_all(exp.In) if each.args.get("query"))
    if (inner := tree.find(exp.Exists) or next(within, None)) is not None:
        raise QueryError(
            f"{to_sql(inner)} is not by itself a condition of WHERE, or under one NOT; write WHERE "
            "[NOT] EXISTS (SELECT ...) AND ..., or WHERE x IN (SELECT ...)"
        )


def refuse_bare_using(name: str, left: str, right: str, side: str) -> NoReturn:
    """Raise QueryError for a column of USING without alias, which has two sides.

    ``side``: LEFT, RIGHT or FULL; empty: the join is inner.
    """
    other = {"RIGHT": right, "FULL": f"coalesce({left}, {right})"}.get(side, left)
    alone = ", one of which is NULL where a row has no partner" if side else ""
    raise QueryError(f"column {name!r} of USING may be {left} or {right}{alone}; write {other}")


class _Subquery(NamedTuple):
    """A conjunct with a query: its join, the query, and the value that is looked up in it."""

    part: exp.Expr
    kind: str
    query: exp.Expr
    value: exp.Expr | None = None


def _find_subqueries(condition: exp.Expr) -> Iterator[_Subquery]:
    for part in split_conjuncts(condition):
        inner = part.this.unnest() if isinstance(part, exp.Not) else part
        inner = inner.this if isinstance(inner, AsWritten) else inner
        kind = "ANTI" if isinstance(part, exp.Not) else "SEMI"
        if isinstance(inner, exp.Exists) and isinstance(inner.this, exp.Query):
            yield _Subquery(part, kind, inner.this)
        elif isinstance(inner, exp.In) and (query := inner.args.get("query")) is not None:
            if kind == "ANTI":
                _refuse_not_in(part)
            yield _Subquery(part, kind, query.unnest(), inner.this)


def _refuse_not_in(part: exp.Expr) -> NoReturn:
    raise QueryError(
        f"{to_sql(part)} is asked for, which a single NULL in the query makes empty; write NOT "
        "EXISTS (SELECT ... WHERE ...)"
    )


def _join_subquery(
    tree: exp.Select, outer: exp.Table, subquery: _Subquery, columns: Schemas
) -> exp.Select:
    query = subquery.query
    table = query.args["from_"].this if query.args.get("from_") is not None else None
    read = {name for name, value in query.args.items() if value}
    if not isinstance(table, exp.Table) or not read <= {"expressions", "from_", "where"}:
        raise QueryError(
            f"{to_sql(subquery.part)} has a query that is more than SELECT ... FROM stream "
            "[RANGE ...] WHERE ..."
        )
    if any(item.find(exp.Func) is not None for item in query.expressions):
        raise QueryError(
            f"{to_sql(subquery.part)} has a query that calls a function in its SELECT, which may "
            "be an aggregate; it takes columns"
        )
    scope = {t.alias_or_name: _find_column_names(t, columns) for t in (table, outer)}
    outer_scope, where = _select_outer_scope(scope), query.args.get("where")
    on = [] if where is None else split_conjuncts(where.this)
    on = [_qualify_bare_columns(each, scope) for each in on]
    if subquery.value is not None:
        on.append(
            exp.EQ(
                this=_qualify_bare_columns(subquery.value, outer_scope),
                expression=_find_selected_value(subquery, scope),
            )
        )
    rest = [
        _qualify_bare_columns(part, outer_scope)
        for part in split_conjuncts(tree.args["where"].this)
        if part != subquery.part
    ]
    joined = tree.copy()
    joined.set(
        "expressions", [_qualify_bare_columns(item, outer_scope) for item in joined.expressions]
    )
    joined.set("where", exp.Where(this=exp.and_(*rest, copy=True)) if rest else None)
    condition = exp.and_(*on, copy=True) if on else exp.true()
    joined.set("joins", [exp.Join(this=table.copy(), kind=subquery.kind, on=condition)])
    return joined


def _find_selected_value(subquery: _Subquery, scope: Mapping[str, Sequence[str]]) -> exp.Expr:
    items = subquery.query.expressions
    if len(items) != 1 or items[0].find(exp.Star) is not None:
        raise QueryError(f"{to_sql(subquery.part)} has a query that gives no single column")
    return _qualify_bare_columns(items[0].unalias(), scope)


def _select_outer_scope(scope: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """Return the scope outside the subquery."""
    return dict([*scope.items()][-1:])


def _find_column_names(table: exp.Table, columns: Schemas) -> Sequence[str]:
    return next(([*c] for s, c in columns.items() if s.lower() == table.name.lower()), ())


def _qualify_bare_columns(tree: exp.Expr, scope: Mapping[str, Sequence[str]]) -> exp.Expr:
    """Return a tree with an alias for each bare column: of the innermost query that has it."""
    tree = tree.copy()
    for column in tree.find_all(exp.Column):
        owners = [a for a, names in scope.items() if column.name.lower() in map(str.lower, names)]
        if not column.table and owners and not isinstance(column.this, exp.Star):
            column.set("table", exp.to_identifier(owners[0], quoted=True))
    return tree
