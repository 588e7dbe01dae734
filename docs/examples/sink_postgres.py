"""Results into PostgreSQL, exactly once."""

import psycopg
import pyarrow as pa

TABLES = """
CREATE TABLE IF NOT EXISTS delivered (run TEXT, batch BIGINT, PRIMARY KEY (run, batch));
CREATE TABLE IF NOT EXISTS paid (order_id BIGINT, amount BIGINT)
"""


def into_postgres(results: pa.Table, batch: int, server: str, run: str = "payments") -> None:
    """Write a batch in the transaction that records its number."""
    with psycopg.connect(server) as connection:  # commits at the end, or rolls back
        connection.execute(TABLES)
        number = "INSERT INTO delivered VALUES (%s, %s) ON CONFLICT DO NOTHING"
        if connection.execute(number, [run, batch]).rowcount:
            rows = [(row["o"]["id"], row["p"]["amount"]) for row in results.to_pylist()]
            with connection.cursor().copy("COPY paid FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
