"""What a hub did, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from braid.core.events import BatchCommitted
from braid.engine.disk import disk
from braid.engine.store import Store
from braid.hub.instance import blueprint_of, did_of
from braid.papers.reuse.events import (
    Flowed,
    HubCommitted,
    HubStarted,
    NodeFailed,
    NodeRestored,
)
from braid.papers.reuse.network import Network


def metrics(path: Path) -> pd.DataFrame:
    """See ``HubRun.metrics``."""
    rows = []
    folders = path / "operators"
    for folder in disk().find(folders):
        made = blueprint_of(folder)
        for e in Store(folder).history():
            if isinstance(e, BatchCommitted):
                did = did_of(made, e)._asdict()
                rows.append({"operator": did.pop("operator"), "batch": e.batch, **did})
    found = pd.DataFrame(rows)
    return found.rename(columns={"live_bytes": "stored_bytes"})


def committed(happened: Iterable[Any]) -> Iterator[HubCommitted]:
    """The batches."""
    return (e for e in happened if isinstance(e, HubCommitted))


def on_networks(happened: Iterable[Any]) -> Iterator[tuple[HubCommitted, Network]]:
    """The batches, each with the network as it was then: nodes that are down pass nothing on."""
    whole, down = Network(()), set[str]()
    for e in happened:
        if isinstance(e, HubStarted):
            whole = Network.from_dict(e.network)
        elif isinstance(e, NodeFailed):
            down.add(e.node)
        elif isinstance(e, NodeRestored):
            down.discard(e.node)
        elif isinstance(e, HubCommitted):
            yield e, whole.without(*down) if down else whole


def flows(happened: list[Any]) -> pd.DataFrame:
    """See ``HubRun.flows``."""
    rows = [{"batch": e.epoch, **f._asdict()} for e in committed(happened) for f in e.flows]
    return pd.DataFrame(rows, columns=["batch", *Flowed._fields])


def links(happened: list[Any]) -> pd.DataFrame:
    """See ``HubRun.links``."""
    rows = [
        (e.epoch, a, b, size)
        for e, network in on_networks(happened)
        for (a, b), size in sorted(network.on_links(f.sent for f in e.flows).items())
    ]
    return pd.DataFrame(rows, columns=["batch", "a", "b", "bytes_counted"])


def costs(happened: list[Any]) -> pd.DataFrame:
    """See ``HubRun.costs``."""
    rows = []
    for e, network in on_networks(happened):
        index, far = network.index, network.latency / 1e3
        sent = sum(f.bytes * far[index[f.source], index[f.target]] for f in e.flows)
        size = sum(f.bytes for f in e.flows)
        told = {"batch": e.epoch, "bytes_counted": size, "byte_seconds_counted": float(sent)}
        rows.append({**told, "usage_modelled": e.usage_modelled})
    return pd.DataFrame(rows)
