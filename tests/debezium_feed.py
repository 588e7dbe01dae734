"""Feeds as Debezium's connector for PostgreSQL writes them, with and without a schema.

Run as a script, the join of the page on Debezium dies within a transaction of its sink: ``python
debezium_feed.py FEEDS RUN TARGET``.
"""

from __future__ import annotations

import json
import os
import random
import sys
from base64 import b64encode
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from runpy import run_path
from typing import Any

RECIPE = run_path(str(Path(__file__).parents[1] / "docs/examples/debezium.py"))
COLUMNS = {
    "accounts": [
        {"type": "int64", "optional": False, "field": "id"},
        {"type": "int64", "optional": True, "field": "owner"},
        {
            "type": "bytes",
            "optional": True,
            "name": "org.apache.kafka.connect.data.Decimal",
            "version": 1,
            "parameters": {"scale": "2", "connect.decimal.precision": "12"},
            "field": "balance",
        },
        {
            "type": "int64",
            "optional": True,
            "name": "io.debezium.time.MicroTimestamp",
            "version": 1,
            "field": "opened",
        },
    ]
}
"""Columns of the tables whose messages have a schema."""


class Feed:
    """Messages of one table, and the rows that the table has."""

    def __init__(self, table: str) -> None:
        self.table, self.messages = table, list[str]()
        self.rows: dict[int, dict[str, Any]] = {}
        self._position = 23_876_512

    def change(self, operation: str, row: dict[str, Any]) -> None:
        """Append the message of a change, and for a deletion its tombstone."""
        before = self.rows.pop(row["id"], None)
        if operation != "d":
            self.rows[row["id"]] = row
        self._position += 56
        self._send(operation, before, None if operation == "d" else row)
        if operation == "d":
            self.messages.append("null")

    def _send(self, operation: str, before: Any, after: Any) -> None:
        source = {
            "version": "3.0.5.Final",
            "connector": "postgresql",
            "name": "bank",
            "ts_ms": 1_767_614_400_000 + self._position,
            "snapshot": "true" if operation == "r" else "false",
            "db": "bank",
            "sequence": f'["{self._position - 8}","{self._position}"]',
            "schema": "public",
            "table": self.table,
            "txId": 700 + len(self.messages),
            "lsn": self._position,
            "xmin": None,
        }
        payload = {
            "before": self._encode(before),
            "after": self._encode(after),
            "source": source,
            "transaction": None,
            "op": operation,
            "ts_ms": source["ts_ms"] + 142,
        }
        message = self._add_schema(payload) if self.table in COLUMNS else payload
        self.messages.append(json.dumps(message))

    def _encode(self, row: dict[str, Any] | None) -> dict[str, Any] | None:
        return None if row is None else {name: encode_value(v) for name, v in row.items()}

    def _add_schema(self, payload: dict[str, Any]) -> dict[str, Any]:
        value = {"type": "struct", "fields": COLUMNS[self.table], "optional": True}
        name = f"bank.public.{self.table}"
        parts = [value | {"name": f"{name}.Value", "field": part} for part in ("before", "after")]
        rest = [{"type": "string", "optional": False, "field": "op"}]
        schema = {"type": "struct", "fields": parts + rest, "name": f"{name}.Envelope"}
        return {"schema": schema, "payload": payload}

    def repeat(self, count: int) -> None:
        """Send the last messages again, as the connector does after a crash."""
        self.messages += self.messages[-count:]


def encode_value(value: Any) -> Any:
    """Return a value as the JSON of Kafka Connect has it."""
    if isinstance(value, Decimal):
        number = int(value.scaleb(2))
        return b64encode(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)).decode()
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    return value


def make_feeds(seed: int, accounts: int = 80) -> dict[str, Feed]:
    """Return a snapshot of two tables, then random changes, some sent twice."""
    draw, feeds = random.Random(seed), {name: Feed(name) for name in ("accounts", "owners")}
    regions = ["north", "south", None]
    for feed, size in ((feeds["owners"], 20), (feeds["accounts"], accounts)):
        for id in range(size):
            feed.change("r", make_row(feed.table, id, draw, regions))
    for number in range(4 * accounts):
        feed = feeds["owners" if draw.random() < 0.2 else "accounts"]
        id = draw.choice([*feed.rows])
        if draw.random() < 0.2:
            feed.change("d", {"id": id})
        elif draw.random() < 0.3:
            feed.change("c", make_row(feed.table, 1000 + number, draw, regions))
        else:
            feed.change("u", make_row(feed.table, id, draw, regions))
        if number % 80 == 79:
            for one in feeds.values():
                one.repeat(5)
    return feeds


def make_row(table: str, id: int, draw: random.Random, regions: list[Any]) -> dict[str, Any]:
    """Return a random row of a table."""
    if table == "owners":
        return {"id": id, "region": draw.choice(regions)}
    owner = draw.choice([*range(20), None])
    opened = datetime(2026, 1, 1 + draw.randrange(28), 12, 0, 0, 1)
    balance = Decimal(draw.randrange(-9999, 9999)).scaleb(-2)
    return {"id": id, "owner": owner, "balance": balance, "opened": opened}


def _die_in_transaction(*arguments: str) -> None:
    """Run the page's ``main``, and end this process in the midst of a batch's changes."""
    names = RECIPE["main"].__globals__
    real, batches = names["sum_changes"], list[Any]()

    def yield_and_die(results: Any) -> Any:
        batches.append(results)
        for number, row in enumerate(real(results)):
            if len(batches) == 3 and number == 2:
                os._exit(9)
            yield row

    names["sum_changes"] = yield_and_die
    RECIPE["main"](*arguments)


if __name__ == "__main__":
    _die_in_transaction(*sys.argv[1:])
