"""From the text of a query to its definition, and to what is read of an operator's results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sqlglot import exp

from braid.condition.names import resolved
from braid.condition.predicate import PredicateError
from braid.condition.sqltypes import INTEGRAL, SqlType
from braid.condition.terms import conjuncts
from braid.core.spans import Span, micros
from braid.hub.dialect import QueryError, read, window
from braid.hub.selecting import selecting
from braid.papers.reuse.definition import Column, Definition, Join
from braid.papers.reuse.selections import EVERYTHING, Selection, both

Schemas = Mapping[str, Mapping[str, SqlType]]
"""Types of columns by stream and name."""

_TAKEN = {"expressions", "from_", "joins", "where", "group", "having", "kind", "hint"}
_AGGREGATES = (exp.Count, exp.Sum, exp.Min, exp.Max, exp.Avg)
_CHANGING = ("RAND", "RANDN", "RANDOM", "UUID", "NOW", "SHUFFLE", "MONOTONICALLY_INCREASING_ID")
_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
}


@dataclass(frozen=True)
class StreamQuery:
    """A query that was read.

    ``definition`` is over streams' names. ``aliases`` are the query's own names for them, in its
    order. ``where``, ``select``, ``groups`` and ``having`` are Spark SQL over columns
    ``alias.column``, to be evaluated on an operator's results: the query's compensation. ``on`` is
    what its streams are joined on, and ``filters`` what is asked of each stream alone, over the
    stream's name.
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
    def every(self) -> int | None:
        """How often it is answered, in microseconds; None: every match when it happens."""
        return min(self.definition.slides, default=None)

    @property
    def windows(self) -> dict[str, int]:
        """By stream, its window in microseconds."""
        return dict(zip(self.definition.streams, self.definition.windows, strict=True))


def understood(
    sql: str,
    schemas: Schemas,
    time: str,
    windows: Mapping[str, Span] | Span | None = None,
    every: Span | None = None,
) -> StreamQuery:
    """Read a query over streams with these columns, whose event time is ``time``.

    ``windows``, one for all or by alias, and ``every`` are for queries without brackets. In a query
    of two streams, ``a.ts BETWEEN b.ts - INTERVAL x AND b.ts + INTERVAL y`` is a window on both.

    Raises QueryError, with one sentence, for what is not taken.
    """
    return _Reader(read(sql), schemas, time).query(sql, windows, every)


