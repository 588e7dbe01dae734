"""The page on Debezium: feeds as its connector writes them give the join of the tables."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import debezium_feed
import duckdb
import pyarrow as pa
import pytest
from braid import StreamJoin
from debezium_feed import RECIPE, Feed, make_feeds

unfold_changes = RECIPE["unfold_changes"]
JOIN = "FROM accounts a JOIN owners o ON a.owner = o.id"


def make_present(feeds: dict[str, Feed]) -> dict[str, pa.Table]:
    """Return the tables as the database has them after all changes."""
    return {name: pa.Table.from_pylist([*feed.rows.values()]) for name, feed in feeds.items()}


def ask_duckdb(sql: str, tables: dict[str, pa.Table]) -> Counter[Any]:
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return Counter(connection.execute(sql).fetchall())


def test_a_table_follows_two_feeds_although_the_process_is_killed_in_its_sink(
    tmp_path: Path,
) -> None:
    feeds = make_feeds(seed=7)
    for name, feed in feeds.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(feed.messages))
    given = [str(tmp_path), str(tmp_path / "run"), str(tmp_path / "target")]
    died = subprocess.run([sys.executable, debezium_feed.__file__, *given], env=os.environ)
    assert died.returncode == 9

    def read_target() -> Counter[Any]:
        with sqlite3.connect(given[2]) as connection:
            return Counter(connection.execute("SELECT * FROM held").fetchall())

    expected = ask_duckdb(
        f"SELECT a.id, cast(a.balance AS VARCHAR), o.region {JOIN}", make_present(feeds)
    )
    assert read_target() != expected
    RECIPE["main"](*given)
    assert read_target() == expected and len(expected) > 20
    RECIPE["main"](*given)  # nothing is left to do
    assert read_target() == expected


def test_values_are_read_by_the_schema_and_messages_without_one_as_they_are() -> None:
    feeds = make_feeds(seed=3)
    for name, feed in feeds.items():
        rows = Counter[str]()
        for row in unfold_changes(feed.messages):
            sign = {"insert": 1, "delete": -1}[row.pop("change")]
            row.pop("batch")
            rows[repr(row)] += sign
        assert +rows == Counter(map(repr, feed.rows.values())) and min(rows.values()) == 0
        sent = [json.loads(message) for message in feed.messages]
        assert None in sent and ("schema" in sent[0]) == (name == "accounts")
        whole = [message for message in feed.messages if message != "null"]
        assert len(whole) > len({*whole}), "nothing was sent again"


@pytest.mark.parametrize("how", ["left", "full", "semi", "anti"])
def test_a_feed_of_inserts_alone_is_joined_in_every_kind(how: str, tmp_path: Path) -> None:
    feeds = make_feeds(seed=5)
    present = make_present(feeds)
    tables = {}
    for alias, name in (("a", "accounts"), ("o", "owners")):
        feed = Feed(name)
        for row in feeds[name].rows.values():
            feed.change("c", row)
        rows = pa.Table.from_pylist([*unfold_changes(feed.messages)])
        assert rows["change"].unique().to_pylist() == ["insert"]
        tables[alias] = rows.drop_columns(["change"])
    run = StreamJoin(tables, "a.owner = o.id", how=how).start(tmp_path / "run", batches="batch")
    run.awaitTermination()
    has_owner = how in ("left", "full")
    found = Counter(
        ((row["a"] or {}).get("id"), *([(row["o"] or {}).get("region")] if has_owner else []))
        for row in run.results().to_pylist()
    )
    columns = "a.id, o.region" if has_owner else "a.id"
    kind = f"{how.upper()} JOIN"
    assert found == ask_duckdb(f"SELECT {columns} {JOIN.replace('JOIN', kind)}", present)


REFUSED = [
    ({"op": "t"}, "message 1 has op 't'; accepted are r, c, u, d"),
    ({"op": "u", "before": None}, "message 1 takes away null, which never came; the database"),
    ({"op": "d", "before": {"id": 0, "region": None}, "after": None}, "REPLICA IDENTITY FULL"),
]


@pytest.mark.parametrize(("changed", "sentence"), REFUSED)
def test_a_feed_without_old_rows_and_a_truncated_table_are_refused(
    changed: dict[str, Any], sentence: str
) -> None:
    feed = Feed("owners")
    feed.change("r", {"id": 0, "region": "north"})
    feed.change("u", {"id": 0, "region": "south"})
    feed.messages[1] = json.dumps(json.loads(feed.messages[1]) | changed)
    with pytest.raises(ValueError, match=sentence):
        [*unfold_changes(feed.messages)]
