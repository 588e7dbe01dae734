"""The sinks of the documentation: exactly once, wherever the function or its process ends."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from runpy import run_path
from subprocess import PIPE
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from deltalake import DeltaTable
from kafka_broker import run_broker
from postgres_server import run_postgres
from pyiceberg.catalog import load_catalog
from pyspark.sql.datasource import InputPartition
from sink_driver import ROWS, run_join

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs/examples"
SINKS = {
    name: function
    for file in sorted(EXAMPLES.glob("sink*.py"))
    for name, function in run_path(str(file)).items()
    if name.startswith("into_")
}
EXPECTED = Counter((n // 2, n) for n in range(ROWS))


def read_sqlite(path: Path) -> Counter[Any]:
    with sqlite3.connect(path) as connection:
        return Counter(connection.execute("SELECT * FROM paid").fetchall())


def read_postgres(server: str) -> Counter[Any]:
    with psycopg.connect(server) as connection:
        return Counter(connection.execute("SELECT * FROM paid").fetchall())


def read_delta(path: str) -> Counter[Any]:
    rows = DeltaTable(path).to_pyarrow_table()
    return Counter(zip(rows["order_id"].to_pylist(), rows["amount"].to_pylist(), strict=True))


def read_iceberg(folder: str) -> Counter[Any]:
    uri = f"sqlite:///{folder}/catalog.db"
    catalog = load_catalog("lake", type="sql", uri=uri, warehouse=f"file://{folder}")
    rows = catalog.load_table("lake.paid").scan().to_arrow()
    return Counter(zip(rows["order_id"].to_pylist(), rows["amount"].to_pylist(), strict=True))


def read_kafka(servers: str) -> Counter[Any]:
    """Return the messages without repetitions. There were some: batches are sent again."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "test", "enable.partition.eof": True}
    )
    ends = list(consumer.list_topics("paid").topics["paid"].partitions)
    consumer.assign([TopicPartition("paid", number, OFFSET_BEGINNING) for number in ends])
    messages: list[tuple[bytes, Any]] = []
    while ends:
        message = consumer.poll(60)
        if message.error() is None:
            messages.append((message.key(), tuple(json.loads(message.value()))))
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            ends.remove(message.partition())
    consumer.close()
    assert len(messages) > len(dict(messages)), "no batch was sent twice"
    return Counter(dict(messages).values())


def read_duckdb(path: Path) -> Counter[Any]:
    with duckdb.connect(str(path)) as connection:
        return Counter(connection.execute("SELECT * FROM paid").fetchall())


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with run_postgres() as server:
        yield server


@pytest.fixture
def empty_postgres(postgres: str) -> str:
    """Return the address of a database without tables."""
    with psycopg.connect(postgres) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return postgres


@pytest.fixture
def kafka() -> Iterator[str]:
    with run_broker() as servers:
        yield servers


def fail_in_batches(path: Path, write: Callable[[pa.Table, int], None], is_after: bool) -> None:
    """Run the join to its end with a sink that fails three times, before or after it writes."""
    failing = {1, 3, 4}

    def fail_once(results: pa.Table, batch: int) -> None:
        is_first = batch in failing
        failing.discard(batch)
        if is_first and not is_after:
            raise RuntimeError(f"batch {batch} is not taken")
        write(results, batch)
        if is_first:
            raise RuntimeError(f"batch {batch} is taken, but nobody knows")

    for batch in (1, 3, 4):
        with pytest.raises(RuntimeError, match=f"batch {batch} is"):
            run_join(path, fail_once)
    run_join(path, fail_once)


@pytest.mark.parametrize(
    ("name", "read"), [("into_sqlite", read_sqlite), ("into_duckdb", read_duckdb)]
)
@pytest.mark.parametrize("is_after", [False, True])
def test_a_sink_that_fails_before_or_after_its_commit_has_each_row_once(
    tmp_path: Path, name: str, read: Callable[[Path], Counter[Any]], is_after: bool
) -> None:
    write = partial(SINKS[name], path=str(tmp_path / "db"))
    fail_in_batches(tmp_path / "run", write, is_after)
    assert read(tmp_path / "db") == EXPECTED


