"""No word of a hub's query is ignored: it is answered, or refused in a sentence that names the
word.
"""

from __future__ import annotations

import pytest
from braid.condition.sql_types import SqlType
from braid.errors import QueryError
from braid.hub.query_parser import parse_stream_query

pytestmark = pytest.mark.unit
INT, TIME = SqlType("int"), SqlType("timestamp")
SCHEMAS = {"t": {"k": INT, "q": INT, "ts": TIME}, "p": {"k": INT, "x": INT, "ts": TIME}}
REFUSED = {
    "SELECT * FROM t ASOF FULL JOIN p ON t.k = p.k AND t.ts >= p.ts": "an ASOF FULL JOIN is asked for",
    "SELECT * FROM t NATURAL JOIN p WHERE t.q <= p.x": "a NATURAL JOIN is asked for",
    "SELECT t.q FROM t RIGHT SEMI JOIN p ON t.k = p.k": "a RIGHT SEMI JOIN is asked for",
    "SELECT p.q FROM t SEMI JOIN p ON t.k = p.k": "alias 'p' in the query is unknown",
    "SELECT * EXCEPT (x) FROM t, p WHERE t.k = p.k": "EXCEPT in '* EXCEPT (x)'",
    "SELECT t.* EXCEPT (k) FROM t, p WHERE t.k = p.k": "EXCEPT in '* EXCEPT (k)'",
    "SELECT * REPLACE (1 AS x) FROM t, p WHERE t.k = p.k": "REPLACE in '* REPLACE (1 AS x)'",
    "SELECT * RENAME (x AS y) FROM t, p WHERE t.k = p.k": "RENAME in '* RENAME (x AS y)'",
    "SELECT * FROM t JOIN p USING (k)": "* is selected of a JOIN ... USING (k), where Spark has",
    "SELECT t.q FROM t TABLESAMPLE (10 PERCENT), p WHERE t.k = p.k": "TABLESAMPLE in 't TABLESAMPLE",
    "SELECT t.q FROM t TABLESAMPLE (10 PERCENT) [RANGE 1 MINUTE], p [RANGE 1 MINUTE] "
    "WHERE t.k = p.k": "TABLESAMPLE in 't TABLESAMPLE",
    "SELECT t.q FROM t [RANGE 1 MINUTE] TABLESAMPLE (5 ROWS), p [RANGE 1 MINUTE] "
    "WHERE t.k = p.k": "TABLESAMPLE in 't TABLESAMPLE",
    "SELECT a FROM t AS t(a, b, c), p WHERE a = p.k": "a list of column names in 't(a, b, c)'",
    "SELECT a FROM t [RANGE 1 MINUTE] AS t(a, b, c), p [RANGE 1 MINUTE] "
    "WHERE a = p.k": "a list of column names in 't(a, b, c)'",
    "SELECT /*+ BROADCAST(p) */ t.q FROM t, p WHERE t.k = p.k": "a hint is not supported",
    "SELECT DISTINCT t.q FROM t, p WHERE t.k = p.k": "DISTINCT is not supported",
    "SELECT DISTINCT ON (t.q) t.q FROM t, p WHERE t.k = p.k": "DISTINCT ON",
    "SELECT t.q FROM t, p WHERE t.k = p.k QUALIFY t.q = 1": "QUALIFY is not supported",
    "SELECT t.q FROM t, p LATERAL VIEW explode(array(1)) e AS v WHERE t.k = p.k": "LATERAL VIEW",
    "SELECT t.q FROM t PIVOT (sum(q) FOR k IN (1)), p WHERE t.k = p.k": "PIVOT in 't PIVOT",
    "SELECT t.q FROM t VERSION AS OF 3, p WHERE t.k = p.k": "VERSION or TIMESTAMP AS OF in",
    "SELECT t.q FROM t FOR SYSTEM_TIME AS OF '2024-01-01', p WHERE t.k = p.k": "TIMESTAMP AS OF in",
    "SELECT t.q FROM t, p WHERE t.k = p.k FOR UPDATE": "FOR UPDATE",
    "SELECT t.q FROM t WITH (NOLOCK), p WHERE t.k = p.k": "a hint in 't'",
    "SELECT t.q FROM t JOIN (p JOIN t AS u ON u.k = p.k) ON t.k = p.k": "a join in parentheses in",
    "SELECT t.q FROM db.t, p WHERE t.k = p.k": "FROM takes streams by name",
    "SELECT t.q FROM cat.db.t, p WHERE t.k = p.k": "CATALOG in 'cat.db.t'",
    "SELECT AS STRUCT t.q FROM t, p WHERE t.k = p.k": "KIND is not supported",
    "SELECT t.q INTO x FROM t, p WHERE t.k = p.k": "INTO is not supported",
    "WITH c AS (SELECT 1) SELECT t.q FROM t, p WHERE t.k = p.k": "WITH is not supported",
    "SELECT t.q FROM t, p WHERE t.k = p.k ORDER BY t.q": "ORDER BY is not supported",
    "SELECT t.q FROM t, p WHERE t.k = p.k SORT BY t.q": "SORT BY is not supported",
    "SELECT t.q FROM t, p WHERE t.k = p.k CLUSTER BY t.q": "CLUSTER BY is not supported",
    "SELECT t.q FROM t, p WHERE t.k = p.k DISTRIBUTE BY t.q": "DISTRIBUTE BY is not supported",
    "SELECT t.q FROM t, p WHERE t.k = p.k LIMIT 3": "LIMIT is not supported",
    "SELECT t.q FROM t, p WHERE t.k = p.k OFFSET 3": "OFFSET is not supported",
    "SELECT t.q FROM t, p WHERE t.k = p.k WINDOW w AS (PARTITION BY t.k)": "WINDOW is not supported",
    "SELECT t.q FROM t, p WHERE t.k = p.k GROUP BY ALL": "GROUP BY takes columns",
    "SELECT t.q FROM t, p WHERE t.k = p.k GROUP BY t.q WITH ROLLUP": "GROUP BY takes columns",
}
SAME = [
    "SELECT t.q FROM t, p WHERE t.k = p.k",
    "SELECT ALL t.q FROM t INNER JOIN p ON t.k = p.k",
    "SELECT t.q FROM t CROSS JOIN p WHERE t.k = p.k",
    "SELECT t.q FROM t JOIN p USING (k)",
]


