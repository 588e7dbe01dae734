"""Results into Kafka: each at least once, with a key by which a consumer drops repetitions."""

import json

import pyarrow as pa
from confluent_kafka import Producer


def into_kafka(results: pa.Table, batch: int, servers: str, run: str = "payments") -> None:
    """Send a batch. The key of a message is run, batch and row, the same in a repetition."""
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for number, row in enumerate(results.to_pylist()):
        value = json.dumps([row["o"]["id"], row["p"]["amount"]])
        producer.produce("paid", key=f"{run}/{batch}/{number}", value=value)
    if left := producer.flush(60):
        raise RuntimeError(f"{left} messages of batch {batch} are not acknowledged")
