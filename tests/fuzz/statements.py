"""Random statements of a hub, and DuckDB's answers to them over the windowed input.

A statement is composed of parts, so that its right answer is requested in DuckDB's words,
independently of Braid's parser. A part that a hub must not answer, or that has no batch answer,
leaves the statement without a right answer: then it must be refused.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa
from hub_cases import BATCHES, SECOND, TYPES, make_hub_tables

from fuzz.cases import StatementCase

LINKS = {
    ("f", "c"): "f.num = c.flight",
    ("c", "f"): "c.flight = f.num",
    ("f", "b"): "b.flight = f.num",
    ("b", "f"): "f.num = b.flight",
    ("c", "b"): "c.flight = b.flight",
    ("b", "c"): "b.flight = c.flight",
}
STREAMS = {"f": "flights", "c": "checkins", "b": "baggage"}
CONDITIONS = {
    "f": ("f.terminal = 'A'", "f.terminal IN ('A', 'B')", "NOT f.carrier = 'C'", "f.num > 2", "f.num IS NOT NULL", "f.terminal LIKE 'A%'", "f.terminal NOT LIKE 'A%'", "f.num BETWEEN 1 AND 5", "f.num NOT BETWEEN 1 AND 5", "f.num NOT IN (1, 2)", "f.num IS NULL", "(f.num <> 3 OR f.terminal = 'B')"),
    "c": ("c.seats < 3", "c.seats >= 1 AND c.status <> 'B'", "c.status || 'x' = 'Ax'", "NOT (c.seats = 2 OR c.status = 'A')", "c.flight % 2 = 0", "CASE WHEN c.seats > 1 THEN c.status = 'A' ELSE true END", "coalesce(c.flight, 3) < 6"),
    "b": ("b.area < 3", "b.area IN (0, 2)", "b.area + 1 > 2", "b.area IS DISTINCT FROM 1"),
}  # fmt: skip
"""Conditions on one stream with the same meaning in Spark and DuckDB."""
CROSSING = {
    ("c", "f"): ("f.carrier <> c.status", "f.terminal = c.status", "f.id < c.id", "f.num + c.seats > 4", "c.ts > f.ts", "f.terminal NOT LIKE c.status"),
    ("b", "f"): ("f.id > b.id", "f.num + b.area < 7"),
    ("b", "c"): ("c.seats > b.area", "c.id <> b.id"),
}  # fmt: skip
# Each is a text for the place after a stream's name and window.
TABLE_WORDS = ("TABLESAMPLE (10 PERCENT)", "TABLESAMPLE (5 ROWS)", "TABLESAMPLE (BUCKET 1 OUT OF 2)", "VERSION AS OF 1", "TIMESTAMP AS OF '2024-01-01'")  # fmt: skip
JOIN_WORDS = (
    "LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN", "FULL JOIN", "FULL OUTER JOIN", "SEMI JOIN",
    "LEFT SEMI JOIN", "ANTI JOIN", "LEFT ANTI JOIN", "NATURAL JOIN", "NATURAL LEFT JOIN",
    "NATURAL INNER JOIN", "ASOF JOIN", "ASOF LEFT JOIN", "POSITIONAL JOIN", "LATERAL JOIN",
    "STRAIGHT_JOIN", "GLOBAL JOIN", "ANY JOIN", "CROSS APPLY", "OUTER APPLY", "HASH JOIN",
)  # fmt: skip
KINDS = {
    **dict.fromkeys(("LEFT JOIN", "LEFT OUTER JOIN"), "LEFT"),
    **{f"{side} JOIN": side for side in ("RIGHT", "FULL", "SEMI", "ANTI")},
    "FULL OUTER JOIN": "FULL",
    "LEFT SEMI JOIN": "SEMI",
    "LEFT ANTI JOIN": "ANTI",
    "ASOF JOIN": "ASOF",
    "ASOF LEFT JOIN": "ASOF LEFT",
}
"""The joins that a hub answers besides inner ones, in DuckDB's words."""
_ASOF = ("ASOF JOIN", "ASOF LEFT JOIN")
TAILS = (
    "ORDER BY 1", "LIMIT 3", "LIMIT 3 OFFSET 1", "OFFSET 2", "QUALIFY row_number() OVER (ORDER BY 1) = 1",
    "SORT BY 1", "CLUSTER BY 1", "DISTRIBUTE BY 1", "WINDOW w AS (PARTITION BY 1)", "FOR UPDATE",
    "UNION ALL SELECT 1", "FETCH FIRST 2 ROWS ONLY", "EXCEPT SELECT 1", "INTERSECT SELECT 1",
    "LATERAL VIEW explode(array(1, 2)) e AS x", "PIVOT (count(*) FOR terminal IN ('A'))",
    "MINUS SELECT 1", "CONNECT BY 1 = 1", "SETTINGS x = 1", "FORMAT JSON",
)  # fmt: skip
AGGREGATES = ("count(*)", "count({0})", "sum({0})", "min({0})", "max({0})", "avg({0})", "count(DISTINCT {0})", "sum(DISTINCT {0})", "count(*) FILTER (WHERE {0} > 1)", "sum({0}) FILTER (WHERE {0} > 1)", "sum({0} + 1)", "max({0}) - min({0})", "first({0})", "count(ALL {0})", "any_value({0})", "sum({0}) OVER ()", "stddev({0})", "count({0}, {0})", "count(1)", "count(DISTINCT 1)", "count(DISTINCT 'x')", "count(NULL)", "count(DISTINCT *)", "min({0}) IGNORE NULLS", "max({0}) RESPECT NULLS", "count(DISTINCT {0}, {0})")  # fmt: skip
UNANSWERED = ("first", "any_value", "OVER", "stddev", ", ", "DISTINCT *", "NULLS")
"""Parts of aggregates that a hub of tables refuses."""
NUMBERS = {"f": ("num", "id"), "c": ("seats", "flight"), "b": ("area",)}


