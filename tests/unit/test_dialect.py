"""Spark SQL is parsed with Spark's meaning and written as it was."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import sqlglot
from braid.condition.spark_dialect import SparkSql
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

BITS = {"|": exp.BitwiseOr, "^": exp.BitwiseXor, "&": exp.BitwiseAnd, "<<": exp.BitwiseLeftShift}
DOES = {
    exp.BitwiseOr: operator.or_,
    exp.BitwiseXor: operator.xor,
    exp.BitwiseAnd: operator.and_,
    exp.BitwiseLeftShift: operator.lshift,
    exp.Add: operator.add,
    exp.Mul: operator.mul,
}


def rewrite_text(text: str) -> str:
    """Return the text after parsing and writing."""
    tree = sqlglot.parse_one(text, dialect=SparkSql)
    return tree.sql(dialect=SparkSql, normalize_functions=False)


def value(node: Any) -> int:
    if isinstance(node, exp.Paren):
        return value(node.this)
    if isinstance(node, exp.Literal):
        return int(node.this)
    return int(DOES[type(node)](value(node.this), value(node.expression)))


operands = st.one_of(
    st.integers(0, 7).map(str),
    st.tuples(st.integers(0, 7), st.sampled_from("+*|&"), st.integers(0, 7)).map(
        lambda t: f"({t[0]} {t[1]} {t[2]})"
    ),
)


@given(operands, st.lists(st.tuples(st.sampled_from([*BITS, "+", "*"]), operands), max_size=7))
def test_operators_go_in_sparks_order_which_is_pythons(first: str, rest: list[Any]) -> None:
    shifts, text = 0, first
    for sign, operand in rest:
        shifts += sign == "<<"
        text += f" {sign} {operand if sign != '<<' else shifts}"
    read = sqlglot.parse_one(text, dialect=SparkSql)
    assert value(read) == eval(text)
    written = read.sql(dialect=SparkSql)
    assert eval(written, {"SHIFTLEFT": operator.lshift}) == eval(text)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a.t - interval 1 day 12 hours", "a.t - (INTERVAL '1' DAY + INTERVAL '12' HOURS)"),
        ("log10(a.x) + log2(a.x)", "log10(a.x) + log2(a.x)"),
        ("to_char(a.p, '99.9')", "to_char(a.p, '99.9')"),
        ("instr(a.s, 'b', 1, 2)", "INSTR(a.s, 'b', 1, 2)"),
        ("parse_json(a.s)", "parse_json(a.s)"),
        ("cast(a.t as time)", "CAST(a.t AS TIME)"),
        ("a.s = 'it''s'", r"a.s = 'it\'s'"),
        ('a.s = "say ""it"""', "a.s = 'say \"it\"'"),
        ("a.s = 'a' 'b'", "a.s = CONCAT('a', 'b')"),
        ("array_size(a.l)", "array_size(a.l)"),
        ("unix_date(a.d)", "UNIX_DATE(a.d)"),
        ("dateadd(HOUR, 2, a.t)", "DATE_ADD(HOUR, 2, a.t)"),
        ("levenshtein(a.s, b.s, 2)", "LEVENSHTEIN(a.s, b.s, 2)"),
        ("1.5BD", "CAST('1.5' AS DECIMAL(2, 1))"),
    ],
)
def test_what_is_read_is_written_as_it_was(text: str, written: str) -> None:
    assert rewrite_text(text) == written == rewrite_text(written)


@pytest.mark.parametrize(
    "text",
    [
        "s LIKE p = q",
        "b = n IN (1)",
        "a = b BETWEEN c AND d",
        "n NOT IN (1) <=> b",
        "s RLIKE 'x' = b",
    ],
)
def test_a_comparison_beside_like_in_or_between_needs_parentheses(text: str) -> None:
    """Spark reads ``a = b`` as the left side of BETWEEN, and ``p = q`` as the pattern."""
    with pytest.raises(sqlglot.ParseError, match="need parentheses"):
        rewrite_text(text)


def test_an_element_of_an_array_is_no_array_of_its_number() -> None:
    for text in (
        "ARRAY(1, 2)[0]",
        "a.list[0]",
        "`array`[1]",
        "b = (n IN (1))",
        "a < b AND c IN (d)",
    ):
        assert rewrite_text(text) == text
