"""TPC-H with Zipf skew, and the five joins of Elseidy 2014 (section 5, Table 1).

Tables come from ``tpchgen-cli``, once per scale factor, and stay in the cache folder as Parquet.
Skew is a property of the data set, as in the paper: for z > 0 the foreign keys l_orderkey and
l_suppkey of lineitem are replaced by draws from a Zipf distribution, by a seeded hash of each row.
So the same z and seed give the same file everywhere.

Every workload can be replayed: the column ``batch`` numbers the micro-batch in which a tuple
arrives.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import ceil
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from braid.kernels.hashing import mix_bits
from braid.sources.static_replay import count_cuts_below
from braid.util.optional_imports import missing_dependency_message
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from braid_lab.workloads.base import BATCH, Workload, cache_folder
from braid_lab.workloads.base import read_table as read
from braid_lab.workloads.zipf_skew import remap_keys, zipf_probabilities

TABLES = ("region", "nation", "supplier", "orders", "lineitem")
MOST_SCALE = 100
"""Maximum scale factor of TPC-H: 100 GB."""


def ensure_dataset(scale: float) -> Path:
    """Return the folder with the five TPC-H tables (TABLE.parquet) at this scale factor.

    They are generated if they are missing. Raises ValueError if ``scale`` is not positive,
    RuntimeError if the generator is missing or fails.
    """
    if not 0 < scale <= MOST_SCALE:
        raise ValueError(
            f"scale is {scale}; the TPC-H scale factor must be greater than 0 and at most "
            f"{MOST_SCALE}"
        )
    folder = cache_folder() / f"tpch-sf{scale:g}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        _generate_tables(scale, folder)
    return folder


def _generate_tables(scale: float, folder: Path) -> None:
    """Generate next to ``folder`` and rename, so that an existing folder is complete."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".tpch-") as parent:
        fresh = Path(parent) / "tables"
        options = [
            "-q",
            "-s",
            f"{scale:g}",
            "--tables",
            ",".join(TABLES),
            "--output-dir",
            str(fresh),
        ]
        done = subprocess.run(
            [_find_generator(), "parquet", *options], capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(
                f"tpchgen-cli failed with exit code {done.returncode}: {done.stderr.strip()}"
            )
        try:
            fresh.rename(folder)
        except OSError:
            if not folder.exists():  # otherwise another process was first
                raise


def _find_generator() -> str:
    places = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    program = shutil.which("tpchgen-cli", path=places)
    if not program:
        raise RuntimeError(missing_dependency_message("tpchgen-cli", "data"))
    return program


def ensure_lineitem(scale: float, skew: float = 0.0, seed: int = 0) -> Path:
    """Return the lineitem file at this scale.

    For ``skew`` z > 0 it is a copy with Zipf-distributed l_orderkey and l_suppkey; z = 0 is TPC-H's
    own table, for any seed. Raises ValueError for a negative z or seed, and for a scale that is not
    positive.
    """
    zipf_probabilities(1, skew)
    if seed < 0:
        raise ValueError(f"seed is {seed}; it must be an integer of at least 0")
    folder = ensure_dataset(scale)
    if skew == 0:
        return folder / "lineitem.parquet"
    target = folder / f"lineitem-z{skew:g}-seed{seed}.parquet"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=folder, prefix=".skew-") as parent:
            fresh = Path(parent) / target.name
            _write_skewed_lineitem(folder, fresh, skew, seed)
            fresh.replace(target)
    return target


def _write_skewed_lineitem(folder: Path, target: Path, z: float, seed: int) -> None:
    domains = {
        "l_orderkey": pq.read_table(folder / "orders.parquet", columns=["o_orderkey"])[
            0
        ].to_numpy(),
        "l_suppkey": pq.read_table(folder / "supplier.parquet", columns=["s_suppkey"])[
            0
        ].to_numpy(),
    }
    source = pq.ParquetFile(folder / "lineitem.parquet")
    with pq.ParquetWriter(target, source.schema_arrow) as writer:
        for group in range(source.num_row_groups):
            writer.write_table(_skew_foreign_keys(source.read_row_group(group), domains, z, seed))


def _skew_foreign_keys(
    rows: pa.Table, domains: Mapping[str, npt.NDArray[np.int64]], z: float, seed: int
) -> pa.Table:
    order, line = (rows[c].to_numpy().astype(np.uint64) for c in ("l_orderkey", "l_linenumber"))
    identity = order * np.uint64(8) + line  # an order has at most 7 lines
    for salt, (column, keys) in enumerate(domains.items()):
        hashes = mix_bits(
            mix_bits(identity) + mix_bits(np.array([2 * seed + salt], dtype=np.uint64))
        )
        place = rows.schema.get_field_index(column)
        rows = rows.set_column(
            place, rows.schema.field(column), pa.array(remap_keys(keys, hashes, z, seed + salt))
        )
    return rows