@lru_cache(16)
def streams(seed: int) -> dict[str, pa.Table]:
    """Return the tuples that statements read."""
    return make_hub_tables(seed)


@dataclass
class _Parts:
    """The parts of a statement, in Spark's words and in DuckDB's.

    ``is_answered`` tells whether there is a right answer; ``kind`` is that of the join of two
    streams, empty if it is inner; ``order`` compares the times of an as-of join.
    """

    aliases: list[str]
    ranges: dict[str, int]
    slide: int | None
    select: list[str] = field(default_factory=list)
    truth_select: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    having: str = ""
    is_answered: bool = True
    has_aggregates: bool = False
    kind: str = ""
    order: str = ""


def random_statement(draw: random.Random, seed: int = 0) -> StatementCase:
    """Return a statement. Two in five have a word that a hub must refuse or apply."""
    count = draw.choice((2, 2, 2, 3))
    aliases = draw.sample(list(STREAMS), count)
    ranges = {a: draw.choice((20, 45, 60, 90, 150)) for a in aliases}
    slide = draw.choice((20, 30, 45)) if draw.random() < 0.4 else None
    parts = _Parts(aliases, ranges, slide)
    _choose_columns(draw, parts)
    source, on = _source(draw, parts)
    where = [c for a in aliases for c in draw.sample(CONDITIONS[a], draw.choice((0, 0, 1)))]
    crossing = [c for pair, cs in CROSSING.items() if {*pair} <= {*aliases} for c in cs]
    where += draw.sample(crossing, draw.choice((0, 0, 1)))
    hint = (
        draw.choice(("/*+ BROADCAST(f) */ ", "/*+ MERGE(c, f) */ ")) if draw.random() < 0.05 else ""
    )
    distinct = "DISTINCT " if draw.random() < 0.04 else ""
    prefix = (
        draw.choice(("TOP 3 ", "ALL ", "STRAIGHT_JOIN ", "AS STRUCT "))
        if draw.random() < 0.03
        else ""
    )
    tail = draw.choice(TAILS) if draw.random() < 0.08 else ""
    if distinct or tail or prefix not in ("", "ALL "):
        parts.is_answered = False
    said = [*on[0], *where]
    statement = f"SELECT {hint}{prefix}{distinct}{', '.join(parts.select)} FROM {source}"
    statement += f" WHERE {' AND '.join(said)}" if said else ""
    statement += f" GROUP BY {', '.join(parts.groups)}" if parts.groups else ""
    statement += f" HAVING {parts.having}" if parts.having else ""
    statement += f" {tail}" if tail else ""
    if draw.random() < 0.02:
        statement, parts.is_answered = f"WITH x AS (SELECT 1) {statement}", False
    if parts.kind:
        _check_kind(parts, where)
    truth = None
    if parts.is_answered:
        if parts.kind:
            truth = _kind_truth(parts, on[1], where)
        else:
            truth = _truth(parts, [*on[1], *where], seed)
    return StatementCase(statement, truth, seed, "equal" if truth else "refused")


