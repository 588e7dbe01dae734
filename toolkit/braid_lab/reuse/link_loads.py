"""Compute the flows on the links of a network under a deployment. All flows are modelled.

Source: Seshadri 2008, figure 1.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import Deployment
from braid.papers.reuse.network import Link


def link_loads(model: CostModel, deployment: Deployment) -> dict[Link, float]:
    """Return the modelled bytes per second on each link in use."""
    return model.network.link_loads(
        (flow.source_node, flow.target_node, model.rates.result_byte_rate(flow.definition))
        for flow in deployment.all_flows()
    )


def link_table(model: CostModel, deployments: Mapping[str, Deployment]) -> pd.DataFrame:
    """Return the bytes per second on each link in use under each deployment, by its title."""
    rows = [
        (title, f"{a} - {b}", rate)
        for title, deployment in deployments.items()
        for (a, b), rate in sorted(link_loads(model, deployment).items())
    ]
    return pd.DataFrame(rows, columns=["deployment", "link", "bytes_modelled"])