def windows_for(sql: str) -> str | None:
    return None if "[" in sql else "1 minute"


@pytest.mark.parametrize("sql", REFUSED)
def test_a_word_that_no_rule_reads_is_refused_by_its_name(sql: str) -> None:
    with pytest.raises(QueryError) as refused:
        parse_stream_query(sql, SCHEMAS, "ts", windows=windows_for(sql))
    assert REFUSED[sql] in str(refused.value) and "\n" not in str(refused.value)


def test_words_that_change_nothing_are_taken() -> None:
    asked = [parse_stream_query(sql, SCHEMAS, "ts", windows="1 minute") for sql in SAME]
    assert {(q.select, q.where, q.definition.joins) for q in asked} == {
        (asked[0].select, asked[0].where, asked[0].definition.joins)
    }


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t.k FROM t, p WHERE t.k = p.k AND t.p.x > 1",
        "SELECT t.p.x AS y FROM t, p WHERE t.k = p.k",
        "SELECT t.k FROM t, p WHERE t.p.x = p.x",
    ],
)
def test_a_field_of_a_struct_is_not_taken_for_a_column_of_the_stream_of_that_name(sql: str) -> None:
    schemas = {**SCHEMAS, "t": {**SCHEMAS["t"], "p": SqlType("struct<x:int>")}}
    with pytest.raises(QueryError, match=r"^t\.p\.x is a field of a struct, which a hub does not"):
        parse_stream_query(sql, schemas, "ts", windows="1 minute")