# What is selected.


def _choose_columns(draw: random.Random, parts: _Parts) -> None:
    if parts.slide is not None and draw.random() < 0.6:
        _choose_aggregates(draw, parts)
        return
    way = draw.random()
    alias = draw.choice(parts.aliases)
    if way < 0.15:
        parts.select, parts.truth_select = ["*"], [f"{a}.*" for a in parts.aliases]
    elif way < 0.25:
        parts.select = parts.truth_select = [f"{alias}.*"]
    elif way < 0.40:
        _choose_star(draw, parts, alias)
    else:
        parts.select = [_item(draw, a, n) for n, a in enumerate(parts.aliases)]
        parts.truth_select = parts.select


def _choose_star(draw: random.Random, parts: _Parts, alias: str) -> None:
    """Return a star with words after it; DuckDB uses EXCLUDE."""
    column = draw.choice(list(TYPES[STREAMS[alias]]))
    said, meant = draw.choice(
        (
            (f"EXCEPT ({column})", f"EXCLUDE ({column})"),
            ("REPLACE (1 AS id)", "REPLACE (1 AS id)"),
            (f"RENAME ({column} AS other)", f"RENAME ({column} AS other)"),
        )
    )
    parts.select, parts.truth_select = [f"{alias}.* {said}"], [f"{alias}.* {meant}"]


def _item(draw: random.Random, alias: str, number: int) -> str:
    stream = STREAMS[alias]
    column = f"{alias}.{draw.choice(list(TYPES[stream]))}"
    size = f"{alias}.{draw.choice(NUMBERS[alias])}"
    made = draw.choice(
        (column, column, column, f"{size} + 1", f"-{size}", f"coalesce({size}, 0)", f"{size} IS NULL", f"CASE WHEN {size} > 2 THEN 'x' ELSE 'y' END", f"abs({size} - 3)", f"{size} BETWEEN 1 AND 2", f"{size} NOT IN (1, 2)", f"cast({size} AS bigint)", f"greatest({size}, 2)", f"nullif({size}, 1)")
    )  # fmt: skip
    return f"{made} AS v{number}" if draw.random() < 0.8 else made


def _choose_aggregates(draw: random.Random, parts: _Parts) -> None:
    parts.has_aggregates = True
    alias = draw.choice(parts.aliases)
    if draw.random() < 0.6:
        parts.groups = [f"{alias}.{draw.choice(list(TYPES[STREAMS[alias]])[1:3])}"]
    other = draw.choice(parts.aliases)
    size = f"{other}.{draw.choice(NUMBERS[other])}"
    calls = [c.format(size) for c in draw.sample(AGGREGATES, draw.choice((1, 2)))]
    if any(w in c for c in calls for w in UNANSWERED):
        parts.is_answered = False
    parts.select = [*parts.groups, *(f"{c} AS n{n}" for n, c in enumerate(calls))]
    parts.truth_select = parts.select
    if draw.random() < 0.3:
        parts.having = draw.choice(("count(*) > 2", f"max({size}) < 3", f"sum({size}) IS NOT NULL"))
    if parts.groups and draw.random() < 0.15:
        column = parts.groups[0]
        parts.groups = [
            draw.choice(
                (
                    f"ROLLUP ({column})",
                    f"CUBE ({column})",
                    f"GROUPING SETS (({column}), ())",
                    "ALL",
                    "1",
                    f"{column} WITH ROLLUP",
                    f"({column})",
                    f"{column}, ROLLUP ({column})",
                )
            )
        ]
        parts.is_answered = False


