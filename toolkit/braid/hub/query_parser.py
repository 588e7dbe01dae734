"""Parse the text of a query into its definition and the expressions over its matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from braid.condition.column_names import resolve_columns
from braid.condition.term_normalizer import split_conjuncts
from braid.core.match_rules import MatchRule
from braid.errors import PredicateError, QueryError
from braid.hub.query_conditions import (
    QueryConditions,
    Schemas,
    reads_only,
    referenced_aliases,
    to_sql,
)
from braid.hub.query_dialect import ACCEPTED, parse_query
from braid.hub.query_kinds import (
    QueryKind,
    check_join_words,
    join_subqueries,
    parse_query_kind,
    refuse_bare_using,
    refuse_misplaced_subquery,
)
from braid.hub.query_window_parser import bound_asof_windows, interval_windows, parse_windows
from braid.papers.reuse.query_definition import ASOF, ASOF_LEFT, Definition
from braid.util.durations import Span

_AGGREGATES = (exp.Count, exp.Sum, exp.Min, exp.Max, exp.Avg)
_CHANGING = ("RAND", "RANDN", "RANDOM", "UUID", "NOW", "SHUFFLE", "MONOTONICALLY_INCREASING_ID")


@dataclass(frozen=True)
class StreamQuery:
    """A parsed query.

    - ``definition``: over the streams' names.
    - ``aliases``: stream by alias, in the order of the query.
    - ``select``, ``where``, ``groups``, ``having``: Spark SQL over ``alias.column``, evaluated on
      an operator's results.
    - ``on``: join condition over the streams' names.
    - ``filters``: selection on each stream, over its name.
    - ``aggregates``: whether an aggregate is selected.
    """

    sql: str
    definition: Definition
    aliases: Mapping[str, str]
    select: tuple[str, ...]
    where: str | None
    on: str
    filters: Mapping[str, str]
    groups: tuple[str, ...] = ()
    having: str | None = None
    aggregates: bool = False

    @property
    def slide(self) -> int | None:
        """Interval between answers, in microseconds; None: every match is an answer."""
        return min(self.definition.slides, default=None)

    def columns_read(self, time: str) -> dict[str, frozenset[str]]:
        """Return the columns that an answer needs, by stream, event time included."""
        columns = zip(self.definition.streams, self.definition.columns, strict=True)
        return {s: c | {time} for s, c in columns}

    @property
    def windows_by_stream(self) -> dict[str, int]:
        """Window by stream, in microseconds."""
        return dict(zip(self.definition.streams, self.definition.windows, strict=True))


def parse_stream_query(
    sql: str,
    schemas: Schemas,
    time: str,
    windows: Mapping[str, Span] | Span | None = None,
    slide: Span | None = None,
    stored: bool = False,
) -> StreamQuery:
    """Parse a query over streams with these columns, whose event time is ``time``.

    ``windows``, one for all or by alias, and ``slide`` are for queries without brackets. In a query
    of two streams, ``a.ts BETWEEN b.ts - INTERVAL x AND b.ts + INTERVAL y`` is a window on both.

    ``stored``: the query was accepted before grouped columns were checked, so they are not checked.
    An error in them is raised when its answer is read.

    Raises QueryError for an invalid query.
    """
    reader = _Reader(parse_query(sql), schemas, time)
    query = reader.parse_query(sql, windows, slide)
    if not stored and (query.groups or query.aggregates):
        reader.check_grouped_columns()
    return query


class _Reader:
    def __init__(self, tree: exp.Select, schemas: Schemas, time: str) -> None:
        self.tree, self.schemas, self.time = join_subqueries(tree, schemas), schemas, time
        self.tables = dict(self._find_tables())
        check_join_words(self.tables)
        self.streams = {a: self._find_stream(t) for a, t in self.tables.items()}
        self.columns = {a: list(schemas[s]) for a, s in self.streams.items()}
        self.visible = [*self.streams]
        self._check_structure()

    def parse_query(
        self, sql: str, windows: Mapping[str, Span] | Span | None, slide: Span | None
    ) -> StreamQuery:
        """Return the parsed query."""
        kind, on, filters = self._read_conjuncts()
        ranges, slides = parse_windows(self.tables, windows, slide)
        rule = kind.make_match_rule([*self.schemas[[*self.streams.values()][-1]]])
        if rule is not None:
            others = [part for part in on if part is not kind.order]
            ranges, on = bound_asof_windows(rule, others, self.time, [*self.streams], ranges)
            if kind.order and not any(len(referenced_aliases(part)) > 1 for part in on):
                on = [kind.order, *on]  # which connects the streams
        elif not ranges and len(self.streams) == 2:
            ranges, on, filters = self._read_intervals(kind, on, filters)
        if bare := [a for a in self.streams if a not in ranges]:
            raise QueryError(
                f"stream {bare[0]!r} has no window; write one after its name, as in {bare[0]} "
                "[RANGE 5 MINUTES], or give windows="
            )
        self.visible = kind.visible_aliases([*self.streams])
        self.columns = {a: self.columns[a] for a in self.visible}
        select, groups, having = self._parse_select(), self._parse_group_by(), self._parse_having()
        expressions = [*select, *groups, *([having] if having else [])]
        conditions = self._sort_conditions(kind, on, filters)
        definition = Definition.make(
            {self.streams[a]: w for a, w in ranges.items()},
            conditions.join_conjuncts,
            conditions.stream_selections,
            conditions.read_columns(expressions),
            slides,
        )
        definition = self._with_kind(definition, kind, rule)
        self._check_connected(definition)
        if not kind.is_plain:
            _check_plain_rows(kind, expressions, groups, slides)
        self._check_aggregates(select, groups, having, slides)
        return StreamQuery(
            sql,
            definition,
            self.streams,
            tuple(map(to_sql, select)),
            conditions.where_sql,
            conditions.join_condition,
            conditions.filter_texts,
            tuple(map(to_sql, groups)),
            None if having is None else to_sql(having),
            any(True for tree in expressions for _ in tree.find_all(exp.AggFunc)),
        )

    def _find_tables(self) -> Iterator[tuple[str, exp.Table]]:
        if (source := self.tree.args.get("from_")) is None:
            raise QueryError(
                "the query has no FROM; it names two streams or more of " + ", ".join(self.schemas)
            )
        tables = [source.this, *(j.this for j in self.tree.args.get("joins") or [])]
        seen = set()
        for table in tables:
            if not isinstance(table, exp.Table) or table.args.get("db"):
                raise QueryError(
                    "FROM takes streams by name, not queries or functions; the streams are "
                    + ", ".join(self.schemas)
                )
            name = table.alias_or_name
            if name.lower() in seen:
                raise QueryError(f"two streams are called {name!r}; give them different aliases")
            seen.add(name.lower())
            yield name, table

    def _find_stream(self, table: exp.Table) -> str:
        stream = next((s for s in self.schemas if s.lower() == table.name.lower()), None)
        if stream is None:
            raise QueryError(
                f"stream {table.name!r} is unknown; the streams are {', '.join(self.schemas)}"
            )
        return stream

    def _check_structure(self) -> None:
        names = list(self.streams.values())
        if (
            self.tree.find(exp.Subquery, exp.Exists, exp.Window)
            or len(list(self.tree.find_all(exp.Select))) > 1
        ):
            refuse_misplaced_subquery(self.tree)
            raise QueryError(f"a subquery or a window function is not supported; {ACCEPTED}")
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise QueryError(f"stream {twice[0]!r} is read twice; a query reads each stream once")
        if len(names) < 2:
            raise QueryError(
                f"the query reads {names[0]!r} alone; it must join two streams or more"
            )
        for call in self.tree.find_all(exp.Func):
            name = call.name if isinstance(call, exp.Anonymous) else call.sql_name()
            if name.upper() in _CHANGING or name.upper().startswith("CURRENT_"):
                raise QueryError(f"{name.lower()}() is not deterministic, which is not supported")

    def _qualify_columns(self, tree: exp.Expr) -> exp.Expr:
        """Return a tree with every column as alias.column, spelled as in the streams."""
        self._refuse_bare_using(tree)
        try:
            named = resolve_columns(tree, self.columns)
        except PredicateError as error:
            reason = str(error).replace("in the join condition", "in the query")
            raise QueryError(reason) from None
        if field := next(
            (d for d in named.find_all(exp.Dot) if isinstance(d.this, exp.Column)), None
        ):
            # Its text is that of another stream's column if the stream has the name of the struct.
            raise QueryError(
                f"{to_sql(field).replace('`', '')} is a field of a struct, which a hub does not "
                "read; write it into a column of the stream"
            )
        return named

    def _read_conjuncts(self) -> tuple[QueryKind, list[exp.Expr], list[exp.Expr]]:
        """Return the kind of the join, and the conjuncts of ON and of WHERE."""
        joins, where = self.tree.args.get("joins") or [], self.tree.args.get("where")
        on = [self._qualify_columns(part) for join in joins for part in self._split_join(join)]
        rest = [] if where is None else split_conjuncts(where.this)
        filters = [self._qualify_columns(part) for part in rest]
        kind = parse_query_kind(joins, [*self.streams], on, filters, self.time)
        if kind.is_null_test:  # which the kind stands for
            filters = [part for part in filters if reads_only(part, [*self.streams][:1])]
        return kind, on, filters

    def _read_intervals(
        self, kind: QueryKind, on: list[exp.Expr], filters: list[exp.Expr]
    ) -> tuple[dict[str, int], list[exp.Expr], list[exp.Expr]]:
        """Return the windows that conditions on event times express, and the other conditions."""
        if not kind.is_plain:
            return *interval_windows(on, self.time), filters
        ranges, rest = interval_windows([*on, *filters], self.time)
        return ranges, rest, []

    def _sort_conditions(
        self, kind: QueryKind, on: Sequence[exp.Expr], filters: Sequence[exp.Expr]
    ) -> QueryConditions:
        """Return the conditions by what they do: select tuples, or decide about partners."""
        aliases = [*self.streams]
        preserved = [aliases[stream] for stream in kind.kind.preserved]
        matching = [part for part in on if preserved and reads_only(part, preserved)]
        rest = [part for part in on if part not in matching]
        return QueryConditions([*rest, *filters], self.streams, self.schemas, matching, preserved)

    def _with_kind(
        self, definition: Definition, kind: QueryKind, rule: MatchRule | None
    ) -> Definition:
        """Return the definition with the kind of its join. A right join is a left one."""
        if kind.is_plain:
            return definition
        if rule is not None:
            name, left = (
                (ASOF if kind.kind.is_inner else ASOF_LEFT),
                next(iter(self.streams.values())),
            )
            return replace(definition, kind=name, left_stream=left, match=rule)
        name = "left" if kind.kind.name == "right" else kind.kind.name
        left = min(definition.streams)
        if name != "full":
            left = self.streams[[*self.streams][kind.kind.preserved[0]]]
        return replace(definition, kind=name, left_stream=left)

    def _split_join(self, join: exp.Join) -> Iterator[exp.Expr]:
        if (on := join.args.get("on")) is not None:
            yield from split_conjuncts(on)
        for name in join.args.get("using") or []:
            yield from self._expand_using(name.name, join.this.alias_or_name)

    def _expand_using(self, name: str, alias: str) -> Iterator[exp.Expr]:
        before = list(self.tables)[: list(self.tables).index(alias)]
        owner = next(
            (a for a in before if name.lower() in map(str.lower, self.columns[a])), before[0]
        )
        yield exp.EQ(this=exp.column(name, table=owner), expression=exp.column(name, table=alias))

    def _parse_select(self) -> list[exp.Expr]:
        select: list[exp.Expr] = []
        for item in self.tree.expressions:
            if isinstance(item, exp.Star):
                self._refuse_using()
                select += [exp.column(exp.Star(), table=a) for a in self.visible]
            elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
                alias = next((a for a in self.visible if a.lower() == item.table.lower()), None)
                if alias is None:
                    raise QueryError(
                        f"{item.table}.* is asked for; the streams with columns are "
                        + ", ".join(self.visible)
                    )
                select.append(exp.column(exp.Star(), table=alias))
            else:
                named = self._qualify_columns(item.copy())
                name = item.alias_or_name
                select.append(named if item.alias or not name else exp.alias_(named, name))
        return select

    def _refuse_bare_using(self, tree: exp.Expr) -> None:
        """Raise QueryError for a column of USING without alias, which has two sides."""
        for join in self.tree.args.get("joins") or []:
            for name in join.args.get("using") or []:
                equal = next(self._expand_using(name.name, join.this.alias_or_name))
                left, right = (to_sql(side).replace("`", "") for side in equal.flatten())
                if any(not c.table and c.name == name.name for c in tree.find_all(exp.Column)):
                    refuse_bare_using(name.name, left, right, join.side.upper())

    def _refuse_using(self) -> None:
        """Raise QueryError for a star over a join by USING, since Spark has those columns once."""
        if using := next(
            (j for j in self.tree.args.get("joins") or [] if j.args.get("using")), None
        ):
            raise QueryError(
                f"* is selected of a JOIN ... USING ({using.args['using'][0].name}), where Spark "
                "has that column once; name the columns, or join with ON"
            )

    def _parse_group_by(self) -> list[exp.Expr]:
        group = self.tree.args.get("group")
        if group is None:
            return []
        if any(v for k, v in group.args.items() if k != "expressions"):
            raise QueryError(
                "GROUP BY takes columns; ROLLUP, CUBE and grouping sets are not supported"
            )
        if other := [e for e in group.expressions if not isinstance(e, exp.Column)]:
            raise QueryError(f"GROUP BY takes columns; it has {to_sql(other[0])}")
        return [self._qualify_columns(e.copy()) for e in group.expressions]

    def _parse_having(self) -> exp.Expr | None:
        having = self.tree.args.get("having")
        return None if having is None else self._qualify_columns(having.this.copy())

    def _check_aggregates(
        self,
        select: Sequence[exp.Expr],
        groups: Sequence[exp.Expr],
        having: exp.Expr | None,
        slides: set[int],
    ) -> None:
        expressions = [*select, *([having] if having is not None else [])]
        calls = [c for tree in expressions for c in tree.find_all(exp.AggFunc)]
        if having is not None and not groups and not calls:
            raise QueryError("HAVING needs GROUP BY")
        if other := [c for c in calls if not isinstance(c, _AGGREGATES)]:
            raise QueryError(
                f"the aggregate {to_sql(other[0])} is not supported; count, sum, min, max and avg "
                "are"
            )
        if (groups or calls) and not slides:
            raise QueryError(
                "an aggregate needs a SLIDE, the interval of its answers, as in [RANGE 5 MINUTES "
                "SLIDE 1 MINUTE]"
            )

    def check_grouped_columns(self) -> None:
        """Raise QueryError if a column selected of groups is neither grouped nor aggregated."""
        groups, having = self._parse_group_by(), self._parse_having()
        expressions = [*self._parse_select(), *([having] if having is not None else [])]
        same = {(g.table, g.name) for g in groups if isinstance(g, exp.Column)}
        for column in (c for tree in expressions for c in tree.find_all(exp.Column)):
            star = isinstance(column.this, exp.Star)
            names = self.columns[column.table] if star else [column.name]
            other = [n for n in names if (column.table, n) not in same]
            if other and column.find_ancestor(exp.AggFunc, exp.Filter) is None:
                raise QueryError(
                    f"{column.table}.{other[0]} is selected of groups of matches; it must be in "
                    "GROUP BY or in an aggregate"
                )

    def _check_connected(self, definition: Definition) -> None:
        if not definition.is_connected:
            raise QueryError(
                "the streams are not all joined with each other: "
                + ", ".join(self.streams)
                + "; a cross product is not supported"
            )


def _check_plain_rows(
    kind: QueryKind, trees: Sequence[exp.Expr], groups: Sequence[exp.Expr], slides: set[int]
) -> None:
    """Raise QueryError if a query that is not an inner join asks for ticks or groups.

    A tuple may be without partner at one tick and have one at the next.
    """
    if slides or groups or any(tree.find(exp.AggFunc) is not None for tree in trees):
        what = "a SLIDE" if slides else "groups"
        raise QueryError(
            f"{kind.words} is asked for with {what}; a query that is not an inner join is answered "
            "row by row, as soon as a row is final"
        )
