"""The DuckDB of the tests. To open one takes longer than to ask it, so that a process has one."""

from __future__ import annotations

import atexit
from functools import cache

import duckdb


@cache
def _database() -> duckdb.DuckDBPyConnection:
    atexit.register(_database.cache_clear)  # else it is reported as leaked
    found = duckdb.connect()
    found.execute("SET GLOBAL TimeZone = 'UTC'")  # of every cursor to come
    return found


def duck() -> duckdb.DuckDBPyConnection:
    """A connection of its own, in UTC: what is registered with it nobody else sees."""
    return _database().cursor()
