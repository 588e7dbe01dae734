"""The merge graph: the slices to merge are a shortest path. All costs are modelled.

Source: Wang 2008, section 7.2, Fig. 7.3.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from braid.papers.slices import chain_optimizer as slices
from braid.papers.slices.chain_optimizer import ChainStatistics

from braid_widgets.base.charts import BELOW, GREY, TEMPLATE, Chart
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


def merge_graph_chart(
    windows: slices.Chain, statistics: ChainStatistics, title: str = "", unit: str = "s"
) -> Chart:
    """Return Fig. 7.3 for one stream: nodes are windows, and an edge (i, j) is one slice.

    The slice ranges from w_i to w_j. The CPU-Opt chain is highlighted. Raises the errors of
    ``cpu_chain``.
    """
    chain = slices.cpu_chain(windows, statistics)
    table, plot = edge_table(windows, statistics, chain), go.Figure()
    for chosen, name, colour, wide in (
        (False, "other slices", GREY, 1),
        (True, "CPU-Opt chain", MIGRATION, 4),
    ):
        edges = table[table["chosen"] == chosen]
        if len(edges):
            plot.add_traces(_make_arc_traces(edges, name, colour, wide, len(windows) <= FEW, unit))
    ends = [0.0, *windows]
    texts = [f"{w:.3g}" for w in ends]
    nodes = dict(size=11 if len(ends) > 14 else 22, color="#2f6fde")
    plot.add_trace(
        go.Scatter(
            x=list(range(len(ends))),
            y=[0] * len(ends),
            mode="markers",
            marker=nodes,
            showlegend=False,
            text=[f"w{k} = {t} {unit}" for k, t in enumerate(texts)],
            hoverinfo="text",
        )
    )
    chosen_cost, all_cost = (
        slices.chain_cost(chain, windows, statistics),
        slices.chain_cost(windows, windows, statistics),
    )
    note = (
        f"CPU-Opt keeps {len(chain)} of {len(windows)} slices: {_format_cost(chosen_cost)} "
        f"comparisons per {unit}, Mem-Opt {_format_cost(all_cost)}"
    )
    note += f", C<sub>sys</sub> = {statistics.slice_overhead:.3g}"
    head = f"{title or 'Merge graph'} (modelled)<br><sub>{note}</sub>"
    ages = dict(
        tickvals=list(range(len(ends))),
        ticktext=texts,
        title=f"window ({unit})",
        showgrid=False,
        zeroline=False,
    )
    spans = dict(visible=False, range=[-0.1 * len(windows), 1.15 * len(windows)])
    plot.update_layout(
        template=TEMPLATE, title=dict(text=head, y=0.96, yanchor="top"), xaxis=ages, yaxis=spans
    )
    plot.update_layout(height=410, margin=dict(t=80, b=90), legend=BELOW)
    return Chart("merge graph", plot, table)


def _make_arc_traces(
    table: pd.DataFrame, name: str, colour: str, wide: int, has_labels: bool, unit: str
) -> list[go.Scatter]:
    """Return half-ellipses from node to node, each with its cost at the top."""
    turn = np.append(np.linspace(0, np.pi, 25), np.nan)
    i, j = table["i"].to_numpy(float)[:, None], table["j"].to_numpy(float)[:, None]
    x, y = (i + j) / 2 - (j - i) / 2 * np.cos(turn), (j - i) * np.sin(turn)
    faint = 1.0 if wide > 1 else max(0.15, min(0.7, 12 / len(table)))
    line = go.Scatter(
        x=x.ravel(),
        y=y.ravel(),
        mode="lines",
        name=name,
        line=dict(color=colour, width=wide),
        opacity=faint,
        hoverinfo="skip",
        connectgaps=False,
    )
    labels = [
        f"from {r.start:.3g} to {r.end:.3g} {unit}: {_format_cost(r.cost_modelled)} comparisons "
        "per "
        f"{unit}"
        for r in table.itertuples()
    ]
    tops = go.Scatter(
        x=((i + j) / 2).ravel(),
        y=(j - i).ravel(),
        mode="markers+text" if has_labels else "markers",
        showlegend=False,
        marker=dict(size=9 if has_labels else 5, color=colour, opacity=faint),
        text=[_format_cost(c) for c in table["cost_modelled"]],
        textposition="top center",
        hovertext=labels,
        hoverinfo="text",
    )
    return [line, tops]


def _format_cost(cost: float) -> str:
    """Return a cost in three digits, with k for thousands and M for millions."""
    size, unit = next((s for s in ((1e6, "M"), (1e3, "k")) if cost >= s[0]), (1.0, ""))
    return f"{cost / size:.3g}{unit}"
