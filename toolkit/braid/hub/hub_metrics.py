"""Tables of a hub's metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from braid.core.run_events import BatchCommitted
from braid.hub.operator_instance import operator_metrics, read_operator_spec
from braid.papers.reuse.hub_events import (
    FlowMetrics,
    HubBatchCommitted,
    HubStarted,
    NodeFailed,
    NodeRestored,
)
from braid.papers.reuse.network import Network
from braid.storage.hub_files import OperatorPin, open_operator
from braid.util.row_tables import make_row_table

if TYPE_CHECKING:
    from braid.util.row_tables import RowTable


def metrics_table(path: Path, operators: Iterable[OperatorPin]) -> RowTable:
    """Return the table of ``HubRun.metrics``. ``path``: folder of the hub."""
    rows = []
    for pin in operators:
        store = open_operator(path, pin)
        spec = read_operator_spec(store)
        for e in store.archive.committed_events():
            if isinstance(e, BatchCommitted) and e.batch <= pin.batch:
                metrics = operator_metrics(spec, e)._asdict()
                metrics["stored_bytes"] = metrics.pop("live_bytes")
                rows.append({"operator": metrics.pop("operator"), "batch": e.batch, **metrics})
    return make_row_table(rows)


def hub_commits(happened: Iterable[Any]) -> Iterator[HubBatchCommitted]:
    """Return the committed batches among events."""
    return (e for e in happened if isinstance(e, HubBatchCommitted))


def with_networks(happened: Iterable[Any]) -> Iterator[tuple[HubBatchCommitted, Network]]:
    """Yield each committed batch with the network at that time, without failed nodes."""
    network, down = Network(()), set[str]()
    for e in happened:
        if isinstance(e, HubStarted):
            network = Network.from_dict(e.network)
        elif isinstance(e, NodeFailed):
            down.add(e.node)
        elif isinstance(e, NodeRestored):
            down.discard(e.node)
        elif isinstance(e, HubBatchCommitted):
            yield e, network.without_nodes(*down) if down else network


def flows_table(happened: list[Any]) -> RowTable:
    """Return the table of ``HubRun.network_flows``."""
    rows = [{"batch": e.epoch, **f._asdict()} for e in hub_commits(happened) for f in e.flows]
    return make_row_table(rows, ["batch", *FlowMetrics._fields])


def link_traffic_table(happened: list[Any]) -> RowTable:
    """Return the table of ``HubRun.link_traffic``."""
    rows = [
        {"batch": e.epoch, "node_a": a, "node_b": b, "bytes_measured": size}
        for e, network in with_networks(happened)
        for (a, b), size in sorted(network.link_loads(f.transfer for f in e.flows).items())
    ]
    return make_row_table(rows, ["batch", "node_a", "node_b", "bytes_measured"])


def costs_table(happened: list[Any]) -> RowTable:
    """Return the table of ``HubRun.network_costs``."""
    rows = []
    for e, network in with_networks(happened):
        index, far = network.node_index, network.latency_ms / 1e3
        sent = sum(f.bytes * far[index[f.source_node], index[f.target_node]] for f in e.flows)
        size = sum(f.bytes for f in e.flows)
        row = {"batch": e.epoch, "bytes_measured": size, "byte_seconds_measured": float(sent)}
        rows.append({**row, "network_usage_modelled": e.network_usage_modelled})
    return make_row_table(rows)
