"""Spark SQL that is parsed and written again gives the same result in Spark as the original."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
import sqlglot
from braid.condition.column_names import parse_condition
from braid.condition.parser import parse_predicate
from braid.condition.spark_dialect import SparkSql
from braid.errors import PredicateError
from fuzz.grammar import random_case, random_streams
from grammar_cases import NOT_SPARK, SPARK
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

ALSO_REFUSED = """
a.b = b.n < 3
a.b = a.c < b.b
+a.s = b.s
+a.b = b.b
a.n = b.n AND a.t > + b.t
a.s || a.n + b.n = 'x'
a.n + b.n || a.s = 'x'
a.t > b.t + interval 1 day + 2 hours
a.n = b.n, a.m = b.m
cast(a.n, bigint) = b.n
extract(second, a.t) = b.n
a.n = 0x1F AND a.n = b.n
a.n = :x AND a.n = b.n
a.n = ? AND a.n = b.n
NOT
""".strip().splitlines()
"""Texts that Spark parses and sqlglot would parse differently; most are invalid in Spark too."""
EXTRA = """
    AND OR NOT IS NULL = < <=> LIKE IN BETWEEN SYMMETRIC , ( ) THEN END CASE + - || :: IN () ISNULL
    ~ ! XOR MOD ANY ; AS x text ESCAPE DISTINCT
"""

ROWS = r"""
    (1, 8, 1000.0D, 'a_b', timestamp'2024-03-10 01:30:00', date'2024-03-10', array(1, 2, null),
     cast(12.345 as decimal(10, 3)), true),
    (3, 1, -2.5D, 'it\'s', timestamp'2024-01-01 00:00:00', date'2023-12-31', array(5),
     cast(-1.005 as decimal(10, 3)), false),
    (null, null, double('nan'), null, null, null, null, null, null)
