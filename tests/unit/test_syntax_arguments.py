"""No argument of a syntax node is silently ignored.

A rule reads it, or the node is kept unchanged, and refused if a rule would have to look into it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import braid
import pyarrow as pa
import pytest
import sqlglot
from braid.condition.duckdb_compiler import _RULES, DuckDBCompiler
from braid.condition.duckdb_functions import CALLS
from braid.condition.parser import parse_predicate
from braid.condition.spark_dialect import SparkSql, to_sql
from braid.condition.sql_types import sql_type_of_arrow
from braid.condition.syntax_arguments import (
    CONSTANT,
    READ,
    AsWritten,
    find_unread,
    has_supported_syntax,
    keep_unread,
)
from braid.errors import PredicateError
from braid.hub.query_dialect import STATEMENT
from sqlglot import exp

pytestmark = pytest.mark.unit
REFUSED = {
    exp.ArrayContains: "ensure_variant check_null",
    exp.ArrayDistinct: "check_null",
    exp.ArrayExcept: "is_multiset",
    exp.ArrayIntersect: "is_multiset",
    exp.ArraySize: "expression",
    exp.Atan: "expression",
    exp.BitwiseAnd: "padside",
    exp.BitwiseOr: "padside",
    exp.BitwiseXor: "padside",
    exp.BitwiseLeftShift: "requires_int128",
    exp.BitwiseRightShift: "requires_int128",
    exp.Bracket: "returns_list_for_maps json_access",
    exp.Cast: "format safe action default",
    exp.Coalesce: "is_nvl is_null",
    exp.Column: "join_mark shadow",
    exp.Concat: "safe coalesce",
    exp.Contains: "json_scope",
    exp.Count: "big_int",
    exp.DPipe: "safe",
    exp.DataType: "values kind nullable collate",
    exp.DateDiff: "zone big_int date_part_boundary",
    exp.Distinct: "on",
    exp.Div: "typed safe",
    exp.Greatest: "ignore_nulls",
    exp.ILike: "negate",
    exp.Identifier: "global_ temporary",
    exp.In: "query unnest field is_global",
    exp.Interval: "fraction_in_string",
    exp.Is: "negate",
    exp.Join: "global_ hint match_condition nearest directed expressions pivots",
    exp.Least: "ignore_nulls",
    exp.Left: "negative_length_returns_empty",
    exp.Length: "binary encoding",
    exp.Levenshtein: "ins_cost del_cost sub_cost max_dist",
    exp.Like: "negate",
    exp.Max: "count",
    exp.Min: "count",
    exp.Reduce: "finish",
    exp.RegexpLike: "flag full_match",
    exp.Right: "negative_length_returns_empty",
    exp.Round: "truncate casts_non_integer_decimals",
    exp.Select: "with_ kind hint distinct into operation_modifiers exclude match laterals connect "
    "pivots prewhere qualify windows distribute sort cluster order limit offset locks sample "
    "settings format options for_",
    exp.Star: "except_ replace rename ilike",
    exp.StrPosition: "position occurrence clamp_position",
    exp.Substring: "zero_start",
    exp.Table: "catalog laterals joins pivots hints system_time version format pattern ordinality "
    "when only partition changes rows_from sample indexed",
    exp.TableAlias: "columns",
    exp.Trim: "expression position collation",
    exp.TryCast: "format action default requires_string null_on_text_overflow probe_date_format",
    exp.TsOrDsToDate: "format safe default_date",
    exp.TsOrDsAdd: "return_type",
}
"""All arguments known to sqlglot that no rule reads. A new one in a new version is decided here: a
rule reads it, or it is refused.
"""
KNOWN = READ | STATEMENT
NO_RULES = {
    *(
        "AggFunc",
        "All",
        "Any",
        "Binary",
        "Unary",
        "Condition",
        "Connector",
        "Exists",
        "Expr",
        "Func",
        "Predicate",
        "Query",
    ),
    *("IgnoreNulls", "RespectNulls", "Subquery", "Window", "WithinGroup"),
}
"""Kinds of classes, and classes that are only checked to be refused or left unchanged."""
SCHEMA = pa.schema(
    {
        **{"s": pa.string(), "n": pa.int32(), "x": pa.float64(), "d": pa.date32()},
        **{"t": pa.timestamp("us", "UTC"), "l": pa.list_(pa.int32()), "f": pa.bool_()},
        "r": pa.struct({"g": pa.struct({"h": pa.struct({"i": pa.int32()})})}),
    }
)


def parse_text(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect=SparkSql)


def test_every_class_that_a_rule_names_has_its_arguments_listed() -> None:
    assert {*_RULES, *CALLS} - {AsWritten} <= {*READ}
    files = [*Path(braid.__file__).parent.glob("condition/*.py")]
    files += Path(braid.__file__).parent.glob("hub/*.py")
    others = (f for f in files if f.stem != "syntax_arguments")
    names = {name for f in others for name in re.findall(r"\bexp\.([A-Z]\w+)", f.read_text())}
    assert len(names) > 90 and names - {kind.__name__ for kind in KNOWN} <= NO_RULES


@pytest.mark.parametrize("kind", KNOWN, ids=lambda kind: kind.__name__)
def test_every_argument_is_read_or_refused(kind: type[exp.Expr]) -> None:
    read, all_names = {*KNOWN[kind]}, {*kind.arg_types}
    assert read <= all_names and all_names - read == {*REFUSED.get(kind, "").split()}
    for name in all_names:
        node = kind(**{name: exp.Literal.number(7)})
        assert find_unread(node, KNOWN) == (None if name in read else name)


@pytest.mark.parametrize(
    "kind", [kind for kind in REFUSED if kind in READ], ids=lambda kind: kind.__name__
)
def test_a_node_with_another_argument_is_kept_as_it_is_written(kind: type[exp.Expr]) -> None:
    for name in REFUSED[kind].split():
        node = exp.Not(this=kind(**{name: exp.Literal.number(7)}))
        (kept,) = keep_unread(node).find_all(AsWritten)
        assert kept.find(kind)


def test_what_sqlglot_sets_itself_is_taken_with_no_other_value() -> None:
    for (kind, name), value in CONSTANT.items():
        assert find_unread(kind(**{name: value})) is None
        assert find_unread(kind(**{name: exp.Literal.number(7)})) == name


TEXTS = {
    "a.s NOT LIKE ANY ('x', 'y')": "NOT",
    "to_date(a.t, 'yyyy') = b.d": "FORMAT",
    "year(to_date(a.t, 'yyyy')) = b.n": "FORMAT",
    "datediff(to_date(a.t, 'yyyy'), b.d) < 3": "FORMAT",
    "locate('a', a.s, 2) = b.n": "POSITION",
    "CASE WHEN locate('a', a.s, 2) = 1 THEN a.n END = b.n": "POSITION",
    "NOT a.n IN (b.n, locate('a', a.s, 2))": "POSITION",
    "aggregate(map_keys(a.s), 0, (x, y) -> x, z -> z) = b.n": "FINISH",
}


@pytest.mark.parametrize("on", TEXTS)
def test_tables_refuse_it_in_a_sentence_that_names_the_word(on: str) -> None:
    with pytest.raises(PredicateError, match=f" has {TEXTS[on]} and is not known to mean the same"):
        parse_predicate(on, {"a": SCHEMA, "b": SCHEMA}, (None, None))


@pytest.mark.parametrize("on", TEXTS)
def test_it_is_written_again_as_it_was(on: str) -> None:
    assert to_sql(parse_text(on)) == sqlglot.parse_one(on, dialect="spark").sql("spark")
    assert parse_text(to_sql(parse_text(on))) == parse_text(on)


def test_what_is_known_to_be_written_as_it_was() -> None:
    for on in (
        "upper(a.s) = 'X'",
        "my_function(a.s, 3) > 2",
        "a.s NOT LIKE ANY ('x')",
        "a.p.f = 1",
    ):
        assert has_supported_syntax(parse_text(on)), on
    for on in ("a.s COLLATE UTF8_LCASE = 'x'", "overlay(a.s PLACING 'X' FROM 2) = ''"):
        assert not has_supported_syntax(parse_text(on)), on


class Noted(dict[str, Any]):
    """The arguments of a node; it records the names that are read."""

    def __init__(self, kind: type, args: dict[str, Any], noted: set[tuple[type, str]]) -> None:
        super().__init__(args)
        self.kind, self.noted = kind, noted

    def get(self, name: str, default: Any = None) -> Any:
        self.noted.add((self.kind, name))
        return super().get(name, default)

    def __getitem__(self, name: str) -> Any:
        self.noted.add((self.kind, name))
        return super().__getitem__(name)


COMPILED = """
a.r.g.h.i = 1; a.n = b.n AND a.x <> 2 OR NOT (a.f IS NULL) AND a.n <=> 3; a.d < date'2024-01-01' OR a.x IS DISTINCT FROM 1 OR a.n <= 3 OR b.n >= a.n
a.n IN (1, 2) OR a.n BETWEEN 1 AND 3 OR (a.f IS TRUE); a.n + 1 - 2 * b.n > -3; a.x / 2 > 1 OR a.n % 2 = 1 OR a.n div 2 = 1
(a.n & 1) = (a.n | 2) OR (a.n ^ 3) = ~a.n; ceil(a.x) = floor(a.x) OR abs(a.x) > round(a.x, 1)
if(a.f, 1, 2) = CASE a.n WHEN 1 THEN 2 ELSE 3 END OR nullif(a.n, 1) = coalesce(a.n, 2)
greatest(a.n, 1) = least(a.n, 2); cast(a.n AS bigint) = 1 OR try_cast('2024-01-01' AS date) = a.d
to_date(a.t) = a.d OR datediff(a.d, b.d) = 1; unix_date(a.d) = 1 OR unix_micros(a.t) = 2; a.t < b.t + interval 3 days
year(a.d) + month(a.d) + day(a.d) + dayofmonth(a.d) + hour(a.t) + minute(a.t) + second(a.t) = 1 OR extract(second FROM a.t) = 1
a.s LIKE 'x' OR a.s LIKE 'x' ESCAPE '!'; concat(a.s, 'x') = a.s || 'y'; array_contains(a.l, 1) OR size(a.l) = size(array_compact(a.l))
levenshtein(a.s, b.s) = 1 OR replace(a.s, 'x', 'y') = substring(a.s, 1, 2); left(a.s, 1) = right(a.s, 1) OR sign(a.x) = 1
length(trim(a.s)) = 1 OR lower(a.s) = upper(b.s) OR startswith(a.s, 'x') OR endswith(a.s, 'x') OR contains(a.s, 'x') OR locate('a', a.s) = 1
isnan(a.x) OR sqrt(a.x) + ln(a.x) + exp(a.x) + pow(a.x, 2) = 1; sin(a.x) + cos(a.x) + tan(a.x) + asin(a.x) + acos(a.x) + atan(a.x) + atan2(a.x, 1) = 1
"""


def test_the_compiler_asks_for_every_argument_that_is_listed_as_read() -> None:
    noted = set[tuple[type, str]]()
    columns = {(a, f.name): sql_type_of_arrow(f.type) for a in "ab" for f in SCHEMA}
    for text in re.split("[;\n]", COMPILED.strip()):
        tree = parse_text(text)
        for node in list(tree.walk()):
            node.args = Noted(type(node), node.args, noted)
        DuckDBCompiler(columns).compile_expression(tree)
    unasked = {
        (k.__name__, n) for k in _RULES | CALLS for n in READ.get(k, ()) if (k, n) not in noted
    }
    flattened = {(kind, name) for kind in ("And", "Or") for name in ("this", "expression")}
    assert unasked == flattened | {("Boolean", "this")}