def make_eq5(
    spark: SparkSession, scale: float = 0.01, skew: float = 0.0, seed: int = 0, batches: int = 20
) -> Workload:
    """Return E_Q5: the suppliers of region AMERICA with lineitem on the supplier key.

    The suppliers are Region x Nation x Supplier.
    """
    region = _read_table(spark, scale, "region").where("r_name = 'AMERICA'")
    nation = _read_table(spark, scale, "nation").join(
        F.broadcast(region), F.expr("n_regionkey = r_regionkey")
    )
    streams = {
        "s": _join_suppliers(spark, scale, nation),
        "l": _read_lineitem(spark, scale, skew, seed),
    }
    return Workload("EQ5", _shuffle_streams(streams, seed, batches), "s.s_suppkey = l.l_suppkey")


def make_eq7(
    spark: SparkSession, scale: float = 0.01, skew: float = 0.0, seed: int = 0, batches: int = 20
) -> Workload:
    """Return E_Q7: the suppliers of Peru and Ethiopia with the lines shipped in 1995 and 1996.

    The suppliers are Supplier x Nation.
    """
    nation = _read_table(spark, scale, "nation").where("n_name IN ('PERU', 'ETHIOPIA')")
    shipped = _read_lineitem(spark, scale, skew, seed).where(
        "l_shipdate BETWEEN DATE'1995-01-01' AND DATE'1996-12-31'"
    )
    streams = {"s": _join_suppliers(spark, scale, nation), "l": shipped}
    return Workload("EQ7", _shuffle_streams(streams, seed, batches), "s.s_suppkey = l.l_suppkey")


def make_bci(
    spark: SparkSession,
    scale: float = 0.01,
    skew: float = 0.0,
    seed: int = 0,
    batches: int = 20,
    quantity: float = 45,
    width: int = 1,
) -> Workload:
    """Return B_CI, computation-intensive.

    It joins lines sent by truck (more than ``quantity`` pieces) with the others shipped within
    ``width`` days. No foreign key takes part, so skew does not change its result size.
    """
    lines = _read_lineitem(spark, scale, skew, seed)
    streams = _select_truck_lines(lines, quantity, "l_shipmode <> 'TRUCK'")
    return Workload(
        "BCI",
        _shuffle_streams(streams, seed, batches),
        f"abs(datediff(l1.l_shipdate, l2.l_shipdate)) <= {width}",
    )


def make_bnci(
    spark: SparkSession,
    scale: float = 0.01,
    skew: float = 0.0,
    seed: int = 0,
    batches: int = 20,
    quantity: float = 48,
    width: int = 1,
) -> Workload:
    """Return B_NCI, not computation-intensive.

    It joins lines sent by truck (more than ``quantity`` pieces) with lines without shipping
    instructions whose order key differs by at most ``width``.
    """
    lines = _read_lineitem(spark, scale, skew, seed)
    streams = _select_truck_lines(lines, quantity, "l_shipinstruct = 'NONE'")
    return Workload(
        "BNCI",
        _shuffle_streams(streams, seed, batches),
        f"abs(l1.l_orderkey - l2.l_orderkey) <= {width}",
    )


def _select_truck_lines(lines: DataFrame, quantity: float, others: str) -> dict[str, DataFrame]:
    """Return the lines sent by truck with more than ``quantity`` pieces, and other lines."""
    trucks = lines.where((F.col("l_shipmode") == "TRUCK") & (F.col("l_quantity") > quantity))
    return {"l1": trucks, "l2": lines.where(others)}


def make_fluct_join(
    spark: SparkSession,
    scale: float = 0.01,
    skew: float = 0.0,
    seed: int = 0,
    batches: int = 64,
    k: float = 4,
) -> Workload:
    """Return Fluct-Join: lineitem (R) with the orders of medium priority (S) on the order key.

    |R|/|S| swings between k and 1/k. Batches have equal numbers of tuples (within one). The order
    is exact: it takes one pass over both streams at the start. Raises ValueError unless k > 1 and
    batches is at least 1.
    """
    _check_batches(batches)
    streams = _read_fluctuating_streams(spark, scale, skew, seed)
    thresholds = _get_batch_thresholds(spark, ensure_dataset(scale), scale, skew, seed, batches, k)
    replayed = {}
    for side, stream in streams.items():
        hashed = stream.withColumn(BATCH, _make_arrival_hash(seed))
        replayed[side] = hashed.withColumn(BATCH, count_cuts_below(BATCH, thresholds[side]))
    return Workload("Fluct-Join", replayed, "l.l_orderkey = o.o_orderkey")


def _read_fluctuating_streams(
    spark: SparkSession, scale: float, skew: float, seed: int
) -> dict[str, DataFrame]:
    """Return the streams of Fluct-Join."""
    orders = _read_table(spark, scale, "orders").where(
        "o_orderpriority NOT IN ('5-LOW', '1-URGENT')"
    )
    return {"l": _read_lineitem(spark, scale, skew, seed), "o": orders}


_KNOWN: dict[tuple[Path | float, ...], Mapping[str, Sequence[int]]] = {}
"""Cached thresholds by data set and settings: they need no session."""


