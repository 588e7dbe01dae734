"""Tables whose changes Debezium writes: their join, kept in a table of SQLite."""

import json
import sqlite3
import sys
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from braid import StreamJoin

EPOCH = datetime(1970, 1, 1)
READ_VALUE = {
    "io.debezium.time.Date": lambda days, _: date(1970, 1, 1) + timedelta(days),
    "io.debezium.time.Timestamp": lambda millis, _: EPOCH + timedelta(milliseconds=millis),
    "io.debezium.time.MicroTimestamp": lambda micros, _: EPOCH + timedelta(microseconds=micros),
    "org.apache.kafka.connect.data.Decimal": lambda text, column: Decimal(
        int.from_bytes(b64decode(text), "big", signed=True)
    ).scaleb(-int(column["parameters"]["scale"])),
}
"""Python values, by the name of their type in the schema of a message."""
BATCH = 100
"""Messages in a micro-batch."""


def unfold_changes(messages: Iterable[str | bytes]) -> Iterator[dict[str, Any]]:
    """Yield the rows that come and go. A message that was sent again counts once.

    Raises ValueError for a row that goes and never came, and for a table that was truncated.
    """
    seen, present = set[str](), Counter[str]()
    for number, message in enumerate(messages):
        envelope = json.loads(message)
        event = (envelope or {}).get("payload", envelope)  # with or without a schema beside it
        if event is None:  # a tombstone follows a deletion: it lets Kafka drop the key
            continue
        if event["op"] not in ("r", "c", "u", "d"):
            raise ValueError(f"message {number} has op {event['op']!r}; accepted are r, c, u, d")
        before = [("before", "delete")] if event["op"] in "ud" else []
        after = [("after", "insert")] if event["op"] != "d" else []
        identity = json.dumps([event[part] for part in ("source", "op", "before", "after")])
        if identity in seen:
            continue
        seen.add(identity)
        for part, change in before + after:
            row = json.dumps(event[part])
            present[row] += 1 if change == "insert" else -1
            if present[row] < 0:
                raise ValueError(
                    f"message {number} takes away {row}, which never came; the database must log "
                    "whole rows, in PostgreSQL by REPLICA IDENTITY FULL"
                )
            yield read_row(envelope, part) | {"change": change, "batch": number // BATCH}


def read_row(envelope: dict[str, Any], part: str) -> dict[str, Any]:
    """Return the values before or after a change, as the schema of the message says."""
    fields = (envelope.get("schema") or {}).get("fields", [])
    columns = {c["field"]: c for f in fields if f["field"] == part for c in f["fields"]}
    row = dict(envelope.get("payload", envelope)[part])
    for name, value in row.items():
        read = READ_VALUE.get(columns.get(name, {}).get("name"))
        if read is not None and value is not None:
            row[name] = read(value, columns[name])
    return row


TABLES = """
CREATE TABLE IF NOT EXISTS delivered (batch INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS held (id INTEGER, balance TEXT, region TEXT)
"""
WRITES = {
    "insert": "INSERT INTO held VALUES (?, ?, ?)",
    "delete": "DELETE FROM held WHERE id IS ? AND balance IS ? AND region IS ?",
}


def apply_changes(results: pa.Table, batch: int, path: str) -> None:
    """Bring the table up to date, in the transaction that records the number of the batch."""
    with sqlite3.connect(path) as connection:  # commits at the end, or rolls back
        connection.executescript(TABLES)
        if connection.execute("INSERT OR IGNORE INTO delivered VALUES (?)", [batch]).rowcount:
            for row in sum_changes(results):
                connection.execute(WRITES[row.pop()], row)


def sum_changes(results: pa.Table) -> Iterator[list[Any]]:
    """Yield the rows that a batch leaves changed, each with how, deletions first."""
    net = Counter[tuple[Any, ...]]()
    for row in results.to_pylist():
        held = (row["a"]["id"], str(row["a"]["balance"]), row["o"]["region"])
        net[held] += 1 if row["_change_type"] == "insert" else -1
    for held, count in sorted(net.items(), key=lambda item: item[1]):
        yield from [[*held, "insert" if count > 0 else "delete"]] * abs(count)


def main(feeds: str, run: str, target: str) -> None:
    """Join the feeds of two tables, or continue."""
    streams = {
        alias: pa.Table.from_pylist([*unfold_changes(Path(feeds, name).read_text().splitlines())])
        for alias, name in (("a", "accounts.jsonl"), ("o", "owners.jsonl"))
    }
    changes = {"a": "change", "o": "change"}
    join = StreamJoin(streams, "a.owner = o.id", changes=changes)
    sink = partial(apply_changes, path=target)
    join.start(run, batches="batch", foreachBatch=sink).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
