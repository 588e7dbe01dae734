"""Results into SQLite and DuckDB, each exactly once."""

import sqlite3

import duckdb
import pyarrow as pa

DELIVERED = "CREATE TABLE IF NOT EXISTS delivered (batch BIGINT PRIMARY KEY)"
PAYMENTS = "CREATE TABLE IF NOT EXISTS paid (order_id BIGINT, amount BIGINT)"


def list_rows(results: pa.Table) -> list[tuple[int, int]]:
    """Return the columns that the target has: results have a struct for each stream."""
    return [(row["o"]["id"], row["p"]["amount"]) for row in results.to_pylist()]


def into_sqlite(results: pa.Table, batch: int, path: str) -> None:
    """Write a batch in the transaction that records its number."""
    with sqlite3.connect(path) as connection:  # commits at the end, or rolls back
        connection.execute(DELIVERED)
        connection.execute(PAYMENTS)
        if connection.execute("INSERT OR IGNORE INTO delivered VALUES (?)", [batch]).rowcount:
            connection.executemany("INSERT INTO paid VALUES (?, ?)", list_rows(results))


def into_duckdb(results: pa.Table, batch: int, path: str) -> None:
    """Write a batch as Arrow, without a row of Python."""
    with duckdb.connect(path) as connection:
        connection.execute(f"{DELIVERED}; {PAYMENTS}; BEGIN")
        delivered = connection.execute("SELECT 1 FROM delivered WHERE batch = ?", [batch])
        if delivered.fetchone() is None:
            connection.execute("INSERT INTO delivered VALUES (?)", [batch])
            connection.execute("INSERT INTO paid SELECT o.id, p.amount FROM results")
        connection.execute("COMMIT")