"""
TEXTS = r"""
    i & 1 << 3;  i | j & 1;  i | j ^ 3 & 5;  j >> 1 & 1;  i ^ j << 1 | 3;  i + 1 << 2;  ~i & j
    t - interval 1 day 12 hours;  t + interval 1 day 12 hours 30 minutes;  t - interval -1 day
    t - interval '1 2' day to hour;  t - interval '1 day 2 hours';  e - interval 1 month;  e + 1
    log10(d);  log2(8);  log(2, d);  log(d);  ln(d);  s = 'it''s';  s = 'it\'s';  s = "it's"
    "a""b";  'a''''b';  'it' 's';  r'a\nb';  'a\tb';  'a\\b';  '\u0041\x41\101';  s like 'a\_b'
    s like 'a/_b' escape '/';  s like any ('a%', 'b%');  s ilike 'A%';  s not like 'a%'
    s not ilike 'A%';  s not like 'a/_b' escape '/';  s not like any ('a%', 'b%')
    s not like all ('x%', 'b%');  1.5BD;  1e3;  10L;  7Y;  1.5F
    i / 2 * 3;  i div 2;  i * 2 % 3;  i - j - 1;  i - (j - 1);  - -i;  i <=> j;  not i = j and b;  ! b
    b is not false;  i not between 1 and 2;  i not in (2, 3);  nvl(i, 0);  nvl2(i, 1, 0);  ifnull(i, 0)
    nullif(i, 1);  decode(i, 1, 'x', 'y');  int(p);  d::string;  cast(p as decimal(5, 1))
    to_char(p, '99.999');  to_date(t);  to_timestamp('2024/01/01', 'yyyy/MM/dd');  date_trunc('hour', t)
    year(t);  dayofweek(e);  weekofyear(e);  extract(hour from t);  datediff(t, e);  date_sub(e, 3)
    timestampdiff(HOUR, t, timestamp'2024-04-01 00:00:00');  dateadd(DAY, 2, t);  date_add(e, 3)
    unix_timestamp(t);  unix_micros(t);  from_unixtime(0);  from_utc_timestamp(t, 'CET');  trunc(e, 'MM')
    substring(s, 2);  substring(s from 2 for 1);  substr(s, -2);  trim(both 'i' from s);  btrim(s, 'i')
    instr(s, 't');  instr(s, 't', 1, 1);  locate('t', s, 2);  position('t' in s);  replace(s, 'i')
    overlay(s placing 'X' from 2);  s || s || 'x';  s || i;  initcap(s);  len(s);  chr(65);  char(66)
    regexp_extract(s, '(a)', 1);  split_part(s, '_', 1);  levenshtein(s, 'b', 2);  soundex(s);  ascii(s)
    ceil(p, 1);  floor(p, 1);  round(p, 1);  power(2, i);  pmod(-7, 3);  signum(d);  isnan(d);  mod(i, 2)
    greatest(i, j, 2);  shiftleft(i, 2);  shiftrightunsigned(j, 1);  size(l);  array_size(l);  l[0]
    element_at(l, 1);  try_element_at(l, 9);  array_contains(l, 1);  array_sort(l);  sort_array(l, false)
    exists(l, x -> x > 1);  aggregate(l, 0, (a, x) -> a + coalesce(x, 0));  transform(l, x -> x + 1)
    i = 1 or b and j = 1;  (i = 1 or b) and j = 1;  b = (i = 1);  t between e and e + interval 40 days
"""


def test_spark_gives_the_same_for_what_is_written_again(spark: SparkSession) -> None:
    texts = [
        text.strip() for line in TEXTS.splitlines() for text in line.split(";") if text.strip()
    ]
    rows = spark.sql(f"SELECT * FROM VALUES {ROWS} AS v(i, j, d, s, t, e, l, p, b)")
    read = (sqlglot.parse_one(text, dialect=SparkSql) for text in texts)
    written = [tree.sql(dialect=SparkSql, normalize_functions=False) for tree in read]
    both = (
        rows.selectExpr(*(f"({text}) AS c{k}" for k, text in enumerate(given)))
        for given in (texts, written)
    )
    own, again = ((each.dtypes, [tuple(map(repr, row)) for row in each.collect()]) for each in both)
    differ = [
        (text, to, a, b)
        for text, to, *a, b, _ in zip(
            texts, written, own[0], again[0], [0] * len(texts), strict=True
        )
        if a[0] != b
    ]
    assert differ == [] and len(texts) > 120
    for a, b in zip(own[1], again[1], strict=True):
        assert [(t, x, y) for t, x, y in zip(texts, a, b, strict=True) if x != y] == []


ONE_STREAM = [
    "to_date(a.s, 'yyyy') < a.e",
    "NOT coalesce(a.s NOT LIKE ANY ('a%', 'b%'), false)",
    "locate('_', a.s, 2) = 2",
    "overlay(a.s PLACING 'X' FROM 2) = 'aXb'",
    "exists(a.l, x -> x > 1)",
    "a.s COLLATE UTF8_LCASE = 'A_B'",
    "timestampdiff(hour, a.t, a.t) = 0",
    "a.l[0] = array(1, 2)[0] AND log(2, a.d) > 1",
]
"""Conditions with a syntax node or an argument that no rule reads."""


def test_what_only_spark_reads_is_taken_of_one_stream_and_refused_of_two(
    spark: SparkSession,
) -> None:
    rows = spark.sql(f"SELECT * FROM VALUES {ROWS} AS v(i, j, d, s, t, e, l, p, b)")
    streams = {"a": rows, "b": rows}
    for on in ONE_STREAM:
        found = parse_predicate(f"{on} AND a.i = b.i", streams, (None, None)).filters[0]
        if on.startswith("to_date"):  # it fails for other texts
            continue
        wanted = rows.alias("a").where(on).select("i").collect()
        assert rows.where(found).select("i").collect() == wanted, on
    for on in (
        "locate('_', a.s, b.i) = 2",
        "to_date(a.s, b.s) = b.e",
        "overlay(a.s PLACING b.s FROM 1) = 'x'",
    ):
        with pytest.raises(PredicateError, match="cannot be evaluated over two streams at once"):
            parse_predicate(on, streams, (None, None))


def test_what_would_be_read_otherwise_than_by_spark_is_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = spark.sql(f"SELECT * FROM VALUES {ROWS} AS v(i, j, d, s, t, e, l, p, b)")
    monkeypatch.setattr(
        "braid.condition.spark_type_checker.to_sql", lambda _: "a.s = 'A_B' AND a.i = b.i"
    )
    with pytest.raises(
        PredicateError, match=r"was understood as a\.s = 'A_B' AND a\.i = b\.i, which"
    ):
        parse_predicate(
            "a.s COLLATE UTF8_LCASE = 'A_B' AND a.i = b.i", {"a": rows, "b": rows}, (None, None)
        )


def test_what_sparks_parser_refuses_is_refused_and_what_it_takes_is_read(
    spark: SparkSession,
) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()

    def is_parsed(on: str) -> bool:
        try:
            parser.parseExpression(f"({on}\n)")  # otherwise a word after it would be its alias
        except ParseException:
            return False
        return True

    stricter = {on for on in NOT_SPARK if is_parsed(on)}
    assert sorted(stricter) == sorted(ALSO_REFUSED)
    assert [on for on in SPARK if not is_parsed(on)] == ["a.n = b.n;"]


def test_conditions_that_are_drawn_and_cut_up_are_read_only_if_spark_parses_them(
    spark: SparkSession,
) -> None:
    """Each condition has a word added, removed or moved, so that most are invalid."""
    parser, draw = spark._jsparkSession.sessionState().sqlParser(), random.Random(39)
    words = re.compile(r"'(?:[^'\\]|\\.)*'|\w+(?:\.\w+)?|<=>|[<>=!]=|<>|\S")
    wrong, counts = [], Counter[bool]()
    for _ in range(1500):
        parts = words.findall(random_case(draw, random_streams(draw)).on)
        at, other = (draw.randrange(len(parts)) for _ in range(2))
        extra = draw.choice([parts[other], *EXTRA.split()])
        parts[at : at + draw.choice((0, 1, 1, 2))] = draw.choice(([], [extra], [extra]))
        on = " ".join(parts)
        try:
            parse_condition(on)
        except PredicateError:
            counts[False] += 1
            continue
        counts[True] += 1
        try:
            parser.parseExpression(f"({on})")
        except ParseException:
            wrong.append(on)
    assert not wrong, "\n".join(wrong[:20])
    assert min(counts.values()) > 100


PLACES = """
log(a.d) > 1
log(2, a.d) > 1 AND ln(a.d) > 0
a.t < now()
a.t < current_timestamp() AND a.e < current_date
a.t < a.t + interval 5 minutes
a.t < a.t + INTERVAL 5 MINUTES
a.t < a.t + interval 1 day 2 hours AND a.t < a.t + interval '1 2' day to hour
timestampdiff(minute, a.t, a.t) = 0 AND timestampdiff(MINUTE, a.t, a.t) = 0
dateadd(day, 2, a.t) > a.t AND DATEADD(HOUR, 2, a.t) > a.t
datediff(day, a.t, a.t) = 0 AND date_diff(DAY, a.t, a.t) = 0
date_trunc('hour', a.t) = a.t AND extract(hour FROM a.t) = 0
"""
"""Conditions over the first stream alone."""


def test_what_spark_takes_is_taken_beside_what_only_spark_reads(spark: SparkSession) -> None:
    rows = spark.sql(f"SELECT * FROM VALUES {ROWS} AS v(i, j, d, s, t, e, l, p, b)")
    streams = {"a": rows, "b": rows}
    for on in PLACES.strip().splitlines():
        predicate = parse_predicate(
            f"{on} AND overlay(a.s PLACING 'X' FROM 2) = 'aXb' AND a.i = b.i", streams, (None, None)
        )
        wanted = rows.alias("a").where(f"({on}) AND a.s = 'a_b'").select("i").collect()
        assert rows.where(predicate.filters[0]).select("i").collect() == wanted, on
