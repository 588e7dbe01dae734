"""Networks of sites: nodes, links with latencies, shortest paths, regions.

Source: Seshadri 2008, sections 2.1 and 4.2 (regions, RID, NID).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Kind = Literal["source", "node", "sink", "site"]
"""The role of a node.

Streams come from a source and answers go to a sink. A node hosts operators and forwards data. A
site does all three.
"""

Link = tuple[str, str]
"""The names of a link's two ends, in order."""

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]


def make_link(a: str, b: str) -> Link:
    """Return the link between two nodes."""
    return (a, b) if a < b else (b, a)


@dataclass(frozen=True)
class Node:
    """A node of the network. ``position`` is where it is drawn."""

    name: str
    role: Kind = "node"
    position: tuple[float, float] = field(default=(0.0, 0.0), compare=False)

    @property
    def can_host_operators(self) -> bool:
        """Whether operators may be placed here."""
        return self.role in ("node", "site")


@dataclass(frozen=True)
class Network:
    """Nodes and links.

    - ``links``: two names, and a latency in milliseconds.
    - ``regions``: lists of names; empty: all nodes form one region.

    Raises ValueError for a link to an unknown node, a negative latency, and a repeated name.
    """

    nodes: tuple[Node, ...]
    links: tuple[tuple[str, str, float], ...] = ()
    regions: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        names = [n.name for n in self.nodes]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise ValueError(f"the network has several nodes named {', '.join(twice)}")
        for a, b, latency in self.links:
            if unknown := {a, b} - set(names):
                raise ValueError(
                    f"a link goes to {min(unknown)!r}; the nodes are {', '.join(names)}"
                )
            if not latency >= 0:
                raise ValueError(
                    f"the link from {a} to {b} has a latency of {latency} ms; it must be 0 or more"
                )

    @cached_property
    def node_index(self) -> Mapping[str, int]:
        """The index of each node in ``nodes``, by name."""
        return {n.name: i for i, n in enumerate(self.nodes)}

    @cached_property
    def _latencies_and_next_hops(self) -> tuple[Floats, npt.NDArray[np.int64]]:
        """Latencies between all nodes, and the next node on each shortest path.

        Computed by Floyd and Warshall's algorithm over the nodes that forward data. Sources and
        sinks do not.
        """
        size = len(self.nodes)
        far = np.full((size, size), np.inf)
        np.fill_diagonal(far, 0.0)
        for a, b, latency in self.links:
            i, j = self.node_index[a], self.node_index[b]
            far[i, j] = far[j, i] = min(far[i, j], latency)
        step = np.where(np.isfinite(far), np.arange(size)[None, :], -1)
        for k, node in enumerate(self.nodes):
            if node.can_host_operators:
                through = far[:, k : k + 1] + far[k : k + 1, :]
                nearer = through < far
                far = np.where(nearer, through, far)
                step = np.where(nearer, step[:, k : k + 1], step)
        return far, step

    @property
    def latency_ms(self) -> Floats:
        """Milliseconds of the shortest path between all nodes, (nodes, nodes); inf: no path."""
        return self._latencies_and_next_hops[0]

    def shortest_path(self, a: str, b: str) -> tuple[str, ...]:
        """Return the nodes of the shortest path, both ends included.

        Raises ValueError if there is no path.
        """
        i, j = self.find_node_index(a), self.find_node_index(b)
        far, step = self._latencies_and_next_hops
        if not np.isfinite(far[i, j]):
            raise ValueError(f"there is no path from {a} to {b}")
        names = [a]
        while i != j:
            i = int(step[i, j])
            names.append(self.nodes[i].name)
        return tuple(names)

    def find_node_index(self, name: str) -> int:
        """Return the index of a node. Raises ValueError for an unknown name."""
        if name not in self.node_index:
            raise ValueError(f"no node is named {name!r}; there are {', '.join(self.node_index)}")
        return self.node_index[name]

    @cached_property
    def hosting_mask(self) -> Truths:
        """Whether operators may be placed there, by node."""
        return np.array([n.can_host_operators for n in self.nodes])

    def location_indicator(self, names: Iterable[str]) -> int:
        """Return the network location indicator of an operator at these nodes.

        It has the bits of their regions.
        """
        indicator = 0
        for name in names:
            indicator |= self._location_indicators[name]
        return indicator

    @cached_property
    def _location_indicators(self) -> dict[str, int]:
        if not self.regions:
            return dict.fromkeys(self.node_index, 1)
        return {name: 1 << i for i, region in enumerate(self.regions) for name in region}

    def link_loads(self, sent: Iterable[tuple[str, str, float]]) -> dict[Link, float]:
        """Return the load of each used link. A link's ends are in order.

        Each (source, target, size) in ``sent`` follows its shortest path.
        """
        loads: dict[Link, float] = {}
        for source, target, size in sent:
            for a, b in pairwise(self.shortest_path(source, target)):
                link = make_link(a, b)
                loads[link] = loads.get(link, 0) + size
        return loads

    def without_nodes(self, *names: str) -> Network:
        """Return the network with these nodes down: they remain, without links and operators."""
        down = {self.nodes[self.find_node_index(n)].name for n in names}
        nodes = tuple(replace(n, role="sink") if n.name in down else n for n in self.nodes)
        links = tuple(k for k in self.links if not {k[0], k[1]} & down)
        return replace(self, nodes=nodes, links=links)

    def to_dict(self) -> dict[str, Any]:
        """Return the network as plain data."""
        return {
            "nodes": [[n.name, n.role, list(n.position)] for n in self.nodes],
            "links": [list(link) for link in self.links],
            "regions": [list(r) for r in self.regions],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Network:
        """Return the network from plain data."""
        return cls(
            tuple(Node(n, kind, (at[0], at[1])) for n, kind, at in data["nodes"]),
            tuple((a, b, float(ms)) for a, b, ms in data["links"]),
            tuple(map(tuple, data["regions"])),
        )


ONE_SITE = Network((Node("here", "site"),))
"""No network: all streams, operators and answers are in one place."""
