"""Residuals are evaluated, by DuckDB, on columns of candidate pairs."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from braid.condition.predicate import Residual

_OWN = threading.local()
"""By thread, its cursor of the process's DuckDB."""


@cache
def _duckdb() -> Any:
    import duckdb

    atexit.register(_duckdb.cache_clear)  # else it is reported as leaked
    return duckdb.connect(config={"threads": 1})


def _cursor() -> Any:
    if not hasattr(_OWN, "cursor"):
        _OWN.cursor = _duckdb().cursor()
        _OWN.cursor.execute("SET TimeZone = 'UTC'")
    return _OWN.cursor


def residual_mask(
    residual: Residual,
    aliases: Sequence[str],
    columns: Mapping[tuple[int, str], pa.Array | pa.ChunkedArray],
    measured: Sequence[pa.Array] = (),
) -> np.ndarray:
    """Where the residual is true, for aligned columns by (stream, name) and what was ``measured``.

    Raises duckdb.Error where it cannot be evaluated.
    """
    names = [*(f"{aliases[s]}.{name}" for s, name in columns), *map(str, range(len(measured)))]
    # DuckDB finds the table by this name; to register it and to make a relation take twice as long.
    candidates = pa.table([*columns.values(), *measured], names=names)  # noqa: F841
    found = _cursor().execute(f"SELECT coalesce({residual.sql}, false) AS holds FROM candidates")
    return np.asarray(found.fetchnumpy()["holds"])
