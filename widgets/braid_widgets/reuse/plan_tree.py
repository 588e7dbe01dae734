"""The plan of a query: from its streams over operators to its answer, what is new, relaxed or as it
was, and the compensations on the way.

After Seshadri 2008, sections 3.1 and 3.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap

import pandas as pd
import plotly.graph_objects as go
from braid.core.spans import text
from braid.papers.reuse.definition import Compensation, Definition, compensation
from braid.papers.reuse.deployment import Deployment, Operator
from braid.papers.reuse.relaxation import span

from braid_widgets.base.charts import GREY, TEMPLATE, Chart
from braid_widgets.base.colours import MIGRATION, RATIO, RESULTS

COLOURS = {
    "stream": GREY,
    "as it was": RATIO,
    "relaxed": MIGRATION,
    "new": RESULTS,
    "query": "#862e9c",
}
"""By what became of it."""
ALONG, WIDE = 0.32, 26
"""How far along a steep edge its text stands, above it and to its outer side, as those of boxes are
below them; letters of a line, at most.
"""
ROOM, LINE, ROW = 90, 15, 120
"""Letters beside each other in a window of 640 pixels; pixels of a line, and of a row at least."""


@dataclass(frozen=True)
class Box:
    """Something of a plan: where it is drawn, what it says, and what became of it."""

    key: str
    x: float
    y: float
    text: str
    became: str


@dataclass(frozen=True)
class Edge:
    """What flows from one to another, and by which compensation."""

    source: str
    target: str
    text: str


def plan_tree(before: Deployment, after: Deployment, name: str) -> Chart:
    """The plan of one of the queries that are deployed ``after``, coloured by what was there
    ``before``.
    """
    boxes: list[Box] = []
    edges: list[Edge] = []
    asked = after.queries[name]
    operator = after.operators[asked.operator]
    depth = _draw(before, after, operator, boxes, edges, [0])
    at = next(b for b in boxes if b.key == f"σ{operator.id}").y
    told = f"<b>{name}</b> at {asked.sink}"
    boxes.append(Box(name, depth + 1, at, told, "query"))
    edges.append(Edge(f"σ{operator.id}", name, said(operator, asked.definition)))
    return Chart(f"Plan of {name}", _figure(boxes, edges, name), _rows(edges))


def _draw(
    before: Deployment,
    after: Deployment,
    operator: Operator,
    boxes: list[Box],
    edges: list[Edge],
    row: list[int],
) -> int:
    """Draw an operator and all that it reads; how far to the right it is."""
    heights, depths, own = [], [0], f"σ{operator.id}"
    for read in operator.inputs:
        if isinstance(read, str):
            definition = operator.definition.part((read,))
            boxes.append(Box(read, 0, row[0], f"<b>{read}</b> from {after.source(read)}", "stream"))
            edges.append(Edge(read, own, _source(definition)))
            heights.append(float(row[0]))
            row[0] += 1
        else:
            upstream = after.operators[read]
            depths.append(_draw(before, after, upstream, boxes, edges, row))
            heights.append(next(b.y for b in boxes if b.key == f"σ{read}"))
            wanted = operator.demands[-1].definition.part(upstream.definition.streams)
            edges.append(Edge(f"σ{read}", own, said(upstream, wanted)))
    depth = max(depths) + 1
    told = f"<b>{own}</b> at {operator.node}<br>{' ⋈ '.join(operator.definition.streams)}"
    told += f"<br>{len(operator.demands)} demands" if len(operator.demands) > 1 else ""
    boxes.append(Box(own, depth, sum(heights) / len(heights), told, _became(before, operator)))
    return depth


def _became(before: Deployment, operator: Operator) -> str:
    there = before.operators.get(operator.id)
    if there is None:
        return "new"
    return "as it was" if there.version == operator.version else "relaxed"


def _source(definition: Definition) -> str:
    (where,), (columns,) = definition.where, definition.columns
    chosen = "" if where.text == "TRUE" else f"{where.text}<br>"
    return f"{chosen}{', '.join(sorted(columns))}"


def said(operator: Operator, wanted: Definition) -> str:
    """The compensation of an operator's results, in words, line by line."""
    own = compensation(operator.definition, wanted)
    return "<br>".join(_words(wanted, own)) or "all of it"


def _words(wanted: Definition, own: Compensation) -> Iterator[str]:
    for stream, where, window in zip(wanted.streams, own.where, own.windows, strict=True):
        if where is not None:
            yield f"{stream}: {where.text}"
        if window is not None:
            yield f"{stream} younger than {span(window)}"
    yield from (j.text for j in sorted(own.joins) if not j.implied)
    if own.slides:
        yield "every " + " or ".join(map(text, sorted(own.slides)))


def _figure(boxes: list[Box], edges: list[Edge], name: str) -> go.Figure:
    at = {b.key: (b.x, b.y) for b in boxes}
    deep, high = max(b.x for b in boxes), max(b.y for b in boxes)
    letters = min(WIDE, int(ROOM / (1.35 * deep + 0.35)))
    told = {b.key: _folded(b.text, letters) for b in boxes}
    lines = [_folded(e.text, letters).count("<br>") + 1 for e in edges]
    plot = go.Figure()
    for edge in edges:
        (x0, y0), (x1, y1) = at[edge.source], at[edge.target]
        plot.add_trace(
            go.Scatter(
                x=[x0, x1], y=[y0, y1], mode="lines", hoverinfo="skip", showlegend=False,
                line=dict(color=GREY, width=2),
            )
        )  # fmt: skip
        plot.add_annotation(
            x=x0 + (x1 - x0) * (ALONG if y1 != y0 else 0.55), y=y0 + (y1 - y0) * ALONG,
            text=_folded(edge.text, letters),
            showarrow=False, font=dict(size=11), yanchor="bottom", yshift=4,
            xanchor="left" if y1 > y0 else "right" if y1 < y0 else "center",
        )  # fmt: skip
    for became, colour in COLOURS.items():
        mine = [b for b in boxes if b.became == became]
        if mine:
            plot.add_trace(
                go.Scatter(
                    x=[b.x for b in mine], y=[b.y for b in mine], mode="markers+text", name=became,
                    marker=dict(color=colour, size=18, symbol="square"),
                    text=[told[b.key] for b in mine], cliponaxis=False,
                    textposition="middle left" if became == "stream" else "bottom center",
                )
            )  # fmt: skip
    row = max(ROW, LINE * (max(lines) + max(t.count("<br>") + 1 for t in told.values())))
    plot.update_layout(
        template=TEMPLATE, title=f"Plan of {name}", height=220 + row * int(high + 1),
        legend=dict(orientation="h", y=1, yanchor="bottom"), margin=dict(t=90, b=30, l=60, r=40),
    )  # fmt: skip
    plot.update_xaxes(visible=False, range=[-0.35 * deep, deep + 0.35])
    plot.update_yaxes(visible=False, range=[high + 0.7, -0.5])
    return plot


def _folded(told: str, letters: int) -> str:
    """Text in lines that are short enough to end before the next box; no word is cut."""
    parts = (wrap(part, letters, break_long_words=False) for part in told.split("<br>"))
    return "<br>".join(line for part in parts for line in part)


def _rows(edges: list[Edge]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"from": e.source, "to": e.target, "compensation": e.text.replace("<br>", "; ")}
            for e in edges
        ]
    )
