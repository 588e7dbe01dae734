"""Conditions analyzed by the parser and joined by the kernels, against Spark's join of the same
text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from braid.condition.parser import parse_predicate
from braid.condition.predicate import Predicate
from braid.core.reserved_columns import TIME
from braid.kernels.block_builder import build_block
from braid.kernels.host_block_rows import BlockRows
from oracle import Ids, create_frames, describe_difference, kernel_pairs, make_tables
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

pytestmark = pytest.mark.usefixtures("compiled")

# One condition per line; "index": the parser must find a link between the streams; "scan": it must
# not.
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
index | a.k - b.k > b.k - a.k
index | a.k - 1 + b.k = 30
index | a.n + b.n = 5
index | a.k + 3 - b.k > b.k - a.k - 5
scan | a.n - b.n > b.n - a.n
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
index | b.f > a.f
index | NOT b.f <= a.f
index | -b.f > -a.f
index | 1 - b.f > 2 - a.f
index | b.f + 1 > 2 - a.f
index | b.n >= a.f
scan | a.f - b.f >= 1
index | a.f - b.f <= 1
scan | a.f - b.f > 0
scan | 1 <= a.f - b.f
index | 1 > a.f - b.f
index | 5 - a.f >= 2 - b.f
index | -a.f >= -b.f
index | a.f - a.n <= b.f - b.n
scan | a.f - b.f <= b.n - a.n
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
scan | a.m * a.m > b.m
index | a.m + a.m > b.m
index | a.m - b.m < b.m - a.m
scan | a.k - b.m < b.m - a.k
index | 5.5 - a.k > b.m
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
index | a.s <=> b.s
index | a.k = b.k OR a.s = b.s
index | a.n IN (b.n, b.k)
index | a.s LIKE concat(b.s, '%') AND length(b.s) > 1
index | levenshtein(a.s, b.s) <= 1
index | startswith(a.s, b.s) AND a.n < b.n
scan | concat(a.s, b.s) = 'ab'
scan | a.s || b.s = 'abc'
scan | instr(a.s, b.s) > 1
scan | abs(a.n - b.n) = 1
scan | greatest(a.n, b.n) < -300
scan | least(a.f, b.f) > 3
scan | coalesce(a.n, b.n) = 7
scan | if(a.flag, a.n, b.n) = b.k
scan | CASE WHEN a.n > b.n THEN a.flag WHEN a.n < b.n THEN b.flag END
index | power(a.n - b.n, 2) + power(a.k - b.k, 2) < 50
scan | (a.n - b.n) * (a.k - b.k) > 5000
scan | a.d > b.ts
scan | a.ts > b.ts + INTERVAL 1 MONTH OR a.d = b.d
index | hour(a.ts) = b.k OR minute(a.ts) = minute(b.ts) AND a.k = b.k
index | dayofweek(a.d) = 1 AND a.k = b.k OR a.n = b.n
index | cast(a.m AS int) = b.k OR a.s = b.s AND a.n = b.n
index | to_date(a.ts) = b.d OR a.n = b.n
index | date_format(a.d, 'E') = b.s OR a.n = b.n
scan | round(a.f * b.f, 1) = 1.5
scan | a.m * b.m > 500
index | a.m + b.m = 1.25 OR a.m = b.m
scan | CASE WHEN a.flag THEN b.n > 0 WHEN a.n > b.n THEN true ELSE b.k = 3 END
scan | CASE a.k WHEN b.k THEN true WHEN 3 THEN b.flag END
scan | (a.n - b.n) % 7 = -3 OR (a.n + b.n) div 50 = -2
scan | a.s ILIKE b.s OR a.n / b.n > 100
scan | a.f - b.f >= -0.5 OR a.f - b.f <= b.n
index | datediff(a.d, b.d) = 3 OR a.d > b.d AND a.n = b.n
index | sqrt(power(a.n - b.n, 2)) < 3 AND round(sin(a.n + b.n), 3) > 0.5
scan | a.n = b.n OR current_date() < a.d
scan | isnan(a.f) AND isnan(b.f) OR a.n = b.n
index | NOT (a.n < b.n) AND a.n < b.n + 5
""".strip().splitlines()
STREAMS = make_tables("ab", {"a": 300, "b": 350}, seed=11)


TEXTS = [line.split(" | ", 1)[1] for line in CONDITIONS]
Block = dict[str, pa.Array]


@pytest.fixture(scope="module")
def given(spark: SparkSession) -> dict[str, DataFrame]:
    return create_frames(spark, STREAMS)


@pytest.fixture(scope="module")
def predicates(given: dict[str, DataFrame]) -> dict[str, Predicate]:
    return {on: parse_predicate(on, given, (None, None)) for on in TEXTS}