def _get_batch_thresholds(
    spark: SparkSession, folder: Path, scale: float, skew: float, seed: int, batches: int, k: float
) -> Mapping[str, Sequence[int]]:
    """Return, by stream, the greatest arrival hashes of each micro-batch but the last.

    They are cached, so that a repeated launch needs no pass over the data in ``folder``.
    """
    of = folder, scale, skew, seed, batches, k
    if of not in _KNOWN:
        _KNOWN[of] = _compute_batch_thresholds(spark, scale, skew, seed, batches, k)
    return _KNOWN[of]


def _compute_batch_thresholds(
    spark: SparkSession, scale: float, skew: float, seed: int, batches: int, k: float
) -> Mapping[str, Sequence[int]]:
    streams = _read_fluctuating_streams(spark, scale, skew, seed)
    with ThreadPoolExecutor(len(streams)) as both:
        sorted_hashes = both.map(
            lambda stream: _sort_arrival_hashes(stream, seed), streams.values()
        )
        hashes = dict(zip(streams, sorted_hashes, strict=True))
    phases = fluctuation_phases(len(hashes["l"]), len(hashes["o"]), k)
    total = sum(count for _, count in phases)
    edges = [total * b // batches for b in range(1, batches)]
    return {
        side: [
            _find_hash_threshold(hashes[side], sent)
            for sent in _count_side_arrivals(phases, side, edges)
        ]
        for side in streams
    }


def fluctuation_phases(lines: int, orders: int, k: float) -> list[tuple[str, int]]:
    """Return the phases of Fluct-Join, as (side, number of tuples) with sides "l" (first) and "o".

    Each phase sends k * sent_this - sent_other tuples of the other side, until a stream ends; the
    rest of the other stream comes last. The first phase is chosen so that the orders end together
    with one of their phases, at |R|/|S| = 1/k, and has about a 5000th of all tuples.

    Raises ValueError unless k > 1.
    """
    if not 1 < k < np.inf:
        raise ValueError(f"fluctuation k is {k}; it must be a number greater than 1")
    totals = {"l": lines, "o": orders}
    first = orders / k
    while first / k**2 >= max((lines + orders) / 5000, 1):
        first /= k**2
    sent = {"l": 0, "o": 0}
    phases: list[tuple[str, int]] = []
    side, other, wanted = "l", "o", max(1, ceil(first))
    while wanted > 0:
        count = min(wanted, totals[side] - sent[side])
        phases.append((side, count))
        sent[side] += count
        side, other = other, side
        wanted = min(round(k * sent[other]) - sent[side], totals[side] - sent[side])
    phases += [(s, totals[s] - sent[s]) for s in ("l", "o")]
    return [(s, count) for s, count in phases if count > 0]


def _count_side_arrivals(phases: list[tuple[str, int]], side: str, edges: list[int]) -> list[int]:
    """Return how many tuples of ``side`` are among the first ``edge`` arrivals, for each edge."""
    everything = np.cumsum([0] + [count for _, count in phases])
    own_counts = np.cumsum([0] + [count if s == side else 0 for s, count in phases])
    return [int(n) for n in np.interp(edges, everything, own_counts)]


def _sort_arrival_hashes(stream: DataFrame, seed: int) -> npt.NDArray[np.int64]:
    """Return the sorted arrival hashes of a stream; rank r arrives as number r of its stream."""
    return np.sort(
        stream.select(_make_arrival_hash(seed).alias("hash")).toArrow()["hash"].to_numpy()
    )


def _find_hash_threshold(hashes: npt.NDArray[np.int64], sent: int) -> int:
    """Return the greatest hash among the first ``sent`` arrivals."""
    return int(hashes[sent - 1]) if sent else int(np.iinfo(np.int64).min)


def _make_arrival_hash(seed: int) -> Column:
    """Return the place of a tuple in its stream's random order of arrival.

    It is a pure function of the tuple and the seed.
    """
    return F.xxhash64(F.lit(seed), F.lit("arrival"), F.col("*"))


def _shuffle_streams(
    streams: Mapping[str, DataFrame], seed: int, batches: int
) -> dict[str, DataFrame]:
    """Return the streams in a random order of arrival, spread roughly evenly over the batches."""
    _check_batches(batches)
    number = F.pmod(_make_arrival_hash(seed), F.lit(batches)).cast("int")
    return {alias: stream.withColumn(BATCH, number) for alias, stream in streams.items()}


def _check_batches(batches: int) -> None:
    if batches < 1:
        raise ValueError(f"batches is {batches}; a replay has at least 1 micro-batch")


def _read_table(spark: SparkSession, scale: float, table: str) -> DataFrame:
    return read(spark, ensure_dataset(scale) / f"{table}.parquet")


def _read_lineitem(spark: SparkSession, scale: float, skew: float, seed: int) -> DataFrame:
    return read(spark, ensure_lineitem(scale, skew, seed))


def _join_suppliers(spark: SparkSession, scale: float, nation: DataFrame) -> DataFrame:
    return _read_table(spark, scale, "supplier").join(
        F.broadcast(nation), F.expr("s_nationkey = n_nationkey")
    )


WORKLOADS: dict[str, Callable[..., Workload]] = {
    "EQ5": make_eq5,
    "EQ7": make_eq7,
    "BCI": make_bci,
    "BNCI": make_bnci,
    "Fluct-Join": make_fluct_join,
}