# Where it is selected from.


def _source(draw: random.Random, parts: _Parts) -> tuple[str, tuple[list[str], list[str]]]:
    """Return FROM, its terms in WHERE, and their meaning."""
    way = draw.choice(("comma", "join", "join", "inner", "cross", "using", "odd", "kind", "kind"))
    first, *rest = parts.aliases
    text, said, meant = _table(draw, parts, first, True), [], []
    for place, alias in enumerate(rest):
        before = parts.aliases[: place + 1]
        link = LINKS[draw.choice(before), alias]
        table = _table(draw, parts, alias, False)
        is_odd = way in ("odd", "kind") and place == len(rest) - 1
        if way == "using" and {before[-1], alias} == {"c", "b"} and len(before) == 1:
            text += f" JOIN {table} USING (flight)"
            meant.append("c.flight = b.flight")
            if parts.select == ["*"]:  # one column of the two, as SQL has it
                parts.truth_select = [f"{before[0]}.flight", *_others(before[0]), *_others(alias)]
            continue
        if is_odd:
            word = draw.choice(JOIN_WORDS if way == "odd" else [*KINDS, *_ASOF, *_ASOF])
            text += f" {word} {table}" + (
                "" if "NATURAL" in word and draw.random() < 0.7 else f" ON {link}"
            )
            if word in KINDS and len(rest) == 1 and parts.slide is None:
                parts.kind = KINDS[word]
                if "ASOF" in word:
                    parts.order = draw.choice((">=", ">", "<=", "<"))
                    text += f" AND {first}.ts {parts.order} {alias}.ts"
            else:
                parts.is_answered = False
        elif way in ("join", "inner", "using"):
            text += f" {'INNER ' if way == 'inner' else ''}JOIN {table} ON {link}"
        else:
            text += f"{',' if way == 'comma' else ' CROSS JOIN'} {table}"
            said.append(link)
        meant.append(link)
    return text, (said, meant)


def _others(alias: str) -> list[str]:
    return [f"{alias}.{c}" for c in TYPES[STREAMS[alias]] if c != "flight"]


def _table(draw: random.Random, parts: _Parts, alias: str, is_first: bool) -> str:
    slide = f" SLIDE {parts.slide} SECONDS" if parts.slide is not None and is_first else ""
    window = f"[RANGE {parts.ranges[alias]} SECONDS{slide}]"
    name, way = STREAMS[alias], draw.random()
    if way < 0.04:
        parts.is_answered = False
        word = draw.choice(TABLE_WORDS)
        return draw.choice(
            (
                f"{name} {word} {window} {alias}",
                f"{name} {window} {word} {alias}",
                f"{name} {window} {alias} {word}",
            )
        )
    if way < 0.07:
        parts.is_answered = False
        columns = ", ".join([f"{c}1" if draw.random() < 0.3 else c for c in TYPES[name]])
        return f"{name} {window} AS {alias}({columns})"
    return f"{name} {window} {draw.choice(('', 'AS '))}{alias}"


# What is right.


