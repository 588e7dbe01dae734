"""What a hub did, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from braid.core.events import BatchCommitted
from braid.engine.disk import current_file_system
from braid.engine.store import RunStore
from braid.hub.instance import read_operator_spec, operator_metrics
from braid.papers.reuse.events import (
    FlowMetrics,
    HubBatchCommitted,
    HubStarted,
    NodeFailed,
    NodeRestored,
)
from braid.papers.reuse.network import Network


def metrics_table(path: Path) -> pd.DataFrame:
    """See ``HubRun.metrics``."""
    rows = []
    folders = path / "operators"
    for folder in current_file_system().find_files(folders):
        made = read_operator_spec(folder)
        for e in RunStore(folder).committed_events():
            if isinstance(e, BatchCommitted):
                did = operator_metrics(made, e)._asdict()
                rows.append({"operator": did.pop("operator"), "batch": e.batch, **did})
    found = pd.DataFrame(rows)
    return found.rename(columns={"live_bytes": "stored_bytes"})


def hub_commits(happened: Iterable[Any]) -> Iterator[HubBatchCommitted]:
    """The batches."""
    return (e for e in happened if isinstance(e, HubBatchCommitted))


def with_networks(happened: Iterable[Any]) -> Iterator[tuple[HubBatchCommitted, Network]]:
    """The batches, each with the network as it was then: nodes that are down pass nothing on."""
    whole, down = Network(()), set[str]()
    for e in happened:
        if isinstance(e, HubStarted):
            whole = Network.from_dict(e.network)
        elif isinstance(e, NodeFailed):
            down.add(e.node)
        elif isinstance(e, NodeRestored):
            down.discard(e.node)
        elif isinstance(e, HubBatchCommitted):
            yield e, whole.without_nodes(*down) if down else whole


def flows_table(happened: list[Any]) -> pd.DataFrame:
    """See ``HubRun.flows``."""
    rows = [{"batch": e.epoch, **f._asdict()} for e in hub_commits(happened) for f in e.flows]
    return pd.DataFrame(rows, columns=["batch", *FlowMetrics._fields])


def link_traffic_table(happened: list[Any]) -> pd.DataFrame:
    """See ``HubRun.links``."""
    rows = [
        (e.epoch, a, b, size)
        for e, network in with_networks(happened)
        for (a, b), size in sorted(network.link_loads(f.transfer for f in e.flows).items())
    ]
    return pd.DataFrame(rows, columns=["batch", "a", "b", "bytes_counted"])


def costs_table(happened: list[Any]) -> pd.DataFrame:
    """See ``HubRun.costs``."""
    rows = []
    for e, network in with_networks(happened):
        index, far = network.node_index, network.latency_ms / 1e3
        sent = sum(f.bytes * far[index[f.source_node], index[f.target_node]] for f in e.flows)
        size = sum(f.bytes for f in e.flows)
        told = {"batch": e.epoch, "bytes_counted": size, "byte_seconds_counted": float(sent)}
        rows.append({**told, "usage_modelled": e.network_usage_modelled})
    return pd.DataFrame(rows)
