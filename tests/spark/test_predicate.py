"""Conditions taken apart by the parser and joined by the kernels, against Spark's own join of the
same text.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from braid.join import StreamJoin
from braid.papers.baselines.centralized import Centralized
from oracle import Ids, differ, frames, local, tables
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

# One condition a line; "index" says that the parser must find a link between the streams, "scan"
# that it must not.
CONDITIONS = """
index | a.k = b.k
index | a.k = b.k AND a.k = b.n
index | b.k = a.k AND a.s = b.s AND a.d = b.d
index | a.n > b.n + 300
index | a.n + 300 <= b.n
index | 300 < b.n - a.n
index | -a.n >= b.n + 100
index | 5 - a.n = b.n
index | abs(a.n - b.n) <= 4
index | abs(b.n - a.n) < 4
index | 4 >= abs(a.n - b.n)
index | abs(a.n - b.n) <= -1
index | abs(a.n + a.k - b.n) <= 2 * 3
index | a.n BETWEEN b.n - 4 AND b.n + 4
index | a.n - b.n BETWEEN -4 AND 4
index | a.n - b.n <= 3.5 AND a.n - b.n >= -3.5
index | a.n * 2 = b.n + b.k
index | a.n = b.k AND a.n <= b.n AND a.n >= b.n - 200
index | a.k = b.k AND (a.n < b.n OR a.s = b.s)
index | a.k = b.k AND NOT (a.n < b.n)
index | a.k = b.k AND a.k IN (1, 2, 3) AND b.n IS NOT NULL
index | a.k = b.k AND a.n IS NULL
index | a.k = b.k AND true AND 1 < 2
index | a.f = b.f
index | a.f <= b.f
index | a.f > b.f
index | a.f = b.k
index | a.f < b.n
index | abs(a.f - b.f) <= 0.5
index | abs(a.f - b.f) < 0.5
index | abs(a.f - b.n) <= 0.75
index | a.f BETWEEN b.f - 0.5 AND b.f + 0.5
index | a.f - b.f BETWEEN -0.5 AND 0.5
index | a.f <= b.f + 1
scan | a.f - b.f >= 1
index | a.f - b.f <= 1
scan | a.f - b.f > 0
scan | 1 <= a.f - b.f
index | 1 > a.f - b.f
index | a.f - b.f <= 0
index | a.f - b.f = 0
scan | a.f + b.f > 2
index | a.f * 2 - a.n <= b.f
index | a.m = b.m
index | a.m = b.k * 1000000
index | a.m = b.n
index | a.m < b.m - 20.005
index | abs(a.m - b.m) <= 1.5
index | a.m = b.k
index | a.m > b.f + 20
index | cast(a.m AS decimal(30, 12)) = b.m
index | cast(a.m AS decimal(30, 12)) = cast(b.m AS decimal(30, 12))
index | a.s = b.s
index | upper(a.s) = lower(b.s)
index | substring(a.s, 1, 1) = substring(b.s, 1, 1) AND a.k = b.k
index | a.d = b.d
index | a.d < b.d - INTERVAL 40 DAYS
index | a.d <= b.d + 1 AND a.d >= date_sub(b.d, 1)
index | datediff(a.d, b.d) = 2
index | abs(datediff(a.d, b.d)) <= 1
index | a.flag = b.flag AND a.k = b.k
index | a.flag < b.flag
index | a.ts = b.ts
index | a.ts BETWEEN b.ts - INTERVAL '2' SECOND AND b.ts + INTERVAL 1 MINUTE
index | abs(unix_timestamp(a.ts) - unix_timestamp(b.ts)) <= 2
index | year(a.d) * 400 + dayofyear(a.d) = year(b.d) * 400 + dayofyear(b.d)
scan | a.k <> b.k
scan | a.s < b.s
scan | a.s <=> b.s
scan | a.k = b.k OR a.s = b.s
scan | a.n IN (b.n, b.k)
scan | a.s LIKE concat(b.s, '%') AND length(b.s) > 1
scan | concat(a.s, b.s) = 'ab'
scan | a.s || b.s = 'abc'
scan | instr(a.s, b.s) > 1
scan | abs(a.n - b.n) = 1
scan | greatest(a.n, b.n) < -300
scan | least(a.f, b.f) > 3
scan | coalesce(a.n, b.n) = 7
scan | if(a.flag, a.n, b.n) = b.k
scan | CASE WHEN a.n > b.n THEN a.flag WHEN a.n < b.n THEN b.flag END
scan | power(a.n - b.n, 2) + power(a.k - b.k, 2) < 50
scan | (a.n - b.n) * (a.k - b.k) > 5000
scan | a.d > b.ts
scan | a.ts > b.ts + INTERVAL 1 MONTH OR a.d = b.d
scan | hour(a.ts) = b.k OR minute(a.ts) = minute(b.ts) AND a.k = b.k
scan | dayofweek(a.d) = 1 AND a.k = b.k OR a.n = b.n
scan | cast(a.m AS int) = b.k OR a.s = b.s AND a.n = b.n
scan | to_date(a.ts) = b.d OR a.n = b.n
scan | date_format(a.d, 'E') = b.s OR a.n = b.n
scan | round(a.f * b.f, 1) = 1.5
scan | a.m * b.m > 500
scan | a.m + b.m = 1.25 OR a.m = b.m
scan | CASE WHEN a.flag THEN b.n > 0 WHEN a.n > b.n THEN true ELSE b.k = 3 END
scan | CASE a.k WHEN b.k THEN true WHEN 3 THEN b.flag END
scan | (a.n - b.n) % 7 = -3 OR (a.n + b.n) div 50 = -2
scan | a.s ILIKE b.s OR a.n / b.n > 100
scan | a.f - b.f >= -0.5 OR a.f - b.f <= b.n
scan | datediff(a.d, b.d) = 3 OR a.d > b.d AND a.n = b.n
scan | sqrt(power(a.n - b.n, 2)) < 3 AND round(sin(a.n + b.n), 3) > 0.5
scan | a.n = b.n OR current_date() < a.d
scan | isnan(a.f) AND isnan(b.f) OR a.n = b.n
index | NOT (a.n < b.n) AND a.n < b.n + 5
""".strip().splitlines()
STREAMS = tables("ab", {"a": 300, "b": 350}, seed=11)


@pytest.fixture(scope="module")
def given(spark: SparkSession) -> dict[str, DataFrame]:
    return {a: f.cache() for a, f in frames(spark, STREAMS).items()}


@pytest.fixture(scope="module")
def truth(given: dict[str, DataFrame]) -> dict[str, Ids]:
    """Spark's own answer to all conditions, in one pass over all pairs."""
    pairs = given["a"].alias("a").crossJoin(given["b"].alias("b"))
    texts = [line.split(" | ", 1)[1] for line in CONDITIONS]
    columns = [F.expr(f"coalesce({on}, false)").alias(str(i)) for i, on in enumerate(texts)]
    answer = pairs.select(F.col("a.id").alias("a"), F.col("b.id").alias("b"), *columns).toArrow()
    a, b = (answer.column(x).to_numpy() for x in ("a", "b"))
    hits = [
        np.flatnonzero(answer.column(str(i)).to_numpy(zero_copy_only=False))
        for i in range(len(texts))
    ]
    return {
        on: Counter(zip(a[at].tolist(), b[at].tolist(), strict=True))
        for on, at in zip(texts, hits, strict=True)
    }


@pytest.mark.parametrize("line", CONDITIONS)
def test_kernels_agree_with_spark(
    given: dict[str, DataFrame], truth: dict[str, Ids], line: str
) -> None:
    kind, on = line.split(" | ", 1)
    join = StreamJoin(given, on, Centralized())
    assert differ(local(join), truth[on]) == ""
    assert kind == ("index" if join.predicate.step(frozenset({0}), 1).index else "scan")
