"""The five workloads: result sizes, skew and order of arrival."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, dropwhile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid_lab.workloads import tpch
from braid_lab.workloads.base import Workload
from braid_lab.workloads.tpch import WORKLOADS
from braid_lab.workloads.zipf_skew import zipf_probabilities
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

pytestmark = pytest.mark.usefixtures("compiled")

# Results of the original system at scale factor 0.01 without skew (BCI: by calendar days).
EXPECTED = [
    ("EQ5", {}, 11_995),
    ("EQ7", {}, 1_217),
    ("BNCI", {"quantity": 46}, 2_200),
    ("BCI", {"quantity": 42}, 87_718),
]
SQL = {
    "EQ5": """SELECT count(*) FROM region, nation, supplier, lineitem WHERE r_name = 'AMERICA' AND n_regionkey = r_regionkey
              AND s_nationkey = n_nationkey AND l_suppkey = s_suppkey""",
    "EQ7": """SELECT count(*) FROM nation, supplier, lineitem WHERE n_name IN ('PERU', 'ETHIOPIA')
              AND s_nationkey = n_nationkey AND l_suppkey = s_suppkey
              AND l_shipdate >= DATE '1995-01-01' AND l_shipdate <= DATE '1996-12-31'""",
    "BNCI": """SELECT count(*) FROM lineitem l1, lineitem l2 WHERE l1.l_shipmode = 'TRUCK' AND l1.l_quantity > 46
               AND l2.l_shipinstruct = 'NONE' AND l1.l_orderkey BETWEEN l2.l_orderkey - 1 AND l2.l_orderkey + 1""",
    "BCI": """SELECT count(*) FROM lineitem l1, lineitem l2 WHERE l1.l_shipmode = 'TRUCK' AND l1.l_quantity > 42
              AND l2.l_shipmode <> 'TRUCK' AND l1.l_shipdate BETWEEN l2.l_shipdate - 1 AND l2.l_shipdate + 1""",
    "Fluct-Join": """SELECT count(*) FROM lineitem, orders WHERE l_orderkey = o_orderkey
                     AND o_orderpriority <> '5-LOW' AND o_orderpriority <> '1-URGENT'""",
}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRAID_CACHE", str(folder))
        yield folder


def duck(name: str) -> int:
    with duckdb.connect() as db:
        for table in tpch.TABLES:
            db.execute(f"CREATE VIEW {table} AS FROM '{tpch.ensure_dataset(0.01)}/{table}.parquet'")
        row = db.execute(SQL[name]).fetchone()
    assert row is not None
    return int(row[0])


def joined(workload: Workload) -> DataFrame:
    (a, r), (b, s) = workload.streams.items()
    return r.alias(a).join(s.alias(b), F.expr(workload.condition))


def sizes(rows: pa.Table, column: str) -> Counter[int]:
    return Counter(rows[column].to_pylist())


def ordered(rows: pa.Table) -> pa.Table:
    """Return the rows in the order of all their columns, to compare multisets."""
    return rows.sort_by([(c, "ascending") for c in rows.column_names])


@pytest.mark.parametrize(("name", "settings", "expected"), EXPECTED)
def test_result_sizes_are_those_of_the_original_system(
    spark: SparkSession, name: str, settings: dict[str, float], expected: int
) -> None:
    assert duck(name) == expected
    assert joined(WORKLOADS[name](spark, scale=0.01, **settings)).count() == expected


def test_fluct_join_agrees_with_duckdb(spark: SparkSession) -> None:
    assert joined(tpch.make_fluct_join(spark, scale=0.01)).count() == duck("Fluct-Join")


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_tuple_arrives_once_in_a_batch_of_the_replay(spark: SparkSession, name: str) -> None:
    made = [WORKLOADS[name](spark, scale=0.001, batches=5, seed=seed) for seed in (0, 0, 1)]
    assert {workload.batch for workload in made} == {"batch"}
    first, again, other = (
        {a: ordered(f.toArrow()) for a, f in workload.streams.items()} for workload in made
    )
    for rows in first.values():
        assert set(sizes(rows, "batch")) <= set(range(5))
    assert first == again
    assert first != other, "another seed gives another order of arrival"


@pytest.mark.parametrize("k", [2, 4])
def test_fluct_swings_between_k_and_its_inverse(spark: SparkSession, k: int) -> None:
    batches = 100
    workload = tpch.make_fluct_join(spark, scale=0.01, batches=batches, k=k)
    lines, orders = (sizes(s.select("batch").toArrow(), "batch") for s in workload.streams.values())
    each = [lines[b] + orders[b] for b in range(batches)]
    assert max(each) - min(each) <= 1
    sent = zip(
        accumulate(lines[b] for b in range(batches)),
        accumulate(orders[b] for b in range(batches)),
        strict=True,
    )
    # from the end of the second phase until all orders have been sent: the last lines have no
    # orders to alternate with
    ratios = list(
        dropwhile(
            lambda ratio: ratio > k, (r / s for r, s in sent if s and r <= k * orders.total())
        )
    )
    assert 1 / k * 0.99 < min(ratios) < 1.15 / k
    assert k / 1.15 < max(ratios) < k * 1.01
    above = [r > 1 for r in ratios]
    assert sum(a != b for a, b in zip(above, above[1:], strict=False)) >= 3


@pytest.mark.parametrize("z", [0.5, 1.0, 2.0])
def test_skewed_keys_follow_zipf(z: float) -> None:
    counts = sizes(pq.read_table(tpch.ensure_lineitem(0.01, z, seed=3)), "l_suppkey")
    rows, expected = counts.total(), zipf_probabilities(100, z)
    assert rows == 60_175
    measured = np.array(sorted(counts.values(), reverse=True) + [0] * (100 - len(counts))) / rows
    assert np.abs(np.cumsum(measured) - np.cumsum(expected)).max() < 0.01
    assert counts.most_common(1)[0][0] != 1, "ranks are dealt to keys by a permutation"


def test_skew_changes_foreign_keys_only_and_depends_on_the_seed() -> None:
    plain, skewed, other = (
        tpch.ensure_lineitem(0.001, z, seed) for z, seed in [(0, 7), (1, 0), (1, 1)]
    )
    assert pq.read_schema(plain) == pq.read_schema(skewed)
    assert lacking(plain, skewed, "* EXCLUDE (l_orderkey, l_suppkey)") == 0
    assert lacking(skewed, other) > 0
    keys = [{*pq.read_table(file)["l_orderkey"].to_pylist()} for file in (plain, skewed)]
    assert len(keys[1]) < len(keys[0])
    orders = pq.read_table(tpch.ensure_dataset(0.001) / "orders.parquet")
    assert keys[1] <= {*orders["o_orderkey"].to_pylist()}


def lacking(one: Path, other: Path, columns: str = "*") -> int:
    """Return how many rows of one file another one lacks."""
    rows = f"SELECT {columns} FROM '{one}' EXCEPT ALL SELECT {columns} FROM '{other}'"
    with duckdb.connect() as db:
        return len(db.execute(rows).fetchall())


def test_skew_makes_the_same_file_again(cache: Path) -> None:
    first = tpch.ensure_lineitem(0.001, 0.75)
    content = first.read_bytes()
    first.unlink()
    assert tpch.ensure_lineitem(0.001, 0.75).read_bytes() == content
    assert tpch.ensure_lineitem(0.001, 0.0, seed=5) == cache / "tpch-sf0.001" / "lineitem.parquet"
    assert not list(cache.rglob(".*")), "nothing is left behind"


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("EQ5", {"scale": 0}, "scale is 0; the TPC-H scale factor must be greater than 0"),
        ("EQ7", {"skew": -1}, "skew z is -1; it must be a number of at least 0"),
        ("EQ7", {"skew": float("nan")}, "skew z is nan; it must be a number of at least 0"),
        ("BCI", {"batches": 0}, "batches is 0; a replay has at least 1 micro-batch"),
        ("BNCI", {"seed": -1}, "seed is -1; it must be an integer of at least 0"),
        ("Fluct-Join", {"k": 1}, "fluctuation k is 1; it must be a number greater than 1"),
    ],
)
def test_bad_settings_are_refused(
    spark: SparkSession, name: str, settings: dict[str, float], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")):
        WORKLOADS[name](spark, **{"scale": 0.001} | settings)


def test_a_generator_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRAID_CACHE", str(tmp_path))
    monkeypatch.setattr(tpch, "_find_generator", lambda: "false")
    with pytest.raises(RuntimeError, match="tpchgen-cli failed with exit code 1"):
        tpch.ensure_dataset(0.001)
    assert not list(tmp_path.iterdir())
