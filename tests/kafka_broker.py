"""A broker of this process that speaks Kafka's protocol over TCP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka.admin import AdminClient


@contextmanager
def run_broker() -> Iterator[str]:
    """Yield the address of a broker in this process."""
    cluster = AdminClient({"test.mock.num.brokers": 1})
    [broker] = cluster.list_topics(timeout=60).brokers.values()
    yield f"{broker.host}:{broker.port}"
    del cluster