def _truth(parts: _Parts, conditions: Sequence[str], seed: int) -> str:
    """Return DuckDB SQL of the answer over the whole input."""
    aliases, select = parts.aliases, ", ".join(parts.truth_select)
    latest = "greatest(" + ", ".join(f"epoch_us({a}.ts)" for a in aliases) + ")"
    where = [f"({c})" for c in conditions]
    where += [f"{latest} - epoch_us({a}.ts) < {parts.ranges[a] * SECOND}" for a in aliases]
    source = ", ".join(f"{STREAMS[a]} AS {a}" for a in aliases)
    if parts.slide is None:
        return f"SELECT {select} FROM {source} WHERE {' AND '.join(where)}"
    every = parts.slide * SECOND
    names = [STREAMS[a] for a in aliases]
    ticks = f"(SELECT unnest(range({BATCHES * 60 * SECOND // every + 40})) * {every} AS at) t"
    where += [f"{latest} <= t.at"]
    where += [f"t.at - epoch_us({a}.ts) < {parts.ranges[a] * SECOND}" for a in aliases]
    data = streams(seed)
    ends = [[int(v) for v in data[n]["ts"].cast(pa.int64()).to_numpy()] for n in names]
    having = f" HAVING {parts.having}" if parts.having else ""
    if parts.has_aggregates and not parts.groups:
        over = [max(e) + parts.ranges[a] * SECOND for e, a in zip(ends, aliases, strict=True)]
        last = max(1 + max(map(max, ends)), min(over))
        bounds = [f"t.at >= {max(map(min, ends))}", f"t.at < {last}"]
        inner = f"SELECT {select} FROM {source} WHERE {' AND '.join(where)}{having}"
        return (
            f"SELECT t.at, told.* FROM {ticks}, LATERAL ({inner}) told WHERE {' AND '.join(bounds)}"
        )
    group = f" GROUP BY {', '.join(['t.at', *parts.groups])}" if parts.has_aggregates else ""
    return (
        f"SELECT t.at, {select} FROM {source}, {ticks} WHERE {' AND '.join(where)}{group}{having}"
    )


def _check_kind(parts: _Parts, where: Sequence[str]) -> None:
    """Refuse what a hub must refuse of a join that is not inner."""
    first, second = parts.aliases
    absent = {"RIGHT": (first,), "FULL": (first, second)}.get(parts.kind, (second,))
    if any(f"{a}." in condition for a in absent for condition in where):
        # "num IS NULL" beside LEFT JOIN makes it an anti join, if it is the key.
        key = LINKS[first, second]
        reading = [c for c in where if any(f"{a}." in c for a in absent)]
        is_anti = parts.kind == "LEFT" and len(reading) == 1 and reading[0].endswith(" IS NULL")
        if not is_anti or reading[0].removesuffix(" IS NULL") not in key.split(" = "):
            parts.is_answered = False
    if parts.kind in ("SEMI", "ANTI"):
        if parts.select == ["*"]:
            parts.truth_select = [f"{first}.*"]
        elif any(f"{second}." in item for item in parts.select):
            parts.is_answered = False


def _kind_truth(parts: _Parts, on: Sequence[str], where: Sequence[str]) -> str:
    """Return DuckDB SQL of the answer to a join that is not inner, over the whole input."""
    first, second = parts.aliases
    latest = f"greatest(epoch_us({first}.ts), epoch_us({second}.ts))"
    met = [
        *on,
        *(f"{latest} - epoch_us({a}.ts) < {parts.ranges[a] * SECOND}" for a in parts.aliases),
    ]
    source = f"{STREAMS[first]} AS {first} {parts.kind.removeprefix('ASOF')} JOIN {STREAMS[second]} AS {second}"
    rest = f" WHERE {' AND '.join(f'({c})' for c in where)}" if where else ""
    if parts.order:  # DuckDB's own ASOF JOIN ignores other conditions
        met.append(f"{first}.ts {parts.order} {second}.ts")
        nearest = f"{second}.ts {'DESC' if '>' in parts.order else 'ASC'}, {second}.id DESC"
        rest += f" QUALIFY row_number() OVER (PARTITION BY {first}.id ORDER BY {nearest}) = 1"
    select = ", ".join(parts.truth_select)
    return f"SELECT {select} FROM {source} ON {' AND '.join(met)}{rest}"
