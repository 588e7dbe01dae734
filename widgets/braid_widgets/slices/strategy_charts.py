"""The cost of a table of queries under different sharing strategies. All costs are modelled.

Source: the equations of Wang 2008.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

import pandas as pd
from braid.core.query import Query
from braid.papers.slices import chain_optimizer as slices
from braid.papers.slices.chain_optimizer import ChainStatistics
from braid_lab.slices import cost as costs
from braid_lab.slices.cost import SharedLoad, StrategyCost

from braid_widgets.base.charts import Chart
from braid_widgets.base.line_charts import panel_bar_chart
from braid_widgets.slices import merge_graph


def chain_statistics(q: SharedLoad, overhead: float) -> tuple[slices.Chain, ChainStatistics]:
    """Return the distinct windows and the statistics that price the chain of the first stream."""
    near = [round(w, 6) for w in q.windows]
    windows = slices.memory_chain(near)
    counts = tuple(near.count(w) for w in windows)
    passing = tuple(
        1.0 if w <= round(q.unselected_window, 6) else q.selection_selectivity for w in windows
    )
    return windows, ChainStatistics(
        (q.rate, q.rate), q.join_selectivity, (passing, (1.0,) * len(windows)), overhead, counts
    )


def strategy_costs(q: SharedLoad, chain: slices.Chain) -> dict[str, StrategyCost]:
    """Return the cost of each strategy.

    ``chain`` is the CPU-Opt chain over distinct windows. Without a selection the partition strategy
    is left out.
    """
    last = {round(w, 6): w for w in q.windows}
    by_strategy = {"isolated": costs.isolated_cost(q), "pull-up": costs.pull_up_cost(q)}
    if q.has_selection:
        by_strategy["partition"] = costs.partition_cost(q)
    all_slices = costs.state_slice_cost(q, tuple(last.values()))
    if len(chain) == len(last):
        return by_strategy | {"state slices": all_slices}
    merged = costs.state_slice_cost(q, tuple(last[w] for w in chain))
    return by_strategy | {"slices, Mem-Opt": all_slices, "slices, CPU-Opt": merged}


def strategy_chart(costs: Mapping[str, StrategyCost]) -> Chart:
    """Return state and comparisons of each strategy side by side, modelled by Eq. 4.1, 4.2 and
    5.1.
    """
    rows = [
        (name, kind.removesuffix("_tuples"), value)
        for name, cost in costs.items()
        for kind, value in asdict(cost).items()
    ]
    data = pd.DataFrame(rows, columns=["strategy", "what", "modelled"])
    drawn = data[data.groupby("what")["modelled"].transform("any")]
    is_state = drawn["what"] == "state"
    chart = panel_bar_chart(
        drawn.assign(panel=is_state.map({True: "state (tuples)", False: "comparisons per second"})),
        "The same queries, run in different ways (modelled)",
        "strategy",
        y="modelled",
        color="what",
        barmode="stack",
    )
    return replace(chart, data=data)


def strategy_charts(
    queries: Sequence[Query],
    streams: Sequence[str],
    rate: float,
    sigma: float,
    join: float,
    overhead: float,
) -> list[Chart]:
    """Return the comparison of strategies and the merge graph of the first stream.

    Raises the errors of ``from_queries``.
    """
    q = SharedLoad.from_queries(queries, rate, sigma, join)
    windows, statistics = chain_statistics(q, overhead)
    graph = merge_graph.merge_graph_chart(windows, statistics, f"Merge graph of {streams[0]}")
    return [strategy_chart(strategy_costs(q, slices.cpu_chain(windows, statistics))), graph]
