"""Topics of Kafka as streams, by a data source in Python, and a join of two of them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import confluent_kafka as kafka  # by its name: its classes cannot be pickled
from braid import StreamJoin
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

SECONDS = 60
"""How long to wait for the broker."""
MESSAGE = "topic STRING, partition INT, offset BIGINT, key BINARY, value BINARY"
"""Columns of a message."""
ROWS = 10_000
"""The most messages of a partition in a micro-batch."""


class KafkaSource(DataSource):
    """Messages of a topic, each once. Options: ``servers``, ``topic``, ``rows`` of a partition."""

    def streamReader(self, schema: Any) -> "KafkaReader":
        return KafkaReader(self.options["servers"], self.options["topic"], self.options["rows"])


class KafkaReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of a topic. Spark stores the offsets of each micro-batch, by partition."""

    def __init__(self, servers: str, topic: str, rows: str) -> None:
        self.settings = {"bootstrap.servers": servers, "group.id": "braid"}
        self.topic, self.rows = topic, int(rows)
        self.last: dict[str, int] = {}

    def initialOffset(self) -> dict[str, int]:
        return self.find_offsets(0)

    def prepareForTriggerAvailableNow(self) -> None:
        self.last = self.find_offsets(1)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.rows)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        last = self.last or self.find_offsets(1)
        if isinstance(limit, ReadAllAvailable):
            return last
        return {p: min(end, start.get(p, 0) + self.rows) for p, end in last.items()}

    def find_offsets(self, end: int) -> dict[str, int]:
        """Return the first offset of each partition, or the one after the last if ``end`` is 1."""
        consumer = kafka.Consumer(self.settings)
        try:
            topic = consumer.list_topics(self.topic, SECONDS).topics[self.topic]
            marks = {
                str(p): consumer.get_watermark_offsets(kafka.TopicPartition(self.topic, p), SECONDS)
                for p in topic.partitions
            }
        finally:
            consumer.close()
        return {p: first_and_last[end] for p, first_and_last in sorted(marks.items())}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        ranges = [(int(p), start.get(p, 0), last) for p, last in end.items()]
        return [InputPartition(one) for one in ranges if one[1] < one[2]]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Yield the messages of a range. Raises RuntimeError if the broker has deleted some."""
        number, first, last = partition.value
        strict = {"auto.offset.reset": "error", "enable.partition.eof": True}
        consumer = kafka.Consumer(self.settings | strict)
        consumer.assign([kafka.TopicPartition(self.topic, number, first)])
        try:
            while (message := consumer.poll(SECONDS)) is not None:
                if (error := message.error()) is not None:
                    if error.code() == kafka.KafkaError._PARTITION_EOF:
                        return  # the rest of the range is gaps
                    raise RuntimeError(f"{self.topic}, partition {number}: {error.str()}")
                if message.offset() < last:
                    yield self.topic, number, message.offset(), message.key(), message.value()
                if message.offset() >= last - 1:
                    return
        finally:
            consumer.close()
        raise RuntimeError(f"{self.topic}, partition {number}: no answer in {SECONDS} seconds")


def read_topic(spark: SparkSession, servers: str, topic: str, columns: str) -> DataFrame:
    """Return the messages of a topic whose values are JSON objects with these columns."""
    options = {"servers": servers, "topic": topic, "rows": str(ROWS)}
    source = spark.readStream.format("KafkaSource").schema(MESSAGE)
    row = f"from_json(cast(value AS STRING), '{columns}') AS row"
    return source.options(**options).load().selectExpr(row).select("row.*")


def start_join(
    spark: SparkSession, servers: str, folder: str, sink: Callable[[DataFrame, int], None]
) -> Any:
    """Start the join, or continue it. It ends with the messages that are there now."""
    spark.dataSource.register(KafkaSource)
    orders = read_topic(spark, servers, "orders", "id BIGINT, ts TIMESTAMP")
    payments = read_topic(
        spark, servers, "payments", "order_id BIGINT, amount BIGINT, ts TIMESTAMP"
    )
    join = StreamJoin(
        {"o": orders, "p": payments},
        "o.id = p.order_id",
        windows="1 hour",
        time="ts",
        lateness="10 minutes",  # partitions are read side by side, so rows come out of order
    )
    return join.start(folder, foreachBatch=sink, availableNow=True)
