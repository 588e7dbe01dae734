"""The merge graph: the slices to merge are a shortest path. All costs are modelled.

Source: Wang 2008, section 7.2, Fig. 7.3.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from braid.papers.slices import chain_optimizer as slices
from braid.papers.slices.chain_optimizer import ChainStatistics

from braid_widgets.base.charts import GREY, Chart
from braid_widgets.base.colors import MIGRATION

FEW = 6
"""Maximum number of windows for which every edge is labeled with its cost."""


def edge_table(
    windows: slices.Chain, statistics: ChainStatistics, chain: slices.Chain
) -> pd.DataFrame:
    """Return the edges of the graph.

    Columns: i, j, start, end (w_i and w_j), cost_modelled (comparisons per unit of time), chosen.
    """
    ends = (0.0, *windows)
    path = set(pairwise([0, *(windows.index(w) + 1 for w in chain)]))
    rows = [
        (i, j, ends[i], ends[j], cost, (i, j) in path)
        for i, j, cost in slices.merge_graph(windows, statistics)
    ]
    return pd.DataFrame(rows, columns=["i", "j", "start", "end", "cost_modelled", "chosen"])


def merge_graph_chart(windows: slices.Chain, statistics: ChainStatistics, title: str) -> Chart:
    """Return Fig. 7.3 for one stream: nodes are windows, and an edge (i, j) is one slice.

    The slice ranges from w_i to w_j. The CPU-Opt chain is highlighted. Raises the errors of
    ``cpu_chain``.
    """
    chain = slices.cpu_chain(windows, statistics)
    table, nodes = edge_table(windows, statistics, chain), [0.0, *windows]
    texts = [f"{w:.3g}" for w in nodes]
    places = list(range(len(nodes)))
    figure = go.Figure(layout_yaxis_visible=False)
    figure.update_xaxes(tickvals=places, ticktext=texts, title="window (s)")
    figure.update_xaxes(showgrid=False, zeroline=False)
    for chosen, name, color, width in (
        (False, "other slices", GREY, 1),
        (True, "CPU-Opt chain", MIGRATION, 4),
    ):
        edges = table[table["chosen"] == chosen]
        faint = 1.0 if chosen else max(0.15, min(0.7, 12 / max(1, len(edges))))
        look = dict(
            name=name, opacity=faint, marker_color=color, line=dict(color=color, width=width)
        )
        _add_edges(figure, edges, len(windows) <= FEW, **look)
    figure.add_scatter(
        x=places,
        y=[0] * len(nodes),
        mode="markers",
        marker=dict(size=11 if len(nodes) > 14 else 22, color="#2f6fde"),
        showlegend=False,
        text=[f"w{k} = {t} s" for k, t in enumerate(texts)],
        hoverinfo="text",
    )
    costs = [_format_cost(slices.chain_cost(c, windows, statistics)) for c in (chain, windows)]
    note = (
        f"CPU-Opt keeps {len(chain)} of {len(windows)} slices: {costs[0]} comparisons per s, "
        f"Mem-Opt {costs[1]}, C_sys = {statistics.slice_overhead:.3g}"
    )
    return Chart(f"{title} (modelled)", {"": figure}, table, note)


def _add_edges(figure: go.Figure, edges: pd.DataFrame, has_labels: bool, **look: Any) -> None:
    """Add half-ellipses from node to node, each with its cost at the top."""
    turn = np.append(np.linspace(0, np.pi, 25), np.nan)
    i, j = edges["i"].to_numpy(float)[:, None], edges["j"].to_numpy(float)[:, None]
    x, y = (i + j) / 2 - (j - i) / 2 * np.cos(turn), (j - i) * np.sin(turn)
    costs = [_format_cost(cost) for cost in edges["cost_modelled"]]
    spans = zip(edges["start"], edges["end"], costs, strict=True)
    figure.add_scatter(x=x.ravel(), y=y.ravel(), mode="lines", hoverinfo="skip", **look)
    figure.add_scatter(
        x=((i + j) / 2).ravel(),
        y=(j - i).ravel(),
        mode="markers+text" if has_labels else "markers",
        showlegend=False,
        text=costs,
        textposition="top center",
        hovertext=[f"from {a:.3g} to {b:.3g} s: {c} comparisons per s" for a, b, c in spans],
        hoverinfo="text",
        **look,
    )


def _format_cost(cost: float) -> str:
    """Return a cost in three digits, with k for thousands and M for millions."""
    size, unit = next((s for s in ((1e6, "M"), (1e3, "k")) if cost >= s[0]), (1.0, ""))
    return f"{cost / size:.3g}{unit}"
