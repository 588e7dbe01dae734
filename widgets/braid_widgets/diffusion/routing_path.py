"""The routing path of one segment, hop by hop. Source: Gu 2007, Fig. 5c."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from braid.core.plan import Route
from braid.core.plan_sentences import format_count
from braid.core.run_events import BatchPlanned, RunStarted
from braid.papers.diffusion.run_events import PathChosen

from braid_widgets.base import colors
from braid_widgets.base.charts import BELOW, GREY, TEMPLATE, Chart
from braid_widgets.base.text import data_origin

COLUMNS = ["path", "hop", "stream", "host", "blocks"]
MOST = 24
"""Number of latest segments to choose from."""


def routes_by_block(events: Iterable[Any]) -> dict[int, Route]:
    """Return the routes of fresh blocks that probe any block, by block id."""
    plans = (e for e in events if isinstance(e, BatchPlanned))
    return {r.block.id: r for plan in plans for r in plan.routes if r.is_fresh and r.paths}


def route_table(route: Route) -> pd.DataFrame:
    """Return one row per host of each hop.

    ``path`` and ``hop`` count from 0; ``blocks`` is the number of blocks probed there.
    """
    rows = [
        (p, k, hop.stream, host, len(ids))
        for p, path in enumerate(route.paths)
        for k, hop in enumerate(path)
        for host, ids in hop.blocks_by_host.items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def route_chart(events: Iterable[Any], block: int | None = None) -> Chart:
    """Return a chart of the route of a segment's first block.

    It shows the hosts that store the block, and the hosts V_1, V_2, ... that the block and its
    intermediate results visit. By default it is the block of the last batch that visits most hosts;
    a menu offers the last ``MOST`` others. Raises ValueError for a block without a route.
    """
    events = list(events)
    start = next(e for e in events if isinstance(e, RunStarted))
    routes = routes_by_block(events)
    if not routes or (block is not None and block not in routes):
        raise ValueError(
            f"no segment begins with block {block}" if routes else "no segment has met anything yet"
        )
    first = _find_widest_block(events) if block is None else block
    others = sorted(routes)[-MOST:] if block is None else []
    chosen = [routes[id] for id in sorted({first, *others})]
    tables = [route_table(route) for route in chosen]
    hops = max(int(data["hop"].max()) for data in tables) + 1
    drawn = [
        list(_make_block_traces(r, data, start)) for r, data in zip(chosen, tables, strict=True)
    ]
    for route, traces in zip(chosen, drawn, strict=True):
        for trace in traces:
            trace.visible = route.block.id == first
    names = _make_stream_legend(start)
    plot = go.Figure([*(trace for traces in drawn for trace in traces), *names])
    ticks = ["stored on"] + [f"V<sub>{k + 1}</sub>" for k in range(hops)]
    notes = [_describe_route(events, route, start) for route in chosen]
    place = [route.block.id for route in chosen].index(first)
    title = f"Routing path of a segment ({data_origin(start)})"
    plot.update_layout(template=TEMPLATE, title=title, height=560, margin=dict(t=110, b=150))
    plot.update_layout(legend=dict(title="stream", **BELOW))
    if len(chosen) > 1:
        plot.update_layout(updatemenus=[_make_block_menu(chosen, drawn, notes, place, len(names))])
    plot.update_xaxes(
        title=dict(text=notes[place], font_size=12),
        tickvals=list(range(hops + 1)),
        ticktext=ticks,
        range=[-0.4, hops + 0.6],
        showgrid=False,
        zeroline=False,
    )
    plot.update_yaxes(
        title="host",
        range=[start.hosts - 0.3, -0.7],
        tickmode="auto",
        nticks=min(start.hosts, 16) + 1,
        zeroline=False,
    )
    combined = [t.assign(block=r.block.id) for r, t in zip(chosen, tables, strict=True)]
    return Chart("routing path", plot, pd.concat(combined, ignore_index=True))


def _make_block_traces(route: Route, data: pd.DataFrame, start: RunStarted) -> Iterator[go.Scatter]:
    """Return the traces of one block."""
    yield from _make_hop_edges(route, data)
    yield _make_stored_trace(route)
    for k in range(int(data["hop"].max()) + 1):
        yield _make_hop_trace(data, k, start.streams, route)


def _format_block_name(route: Route, start: RunStarted) -> str:
    stream = start.streams[route.block.stream]
    return f"block {route.block.id}, stream {stream}, batch {route.block.batch + 1}"


def _make_stream_legend(start: RunStarted) -> list[go.Scatter]:
    """Return the legend of the streams' colors."""
    return [
        go.Scatter(x=[None], y=[None], mode="markers", name=name, marker=dict(size=12, color=shade))
        for name, shade in zip(start.streams, map(colors.stream_color, count()), strict=False)
    ]