class _Reader:
    def __init__(self, tree: exp.Select, schemas: Schemas, time: str) -> None:
        self.tree, self.schemas, self.time = tree, schemas, time
        self.tables = dict(self._tables())
        self.streams = {a: self._stream(t) for a, t in self.tables.items()}
        self.columns = {a: list(schemas[s]) for a, s in self.streams.items()}
        self._check()

    def query(
        self, sql: str, windows: Mapping[str, Span] | Span | None, every: Span | None
    ) -> StreamQuery:
        """The query, read."""
        parts = [self._named(c) for c in self._conditions()]
        ranges, slides = self._windows(windows, every)
        parts = self._timed(parts, ranges)
        if bare := [a for a in self.streams if a not in ranges]:
            raise QueryError(
                f"stream {bare[0]!r} has no window; write one after its name, as in {bare[0]} "
                "[RANGE 5 MINUTES], or give windows="
            )
        select, groups, having = self._select(), self._groups(), self._having()
        told = [*select, *groups, *([having] if having else [])]
        definition = Definition.of(
            {self.streams[a]: w for a, w in ranges.items()},
            _closed(self._joins(parts), self.schemas),
            self._selections(parts),
            self._read(told),
            slides,
        )
        self._linked(definition)
        self._grouped(select, groups, having, slides)
        return StreamQuery(
            sql,
            definition,
            self.streams,
            tuple(map(_sql, select)),
            " AND ".join(f"({_sql(p)})" for p in parts) or None,
            " AND ".join(f"({self._of_streams(p)})" for p in parts if len(_aliases(p)) > 1),
            self._filters(parts),
            tuple(map(_sql, groups)),
            None if having is None else _sql(having),
            any(True for tree in select for _ in tree.find_all(exp.AggFunc)),
        )

    def _tables(self) -> Iterator[tuple[str, exp.Table]]:
        source = self.tree.args.get("from_")
        joins = self.tree.args.get("joins") or []
        tables = [source.this if source else None, *(j.this for j in joins)]
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
        for join in joins:
            if join.side or (join.kind or "CROSS").upper() not in ("INNER", "CROSS"):
                raise QueryError(
                    f"a {(join.side or join.kind).upper()} JOIN is asked for; queries of a hub are "
                    "inner joins"
                )

    def _stream(self, table: exp.Table) -> str:
        found = next((s for s in self.schemas if s.lower() == table.name.lower()), None)
        if found is None:
            raise QueryError(
                f"stream {table.name!r} is unknown; the streams are {', '.join(self.schemas)}"
            )
        return found

    def _check(self) -> None:
        names = list(self.streams.values())
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise QueryError(f"stream {twice[0]!r} is read twice; a query reads each stream once")
        if len(names) < 2:
            raise QueryError(
                f"the query reads {names[0]!r} alone; it must join two streams or more"
            )
        for key, value in self.tree.args.items():
            if value and key not in _TAKEN:
                raise QueryError(f"{key.upper().strip('_')} is not taken; {_ACCEPTED}")
        if (
            self.tree.find(exp.Subquery, exp.Exists, exp.Window)
            or len(list(self.tree.find_all(exp.Select))) > 1
        ):
            raise QueryError(f"a query in a query, or a window function, is not taken; {_ACCEPTED}")
        for call in self.tree.find_all(exp.Func):
            name = call.name if isinstance(call, exp.Anonymous) else call.sql_name()
            if name.upper() in _CHANGING or name.upper().startswith("CURRENT_"):
                raise QueryError(f"{name.lower()}() has another answer each time; it is not taken")

    def _named(self, tree: exp.Expr) -> exp.Expr:
        """With every column as alias.column, as they are spelt in the streams."""
        try:
            return resolved(tree, self.columns)
        except PredicateError as error:
            said = str(error).replace("in the join condition", "in the query")
            raise QueryError(said) from None

    def _conditions(self) -> Iterator[exp.Expr]:
        for join in self.tree.args.get("joins") or []:
            if (on := join.args.get("on")) is not None:
                yield from conjuncts(on)
            for name in join.args.get("using") or []:
                yield from self._using(name.name, join.this.alias_or_name)
        if (where := self.tree.args.get("where")) is not None:
            yield from conjuncts(where.this)

    def _using(self, name: str, alias: str) -> Iterator[exp.Expr]:
        before = list(self.tables)[: list(self.tables).index(alias)]
        owner = next(
            (a for a in before if name.lower() in map(str.lower, self.columns[a])), before[0]
        )
        yield exp.EQ(this=exp.column(name, table=owner), expression=exp.column(name, table=alias))

    def _windows(
        self, given: Mapping[str, Span] | Span | None, every: Span | None
    ) -> tuple[dict[str, int], set[int]]:
        ranges: dict[str, int] = {}
        slides: set[int] = set()
        for alias, table in self.tables.items():
            size, slide = window(table)
            ranges |= {} if size is None else {alias: size}
            slides |= set() if slide is None else {slide}
        if given is not None:
            spans = (
                dict(given) if isinstance(given, Mapping) else dict.fromkeys(self.streams, given)
            )
            if wrong := [a for a in spans if a not in self.streams]:
                raise QueryError(
                    f"windows are given for {wrong[0]!r}; the query's streams are called "
                    + ", ".join(self.streams)
                )
            if twice := [a for a in spans if a in ranges]:
                raise QueryError(f"stream {twice[0]!r} has a window in the text and in windows=")
            ranges |= {a: micros(s, f"window of {a}") for a, s in spans.items()}
        if every is not None:
            if slides:
                raise QueryError("SLIDE is given in the text and in every=")
            slides = {micros(every, "every")}
        if len(slides) > 1:
            raise QueryError("the streams have different SLIDEs; a query has one")
        return ranges, slides

    def _timed(self, parts: list[exp.Expr], ranges: dict[str, int]) -> list[exp.Expr]:
        """Without the interval conditions on event times that are windows, which go to
        ``ranges``.
        """
        if ranges or len(self.streams) != 2:
            return parts
        found: dict[str, int] = {}
        rest = []
        for part in parts:
            bound = self._interval(part)
            if bound is None or bound[0] in found or bound[1] <= 0:
                rest.append(part)
            else:
                found[bound[0]] = bound[1]
        if len(found) < 2:
            return parts
        ranges |= found
        return rest

    def _interval(self, part: exp.Expr) -> tuple[str, int] | None:
        """For ``later.ts <= older.ts + INTERVAL w``: the older stream's alias, and its window."""
        if not isinstance(part, (exp.LT, exp.LTE, exp.GT, exp.GTE)):
            return None
        less, more = part.this, part.expression
        if isinstance(part, (exp.GT, exp.GTE)):
            less, more = more, less
        a, b = self._shifted(less), self._shifted(more)
        if a is None or b is None or a[0] == b[0]:
            return None
        strict = isinstance(part, (exp.LT, exp.GT))
        return b[0], b[1] - a[1] + (0 if strict else 1)

    def _shifted(self, tree: exp.Expr) -> tuple[str, int] | None:
        """An event time plus or minus an interval: the alias, and the microseconds."""
        tree = tree.unnest()
        if isinstance(tree, exp.Column):
            return (tree.table, 0) if tree.name == self.time else None
        if not isinstance(tree, (exp.Add, exp.Sub)) or not isinstance(
            tree.expression, exp.Interval
        ):
            return None
        inner = self._shifted(tree.this)
        size = _length(tree.expression)
        if inner is None or size is None:
            return None
        return inner[0], inner[1] + (size if isinstance(tree, exp.Add) else -size)

    def _select(self) -> list[exp.Expr]:
        found: list[exp.Expr] = []
        for item in self.tree.expressions:
            if isinstance(item, exp.Star):
                found += [exp.column(exp.Star(), table=a) for a in self.streams]
            elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
                alias = next((a for a in self.streams if a.lower() == item.table.lower()), None)
                if alias is None:
                    raise QueryError(
                        f"{item.table}.* is asked for; the query's streams are called "
                        + ", ".join(self.streams)
                    )
                found.append(exp.column(exp.Star(), table=alias))
            else:
                named = self._named(item.copy())
                name = item.alias_or_name
                found.append(named if item.alias or not name else exp.alias_(named, name))
        return found

    def _groups(self) -> list[exp.Expr]:
        group = self.tree.args.get("group")
        if group is None:
            return []
        if any(v for k, v in group.args.items() if k != "expressions"):
            raise QueryError(
                "GROUP BY takes columns; ROLLUP, CUBE and sets of groups are not taken"
            )
        if other := [e for e in group.expressions if not isinstance(e, exp.Column)]:
            raise QueryError(f"GROUP BY takes columns; it has {_sql(other[0])}")
        return [self._named(e.copy()) for e in group.expressions]

    def _having(self) -> exp.Expr | None:
        having = self.tree.args.get("having")
        return None if having is None else self._named(having.this.copy())

    def _grouped(
        self,
        select: Sequence[exp.Expr],
        groups: Sequence[exp.Expr],
        having: exp.Expr | None,
        slides: set[int],
    ) -> None:
        told = [*select, *([having] if having is not None else [])]
        calls = [c for tree in told for c in tree.find_all(exp.AggFunc)]
        if having is not None and not groups and not calls:
            raise QueryError("HAVING needs GROUP BY")
        if other := [c for c in calls if not isinstance(c, _AGGREGATES)]:
            raise QueryError(
                f"the aggregate {_sql(other[0])} is not taken; count, sum, min, max and avg are"
            )
        if (groups or calls) and not slides:
            raise QueryError(
                "an aggregate needs a SLIDE, at whose times it is told, as in [RANGE 5 MINUTES "
                "SLIDE 1 MINUTE]"
            )

    def _joins(self, parts: Sequence[exp.Expr]) -> list[Join]:
        return [
            Join(self._of_streams(p), frozenset(self._columns(p)))
            for p in parts
            if len(_aliases(p)) > 1
        ]

    def _columns(self, tree: exp.Expr) -> Iterator[Column]:
        for column in tree.find_all(exp.Column):
            stream = self.streams[column.table]
            if isinstance(column.this, exp.Star):
                yield from ((stream, name) for name in self.schemas[stream])
            else:
                yield stream, column.name

    def _read(self, trees: Sequence[exp.Expr]) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for tree in trees:
            for stream, column in self._columns(tree):
                found.setdefault(stream, set()).add(column)
        return found

    def _of_streams(self, part: exp.Expr) -> str:
        """The canonical text of a condition: streams by name, sides in order."""
        tree = part.copy().unnest()
        for column in tree.find_all(exp.Column):
            column.set("table", exp.to_identifier(self.streams[column.table]))
            column.set("this", exp.to_identifier(column.name))
        if isinstance(tree, exp.EQ) or type(tree) in _FLIPPED:
            left, right = _sql(tree.this), _sql(tree.expression)
            if right < left:
                kind = _FLIPPED.get(type(tree), type(tree))
                tree = kind(this=tree.expression, expression=tree.this)
        return _sql(tree)

    def _alone(self, parts: Sequence[exp.Expr]) -> Iterator[tuple[str, exp.Expr]]:
        first = next(iter(self.streams))
        for part in parts:
            aliases = _aliases(part)
            if len(aliases) < 2:
                yield min(aliases, default=first), part

    def _selections(self, parts: Sequence[exp.Expr]) -> dict[str, Selection]:
        found: dict[str, Selection] = {}
        for alias, part in self._alone(parts):
            stream = self.streams[alias]
            tree = part.copy()
            for column in tree.find_all(exp.Column):
                column.set("table", None)
            one = selecting(tree, self.schemas[stream])
            whole = both(found.get(stream, EVERYTHING), one)
            if whole is None:
                raise QueryError(
                    f"the condition on {alias!r} has too many alternatives to be told apart; write "
                    "it shorter"
                )
            found[stream] = whole
        return found

    def _filters(self, parts: Sequence[exp.Expr]) -> dict[str, str]:
        found: dict[str, list[str]] = {}
        for alias, part in self._alone(parts):
            found.setdefault(self.streams[alias], []).append(f"({self._of_streams(part)})")
        return {stream: " AND ".join(texts) for stream, texts in found.items()}

    def _linked(self, definition: Definition) -> None:
        if not definition.connected:
            raise QueryError(
                "the streams are not all joined with each other: "
                + ", ".join(self.streams)
                + "; a product is not taken"
            )


