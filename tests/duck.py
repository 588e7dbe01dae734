"""The DuckDB of the tests, one per process, because opening one takes longer than a query."""

from __future__ import annotations

import atexit
from functools import cache

import duckdb


@cache
def _open_database() -> duckdb.DuckDBPyConnection:
    atexit.register(_open_database.cache_clear)  # otherwise it is reported as a leak
    found = duckdb.connect()
    found.execute("SET GLOBAL TimeZone = 'UTC'")  # for every later cursor
    return found


def connect_duckdb() -> duckdb.DuckDBPyConnection:
    """Return a separate connection in UTC, with its own registered tables."""
    return _open_database().cursor()
