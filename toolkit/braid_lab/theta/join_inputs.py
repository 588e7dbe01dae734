"""The joins of Elseidy 2014, Table 1, counted in TPC-H's own tables.

Counted are the tuples of each stream, their spread over join values, and the results. The tables
are those that ``braid_lab.workloads.tpch`` generates, with the filters of its workloads. No Spark.
``spread_keys`` makes the counts of an equality for a larger scale: there are more suppliers, not
only more lines for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
from braid.kernels.hashing import mix_bits

from braid_lab.workloads import tpch
from braid_lab.workloads.zipf_skew import zipf_probabilities

Counts = npt.NDArray[np.int64]

SKEWS = {"Z0": 0.0, "Z1": 0.25, "Z2": 0.5, "Z3": 0.75, "Z4": 1.0}
"""The paper's names for the Zipf parameters z (section 5)."""


@dataclass(frozen=True)
class JoinInput:
    """The counts of one join.

    - ``r_tuples``, ``s_tuples``: tuples of its streams.
    - ``results``: its results.
    - ``values``: for an equality, tuples of R and of S by join value; else None.
    - ``growth``: the exponent of the growth of results with the scale of the data: 1 if keys are
      joined, 2 if values of a fixed range are.
    """

    query: str
    r_tuples: int
    s_tuples: int
    results: int
    values: tuple[Counts, Counts] | None = None
    growth: int = 1

    def hash_distribution(self, hosts: int, seed: int = 0) -> tuple[Counts, Counts, Counts]:
        """Return the tuples of R, of S, and results that a hash of the join value gives each host.

        Raises ValueError for a join without an equality.
        """
        if self.values is None:
            raise ValueError(f"{self.query} is no equality; a hash of join values cannot spread it")
        keys = np.arange(len(self.values[0]), dtype=np.uint64)
        at = (mix_bits(keys + np.uint64(7919 * seed)) % np.uint64(hosts)).astype(np.int64)
        r, s = self.values
        of = (r, s, r * s)
        counts = [np.bincount(at, each, hosts).astype(np.int64) for each in of]
        return counts[0], counts[1], counts[2]


def spread_keys(
    of: JoinInput, times: float, skew: float, values: int | None = None, seed: int = 0
) -> JoinInput:
    """Return an equality on a key of R, ``times`` as large as counted.

    Parameters
    ----------
    of
        The counted join: a tuple of R for each selected value of its key.
    times
        The factor of all tuples and of the key's values.
    skew
        The Zipf parameter z with which tuples of S choose a value.
    values
        The number of values that S has (1 or more); None: all of them, as in TPC-H.
    seed
        Draws the values of S and those that are selected in R.

    Raises ValueError if ``values`` is not from 1 to the number of the key's values.
    """
    if of.values is None:
        raise ValueError(f"{of.query} is no equality; it has no key to spread")
    total = round((len(of.values[0]) - 1) * times)
    if not 1 <= (used := total if values is None else values) <= total:
        raise ValueError(f"values is {values}; S has from 1 to {total} values of the key")
    draw = np.random.default_rng(seed)
    tuples = [round(each * times) for each in (of.r_tuples, of.s_tuples)]
    r, s = np.zeros((2, total), dtype=np.int64)
    r[draw.permutation(total)[: tuples[0]]] = 1
    s[draw.permutation(total)[:used]] = draw.multinomial(tuples[1], zipf_probabilities(used, skew))
    return replace(
        of, r_tuples=tuples[0], s_tuples=tuples[1], results=int((r * s).sum()), values=(r, s)
    )


def _query_column(sql: str) -> Counts:
    """Return the one column of a query, as whole numbers."""
    (values,) = duckdb.execute(sql).fetchnumpy().values()
    return np.asarray(values).astype(np.int64)


def _count_supplier_keys(scale: float, where: str) -> Counts:
    """Return, by supplier key, 1 for those of the selected nations."""
    folder = tpch.ensure_dataset(scale)
    supplier, nation, region = (folder / f"{t}.parquet" for t in ("supplier", "nation", "region"))
    keys = _query_column(
        f"SELECT s_suppkey FROM '{supplier}' JOIN '{nation}' ON s_nationkey = n_nationkey "
        f"JOIN '{region}' ON n_regionkey = r_regionkey WHERE {where}"
    )
    size = int(_query_column(f"SELECT max(s_suppkey) FROM '{supplier}'")[0]) + 1
    return np.bincount(keys, minlength=size)


def _count_equality_input(query: str, r: Counts, lines: Counts) -> JoinInput:
    s = np.bincount(lines, minlength=len(r))
    return JoinInput(query, int(r.sum()), int(s.sum()), int((r * s).sum()), (r, s))


def _count_eq5_input(scale: float, skew: float, seed: int) -> JoinInput:
    lines = _query_column(f"SELECT l_suppkey FROM '{tpch.ensure_lineitem(scale, skew, seed)}'")
    return _count_equality_input("EQ5", _count_supplier_keys(scale, "r_name = 'AMERICA'"), lines)


def _count_eq7_input(scale: float, skew: float, seed: int) -> JoinInput:
    lines = _query_column(
        f"SELECT l_suppkey FROM '{tpch.ensure_lineitem(scale, skew, seed)}' "
        "WHERE l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'"
    )
    return _count_equality_input(
        "EQ7", _count_supplier_keys(scale, "n_name IN ('PERU', 'ETHIOPIA')"), lines
    )


def _count_band_input(
    query: str, of: tuple[Path, str], where: tuple[str, str], growth: int
) -> JoinInput:
    """Return the counts of a band join: each of R with those of S that are at most 1 away."""
    file, value = of
    r, s = (_query_column(f"SELECT {value} FROM '{file}' WHERE {each}") for each in where)
    s.sort()
    near = np.searchsorted(s, r + 1, "right") - np.searchsorted(s, r - 1, "left")
    return JoinInput(query, len(r), len(s), int(near.sum()), growth=growth)


def _count_bnci_input(scale: float, skew: float, seed: int) -> JoinInput:
    where = "l_shipmode = 'TRUCK' AND l_quantity > 48", "l_shipinstruct = 'NONE'"
    return _count_band_input(
        "BNCI", (tpch.ensure_lineitem(scale, skew, seed), "l_orderkey"), where, 1
    )


def _count_bci_input(scale: float, skew: float, seed: int) -> JoinInput:
    where = "l_shipmode = 'TRUCK' AND l_quantity > 45", "l_shipmode <> 'TRUCK'"
    day = "l_shipdate - DATE '1992-01-01'"
    return _count_band_input("BCI", (tpch.ensure_lineitem(scale, skew, seed), day), where, 2)


_JOINS: Mapping[str, Callable[[float, float, int], JoinInput]] = {
    "EQ5": _count_eq5_input,
    "EQ7": _count_eq7_input,
    "BNCI": _count_bnci_input,
    "BCI": _count_bci_input,
}
QUERIES = tuple(_JOINS)
"""The four joins of Fig. 5, by the paper's names."""


@cache
def count_input(query: str, skew: float = 0.0, scale: float = 0.01, seed: int = 0) -> JoinInput:
    """Return one of QUERIES, counted at this scale and Zipf parameter.

    It takes seconds at the scale of 0.1. Raises ValueError for another name, and as
    ``tpch.ensure_lineitem`` does.
    """
    if query not in _JOINS:
        raise ValueError(f"no join is named {query!r}; there are: {', '.join(QUERIES)}")
    return _JOINS[query](scale, skew, seed)