_ACCEPTED = (
    "a query is SELECT ... FROM streams [RANGE ...] JOIN or WHERE ..., and GROUP BY and HAVING "
    "with a SLIDE"
)


def _sql(tree: exp.Expr) -> str:
    return tree.sql(dialect="spark", normalize_functions=False)


def _aliases(tree: exp.Expr) -> set[str]:
    return {c.table for c in tree.find_all(exp.Column)}


def _length(interval: exp.Interval) -> int | None:
    amount = interval.this.name if interval.this is not None else ""
    unit = interval.args.get("unit")
    try:
        return micros(f"{amount} {unit.name.lower() if unit is not None else ''}", "interval", True)
    except ValueError:
        return None


def _closed(joins: Sequence[Join], schemas: Mapping[str, Mapping[str, SqlType]]) -> frozenset[Join]:
    """With the equalities of columns that follow from others. Between types that differ nothing
    follows: Spark may round or parse one to compare it with the other.
    """
    pairs = [j for j in joins if _is_equality(j)]
    classes: list[set[Column]] = []
    for join in pairs:
        touched = [c for c in classes if c & join.columns]
        classes = [c for c in classes if c not in touched] + [set(join.columns).union(*touched)]
    stated = {j.text for j in joins}
    found = set(joins)
    for same in classes:
        types = {schemas[stream][name] for stream, name in same}
        if len(types) > 1 and any(t.name not in INTEGRAL for t in types):
            continue
        for a, b in combinations(sorted(same), 2):
            text = f"{a[0]}.{a[1]} = {b[0]}.{b[1]}"
            if a[0] != b[0] and text not in stated:
                found.add(Join(text, frozenset((a, b)), implied=True))
    return frozenset(found)


def _is_equality(join: Join) -> bool:
    if len(join.columns) != 2:
        return False
    a, b = sorted(join.columns)
    return join.text == f"{a[0]}.{a[1]} = {b[0]}.{b[1]}"