@pytest.fixture(scope="module")
def blocks(
    given: dict[str, DataFrame], predicates: dict[str, Predicate]
) -> dict[str, tuple[BlockRows, BlockRows]]:
    """Return, for each condition, the rows of both streams that pass its filters, with computed
    values.

    Spark computes all of them in one pass over each stream.
    """
    wanted = [
        {
            on: p.key_columns[s] | p.computed_columns[s] | {"": p.filters[s] or "true"}
            for on, p in predicates.items()
        }
        for s in (0, 1)
    ]
    done = []
    for frame, conditions in zip(given.values(), wanted, strict=True):
        columns = [F.expr(sql) for asked in conditions.values() for sql in asked.values()]
        names = [(on, name) for on, asked in conditions.items() for name in asked]
        rows = frame.select("*", *(c.alias(str(n)) for n, c in enumerate(columns))).toArrow()
        own = {name: rows[name] for name in frame.columns}
        done.append((own, {at: rows[str(n)] for n, at in enumerate(names)}))
    return {on: tuple(_block(p, s, on, *done[s]) for s in (0, 1)) for on, p in predicates.items()}


def _block(
    p: Predicate, s: int, on: str, own: Block, computed: Mapping[tuple[str, str], pa.Array]
) -> BlockRows:
    """Return the block of a stream, as a host would hold it."""
    mine = {name: column for (of, name), column in computed.items() if of == on and name}
    passed = computed[on, ""]
    for name in p.key_columns[s]:  # NULL never matches
        passed = pc.and_(passed, pc.is_valid(mine[name]))
    rows = pa.table(own | mine | {TIME: pa.array([0] * len(passed), pa.int64())})
    return BlockRows(
        build_block(rows.filter(passed).combine_chunks().to_batches()[0], p.stream_orders(s))
    )


@pytest.fixture(scope="module")
def truth(given: dict[str, DataFrame]) -> dict[str, Ids]:
    """Return Spark's own answer to all conditions, in one pass over all pairs."""
    pairs = given["a"].alias("a").crossJoin(given["b"].alias("b"))
    columns = [F.expr(f"coalesce({on}, false)").alias(str(i)) for i, on in enumerate(TEXTS)]
    answer = pairs.select(F.col("a.id").alias("a"), F.col("b.id").alias("b"), *columns).toArrow()
    a, b = (answer.column(x).to_numpy() for x in ("a", "b"))
    hits = [
        np.flatnonzero(answer.column(str(i)).to_numpy(zero_copy_only=False))
        for i in range(len(TEXTS))
    ]
    return {
        on: Counter(zip(a[at].tolist(), b[at].tolist(), strict=True))
        for on, at in zip(TEXTS, hits, strict=True)
    }


@pytest.mark.parametrize("line", CONDITIONS)
def test_kernels_agree_with_spark(
    predicates: dict[str, Predicate],
    blocks: dict[str, tuple[BlockRows, BlockRows]],
    truth: dict[str, Ids],
    line: str,
) -> None:
    kind, on = line.split(" | ", 1)
    predicate = predicates[on]
    assert describe_difference(kernel_pairs(predicate, *blocks[on]), truth[on]) == ""
    assert kind == ("index" if predicate.next_step(frozenset({0}), 1).access_path else "scan")


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_what_is_moved_across_a_comparison_does_not_overflow(
    spark: SparkSession, ansi: str
) -> None:
    """Moved terms do not overflow if the original comparison does not.

    An overflow of the original has Spark's behavior: without ANSI it wraps around.
    """
    most = 2**31 - 1
    a = [(0, 1_700_000_100, 1_700_000_200), (1, 10**9, 10**9), (2, most, most)]
    b = [(0, 1_700_000_000, 1_700_000_100), (1, most - 9, most)]
    streams = {
        alias: spark.createDataFrame(rows, "id long, x int, y int")
        for alias, rows in (("a", a), ("b", b))
    }
    written = ["a.x - b.x > b.y - a.y", "a.x - b.x = b.y - a.y", "a.x - 5 - b.y < b.x - a.y"]
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for on in [*written, *(["a.x + a.y < b.x"] if ansi == "false" else [])]:
            predicate = parse_predicate(on, streams, (None, None))
            found = [
                frame.select("*", *(F.expr(sql).alias(n) for n, sql in keys.items()))
                .withColumn(TIME, F.lit(0).cast("long"))
                .toArrow()
                for frame, keys in zip(streams.values(), predicate.key_columns, strict=True)
            ]
            rows = (
                BlockRows(
                    build_block(t.combine_chunks().to_batches()[0], predicate.stream_orders(i))
                )
                for i, t in enumerate(found)
            )
            joined = streams["a"].alias("a").join(streams["b"].alias("b"), F.expr(on))
            truth = joined.select("a.id", "b.id").collect()
            assert predicate.index_conditions and kernel_pairs(predicate, *rows) == Counter(
                map(tuple, truth)
            )
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
