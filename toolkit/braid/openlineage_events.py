"""Report the lineage of runs to OpenLineage: ``braid.lineage``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname
from uuid import uuid4

import msgspec

from braid.core.run_events import BatchCommitted, RunEnded, RunStarted
from braid.event_handlers import SendingHandler, attach_handler
from braid.storage.remote_medium import is_object_store_url
from braid.storage.run_store import RunStore
from braid.util.http_post import check_http_address, post_json

_PRODUCER = "https://pypi.org/project/braid-joins"
_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACET = "https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json"
_TYPES = {"completed": "COMPLETE", "failed": "FAIL", "stopped": "ABORT"}
_BATCHES = 100
"""A run is reported as running after each hundred batches."""


class LineageHandler(SendingHandler):
    """Sends a lineage event for the start, each hundredth batch and the end of each run."""

    def __init__(self, target: str, datasets: Mapping[str, str], namespace: str) -> None:
        super().__init__("a lineage event")
        self._target, self._datasets, self._namespace = target, dict(datasets), namespace
        self._runs: dict[str, dict[str, Any]] = {}

    def receive_event(self, event: Any, run: str, time: float) -> None:
        if isinstance(event, RunStarted):
            self._runs[run] = self._describe_run(event, run)
            self._report_run(run, "START", time)
        elif run not in self._runs:
            return  # a hub, or a run that began before
        elif isinstance(event, BatchCommitted) and not (event.batch + 1) % _BATCHES:
            self._report_run(run, "RUNNING", time)
        elif isinstance(event, RunEnded):
            self._report_run(run, _TYPES[event.outcome], time)

    def _report_run(self, run: str, kind: str, time: float) -> None:
        moment = datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")
        head = {"eventType": kind, "eventTime": moment, "producer": _PRODUCER, "schemaURL": _SCHEMA}
        self.put_item(msgspec.json.encode(head | self._runs[run]))

    def _describe_run(self, start: RunStarted, run: str) -> dict[str, Any]:
        inputs = {alias: self._datasets.get(alias, f"{run}/{alias}") for alias in start.streams}
        output: dict[str, Any] = self._name_dataset(f"{run}/results")
        columns = _read_columns(run)
        fields = {
            f"{alias}.{name}": {"inputFields": [{**self._name_dataset(dataset), "field": name}]}
            for alias, dataset in inputs.items()
            for name in columns.get(alias, ())
        }
        facet = {"_producer": _PRODUCER, "_schemaURL": _FACET, "fields": fields}
        return {
            "run": {"runId": str(uuid4())},
            "job": {"namespace": self._namespace, "name": run},
            "inputs": [self._name_dataset(dataset) for dataset in inputs.values()],
            "outputs": [{**output, "facets": {"columnLineage": facet}}],
        }

    def _name_dataset(self, dataset: str) -> dict[str, str]:
        """Return a URL as OpenLineage names it: its scheme and host, and its path."""
        url = urlsplit(dataset)
        if not url.scheme:
            return {"namespace": self._namespace, "name": dataset}
        return {"namespace": f"{url.scheme}://{url.netloc}", "name": url.path.lstrip("/")}

    def send_item(self, item: bytes) -> None:
        if not self._target.startswith("file:"):
            return post_json(self._target, item, "a lineage event")
        with open(url2pathname(urlsplit(self._target).path), "ab") as file:
            file.write(item + b"\n")


def _read_columns(run: str) -> dict[str, list[str]]:
    """Return the columns of each stream of a run in a folder; of one in a bucket, none."""
    settings = None if is_object_store_url(run) else RunStore(run).read_settings()
    schemas = {} if settings is None else settings.get("schemas", {})
    return {alias: list_columns(schema) for alias, schema in schemas.items() if alias}


def list_columns(schema: str) -> list[str]:
    """Return the names of the columns of a schema as runs store it, in Spark's or Arrow's form.

    >>> list_columns("struct<k:bigint,at:struct<x:int,y:int>>")
    ['k', 'at']
    >>> list_columns("k: int64, at: struct<x: int32, y: int32>")
    ['k', 'at']
    """
    inner = (
        schema.removeprefix("struct<").removesuffix(">") if schema.startswith("struct<") else schema
    )
    names, depth, begin = [], 0, 0
    for place, sign in enumerate(inner + ","):
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and depth == 0:
            names.append(inner[begin:place].partition(":")[0].strip())
            begin = place + 1
    return names


def lineage(
    target: str, datasets: Mapping[str, str] | None = None, namespace: str = "braid"
) -> logging.Handler:
    """Report the lineage of the runs of this process to OpenLineage. Return the handler.

    A run reports its start, each hundredth batch and its end, as COMPLETE, FAIL or ABORT. Inputs
    are the streams, the output is the results, and each column of the results names the column
    that it comes from. Hubs report nothing. A second call replaces the first.

    Parameters
    ----------
    target
        "http://..." or "https://...", where events are posted, or "file:///...", to which they
        are appended as lines. An event that is not taken in three attempts is lost, with a
        warning.
    datasets
        By alias of a stream, the URL of its data, such as "s3://bucket/clicks". Default: a name
        in the run's folder.
    namespace
        Namespace of the jobs, and of datasets without a URL.

    Raises ValueError for another target.
    """
    if not target.startswith("file:///"):
        check_http_address(target, "target")
    handler = LineageHandler(target, datasets or {}, namespace)
    attach_handler(handler, logging.DEBUG)
    return handler