def test_postgresql_has_each_row_once_of_two_runs(tmp_path: Path, empty_postgres: str) -> None:
    for run in ("one", "two"):
        write = partial(SINKS["into_postgres"], server=empty_postgres, run=run)
        fail_in_batches(tmp_path / run, write, True)
    assert read_postgres(empty_postgres) == EXPECTED + EXPECTED


def test_a_sink_fails_inside_its_transaction_without_a_trace(tmp_path: Path) -> None:
    """Rows of another shape are refused after the number was written: both are rolled back."""
    for name, read in (("into_sqlite", read_sqlite), ("into_duckdb", read_duckdb)):
        path, rows = tmp_path / name, pa.table({"o": [{"id": 1}], "p": [{"amount": 2}]})
        SINKS[name](rows, 0, str(path))
        with pytest.raises(Exception, match="amount"):
            SINKS[name](pa.table({"o": [{"id": 1}], "p": [{"total": 2}]}), 1, str(path))
        SINKS[name](rows, 1, str(path))
        assert read(path) == Counter({(1, 2): 2})


def test_a_process_that_is_killed_in_its_sink_is_resumed_with_each_row_once(
    tmp_path: Path, empty_postgres: str, kafka: str
) -> None:
    """PostgreSQL's is killed within its transaction, the others after they have written.

    A consumer of Kafka drops what was sent twice.
    """
    (tmp_path / "lake").mkdir()
    cases: dict[str, tuple[str, Callable[[Any], Counter[Any]]]] = {
        "into_sqlite": (str(tmp_path / "sqlite.db"), read_sqlite),
        "into_duckdb": (str(tmp_path / "duck.db"), read_duckdb),
        "into_postgres": (empty_postgres, read_postgres),
        "into_delta": (str(tmp_path / "delta"), read_delta),
        "into_iceberg": (str(tmp_path / "lake"), read_iceberg),
        "into_kafka": (kafka, read_kafka),
    }
    assert {*cases} == {*SINKS}
    driver = [sys.executable, str(ROOT / "tests/sink_driver.py")]
    killed = {
        name: subprocess.Popen([*driver, str(tmp_path / name), name, target], stderr=PIPE)
        for name, (target, _) in cases.items()
    }
    for name, process in killed.items():
        said = process.communicate()[1].decode()
        assert process.returncode == 9, f"{name}: {said}"
    for name, (target, read) in cases.items():
        if name != "into_kafka":
            written = 10 if name == "into_postgres" else 15
            assert read(target) == Counter({k: n for k, n in EXPECTED.items() if k[1] < written})
        run_join(tmp_path / name, lambda rows, n, sink=SINKS[name], to=target: sink(rows, n, to))
        assert read(target) == EXPECTED, name


def test_offsets_of_kafka_are_read_once_and_deleted_ones_are_an_error(kafka: str) -> None:
    """The data source of the page on Kafka, without Spark; test_killed has it on Spark."""
    producer = Producer({"bootstrap.servers": kafka})
    for number in range(60):
        producer.produce("orders", key=str(number), value=str(number))
    assert producer.flush(60) == 0
    reader = run_path(str(EXAMPLES / "kafka_source.py"))["KafkaReader"](kafka, "orders", "8")
    reader.prepareForTriggerAvailableNow()
    start, batches = reader.initialOffset(), list[list[int]]()
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        parts = reader.partitions(start, end)
        batches.append([int(row[-1]) for part in parts for row in reader.read(part)])
        start = end
    assert sorted(n for batch in batches for n in batch) == [*range(60)]
    assert len(batches) > 1 and max(map(len, batches)) <= 32
    with pytest.raises(RuntimeError, match=r"orders, partition 0: .* not available on the broker"):
        [*reader.read(InputPartition((0, 1000, 1001)))]