def _make_block_menu(
    chosen: list[Route],
    drawn: list[list[go.Scatter]],
    notes: list[str],
    place: int,
    more: int,
) -> dict[str, Any]:
    """Return the menu that chooses the block."""
    buttons = []
    for k, route in enumerate(chosen):
        seen = [at == k for at, traces in enumerate(drawn) for _ in traces] + [True] * more
        shown = [{"visible": seen}, {"xaxis.title.text": notes[k]}]
        buttons.append(dict(method="update", label=f"block {route.block.id}", args=shown))
    spot = dict(x=0, xanchor="left", y=1.02, yanchor="bottom")
    return dict(buttons=buttons, active=place, **spot)


def _find_widest_block(events: list[Any]) -> int:
    plan = next(e for e in reversed(events) if isinstance(e, BatchPlanned) and routes_by_block([e]))
    return max(
        routes_by_block([plan]).items(), key=lambda item: route_table(item[1])["host"].nunique()
    )[0]


def _describe_route(events: list[Any], route: Route, start: RunStarted) -> str:
    """Describe the route in short lines."""
    return "<br>".join([_format_block_name(route, start), *_describe_paths(events, route, start)])


def _describe_paths(events: list[Any], route: Route, start: RunStarted) -> Iterator[str]:
    alone = all(len(hop.blocks_by_host) == 1 for path in route.paths for hop in path)
    if len(route.paths) > 1 or alone:
        separately = ", each on a host of its own" if len(route.paths) > 1 else ""
        yield format_count(len(route.paths), "path") + separately
        yield "dotted: stays on its host"
        return
    chosen = [
        e
        for e in events
        if isinstance(e, PathChosen)
        and e.stream == route.block.stream
        and e.block <= route.block.id
    ]
    yield "number: blocks probed there · dotted: stays on its host"
    orders = [
        f"{' → '.join(start.streams[s] for s in order.streams)}: {order.estimated_overhead:.3g}"
        for last in chosen[-1:]
        for order in last.join_orders
    ]
    if orders:
        yield "estimated sends for a tuple by join order, chosen first:"
    yield from (", ".join(orders[at : at + 2]) for at in range(0, len(orders), 2))


def _make_hop_edges(route: Route, data: pd.DataFrame) -> list[go.Scatter]:
    """Return lines from each host of a hop to each of the next, dotted if nothing is sent."""
    lines: dict[str, tuple[list[float | None], list[float | None]]] = {
        "solid": ([], []),
        "dot": ([], []),
    }
    for _, path in data.groupby("path"):
        for k in range(int(path["hop"].max())):
            for a in path.loc[path.hop == k, "host"]:
                for b in path.loc[path.hop == k + 1, "host"]:
                    x, y = lines["dot" if a == b else "solid"]
                    x += [k + 1, k + 2, None]
                    y += [a, b, None]
    return [
        go.Scatter(
            x=x,
            y=y,
            mode="lines",
            line=dict(color=GREY, width=1.4, dash=dash),
            showlegend=False,
            opacity=0.7,
            hoverinfo="skip",
        )
        for dash, (x, y) in lines.items()
    ]


def _make_stored_trace(route: Route) -> go.Scatter:
    hosts, shade = route.block.hosts, colors.stream_color(route.block.stream)
    words = [f"stored on host {h}" for h in hosts]
    mark = dict(symbol="square", size=13, color=shade)
    return go.Scatter(
        x=[0] * len(hosts),
        y=hosts,
        mode="markers",
        marker=mark,
        showlegend=False,
        text=words,
        hovertemplate="%{text}<extra></extra>",
    )


def _make_hop_trace(
    data: pd.DataFrame, hop: int, streams: tuple[str, ...], route: Route
) -> go.Scatter:
    rows = data[data.hop == hop]
    shades = [colors.stream_color(s) for s in rows["stream"]]
    words = [f"host {r.host}: {r.blocks} blocks of {streams[r.stream]}" for r in rows.itertuples()]
    return go.Scatter(
        x=[hop + 1] * len(rows),
        y=rows["host"].tolist(),
        mode="markers+text",
        hovertext=words,
        hoverinfo="text",
        text=[f"{streams[r.stream]}: {r.blocks}" for r in rows.itertuples()],
        textposition="top right",
        cliponaxis=False,
        marker=dict(size=13, color=shades),
        showlegend=False,
    )
