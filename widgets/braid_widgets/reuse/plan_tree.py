"""The plan of a query: from its streams over operators to its answer.

It marks operators as new, relaxed or unchanged, and shows the compensations. Source: Seshadri 2008,
sections 3.1 and 3.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import NamedTuple

import pandas as pd
import plotly.graph_objects as go
from braid.papers.reuse.deployment import Deployment, Operator
from braid.papers.reuse.query_definition import Compensation, Definition, make_compensation
from braid.papers.reuse.relaxation import format_window
from braid.util.durations import format_duration

from braid_widgets.base.charts import GREY, TEMPLATE, Chart
from braid_widgets.base.colors import MIGRATION, RATIO, RESULTS

COLOURS = {
    "stream": GREY,
    "as it was": RATIO,
    "relaxed": MIGRATION,
    "new": RESULTS,
    "query": "#862e9c",
}
"""Colors by kind of reuse."""
ALONG, WIDE = (0.32, 0.45, 0.2, 0.6, 0.75), 26
"""Positions of a text along a steep edge, in order of preference; maximum letters in a line."""
LETTER, ASIDE = 6.5, 12
"""Width of a letter, and distance between a box and its text, in pixels."""
ROOM, LINE, ROW = 90, 15, 120
"""Letters that fit side by side in a window of 640 pixels; height of a line, and minimum height of
a row, in pixels.
"""
PAGE = 540.0
"""Width of boxes and their texts on that page, in pixels."""
ACROSS = {"left": 0.0, "center": 0.5, "right": 1.0}
"""By alignment of a text, the share of it that is left of its position."""


@dataclass(frozen=True)
class PlanBox:
    """A node of a plan: its position, its text, and how it is reused."""

    key: str
    x: float
    y: float
    text: str
    reuse_kind: str


class TextBox(NamedTuple):
    """The rectangle of a text on a narrow page, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def place(cls, x: float, y: float, text: str, across: float, up: float) -> TextBox:
        """Return the rectangle of a text at a position.

        ``across`` and ``up`` are the shares of the text to the left of the position and above it.
        """
        lines = text.split("<br>")
        wide = LETTER * max(len(re.sub("<.*?>", "", line)) for line in lines)
        left, top = x - across * wide, y - up * LINE * len(lines)
        return cls(left, top, left + wide, top + LINE * len(lines))

    def overlaps(self, other: TextBox) -> bool:
        """Return whether the rectangle overlaps another."""
        is_beside = self.left >= other.right or other.left >= self.right
        return not (is_beside or self.top >= other.bottom or other.top >= self.bottom)


class EdgeLabel(NamedTuple):
    """The position of an edge's text and its alignment."""

    x: float
    y: float
    xanchor: str
    yanchor: str


@dataclass(frozen=True)
class PlanEdge:
    """The flow from one node to another, and the compensation applied to it."""

    source: str
    target: str
    text: str


def plan_tree(before: Deployment, after: Deployment, name: str) -> Chart:
    """Return the plan of a query in the deployment ``after``, colored by its reuse of
    ``before``.
    """
    boxes: list[PlanBox] = []
    edges: list[PlanEdge] = []
    query = after.queries[name]
    operator = after.operators[query.operator]
    depth = _draw_operator(before, after, operator, boxes, edges, [0])
    at = next(b for b in boxes if b.key == f"σ{operator.id}").y
    text = f"<b>{name}</b> at {query.sink}"
    boxes.append(PlanBox(name, depth + 1, at, text, "query"))
    edges.append(PlanEdge(f"σ{operator.id}", name, compensation_text(operator, query.definition)))
    return Chart(f"Plan of {name}", _make_figure(boxes, edges, name), _make_edge_table(edges))


def _draw_operator(
    before: Deployment,
    after: Deployment,
    operator: Operator,
    boxes: list[PlanBox],
    edges: list[PlanEdge],
    row: list[int],
) -> int:
    """Draw an operator and everything it reads; return its horizontal position."""
    heights, depths, key = [], [0], f"σ{operator.id}"
    for read in operator.inputs:
        if isinstance(read, str):
            definition = operator.definition.restrict_to((read,))
            boxes.append(
                PlanBox(read, 0, row[0], f"<b>{read}</b> from {after.source_node(read)}", "stream")
            )
            edges.append(PlanEdge(read, key, _format_source(definition)))
            heights.append(float(row[0]))
            row[0] += 1
        else:
            upstream = after.operators[read]
            depths.append(_draw_operator(before, after, upstream, boxes, edges, row))
            heights.append(next(b.y for b in boxes if b.key == f"σ{read}"))
            wanted = operator.demands[-1].definition.restrict_to(upstream.definition.streams)
            edges.append(PlanEdge(f"σ{read}", key, compensation_text(upstream, wanted)))
    depth = max(depths) + 1
    text = f"<b>{key}</b> at {operator.node}<br>{' ⋈ '.join(operator.definition.streams)}"
    text += f"<br>{len(operator.demands)} demands" if len(operator.demands) > 1 else ""
    boxes.append(
        PlanBox(key, depth, sum(heights) / len(heights), text, _classify_reuse(before, operator))
    )
    return depth


def _classify_reuse(before: Deployment, operator: Operator) -> str:
    there = before.operators.get(operator.id)
    if there is None:
        return "new"
    return "as it was" if there.version == operator.version else "relaxed"


def _format_source(definition: Definition) -> str:
    (where,), (columns,) = definition.selections, definition.columns
    chosen = "" if where.to_sql == "TRUE" else f"{where.to_sql}<br>"
    return f"{chosen}{', '.join(sorted(columns))}"


def compensation_text(operator: Operator, wanted: Definition) -> str:
    """Return the compensation of an operator's results in words, line by line."""
    compensation = make_compensation(operator.definition, wanted)
    return "<br>".join(_describe_compensation(wanted, compensation)) or "all of it"


def _describe_compensation(wanted: Definition, extra: Compensation) -> Iterator[str]:
    for stream, where, window in zip(wanted.streams, extra.where, extra.windows, strict=True):
        if where is not None:
            yield f"{stream}: {where.to_sql}"
        if window is not None:
            yield f"{stream} younger than {format_window(window)}"
    yield from (j.text for j in sorted(extra.joins) if not j.is_implied)
    if extra.slides:
        yield "every " + " or ".join(map(format_duration, sorted(extra.slides)))


def _make_figure(boxes: list[PlanBox], edges: list[PlanEdge], name: str) -> go.Figure:
    deep, high = max(b.x for b in boxes), max(b.y for b in boxes)
    letters = min(WIDE, int(ROOM / (1.35 * deep + 0.35)))
    texts = {b.key: _wrap_text(b.text, letters) for b in boxes}
    edge_texts = [_wrap_text(e.text, letters) for e in edges]
    lines = [text.count("<br>") + 1 for text in edge_texts]
    row = max(ROW, LINE * (max(lines) + max(t.count("<br>") + 1 for t in texts.values())))
    plot = go.Figure()
    at = {b.key: b for b in boxes}
    for edge, words, spot in zip(
        edges, edge_texts, _place_edge_labels(boxes, edges, texts, edge_texts, row), strict=True
    ):
        ends = at[edge.source], at[edge.target]
        plot.add_trace(
            go.Scatter(
                x=[b.x for b in ends], y=[b.y for b in ends], mode="lines", hoverinfo="skip",
                showlegend=False, line=dict(color=GREY, width=2),
            )
        )  # fmt: skip
        plot.add_annotation(
            **spot._asdict(), text=words, showarrow=False, font=dict(size=11),
            yshift=4 if spot.yanchor == "bottom" else -4,
        )  # fmt: skip
    for became, colour in COLOURS.items():
        alike = [b for b in boxes if b.reuse_kind == became]
        if alike:
            plot.add_trace(
                go.Scatter(
                    x=[b.x for b in alike], y=[b.y for b in alike],
                    mode="markers+text", name=became,
                    marker=dict(color=colour, size=18, symbol="square"),
                    text=[texts[b.key] for b in alike], cliponaxis=False,
                    textposition="middle left" if became == "stream" else "bottom center",
                )
            )  # fmt: skip
    plot.update_layout(
        template=TEMPLATE, title=f"Plan of {name}", height=220 + row * int(high + 1),
        legend=dict(orientation="h", y=1, yanchor="bottom"), margin=dict(t=90, b=30, l=60, r=40),
    )  # fmt: skip
    plot.update_xaxes(visible=False, range=[-0.35 * deep, deep + 0.35])
    plot.update_yaxes(visible=False, range=[high + 0.7, -0.5])
    return plot


def _place_edge_labels(
    boxes: list[PlanBox],
    edges: list[PlanEdge],
    texts: Mapping[str, str],
    labels: Sequence[str],
    row: int,
) -> Iterator[EdgeLabel]:
    """Return positions of the edges' texts that cover no other text, if possible."""
    deep = max(b.x for b in boxes)
    wide = PAGE / (1.35 * deep + 0.35)
    at = {b.key: b for b in boxes}
    taken = [
        TextBox.place(b.x * wide - ASIDE, b.y * row, texts[b.key], 1, 0.5)
        if b.reuse_kind == "stream"
        else TextBox.place(b.x * wide, b.y * row + ASIDE, texts[b.key], 0.5, 0)
        for b in boxes
    ]
    for edge, words in zip(edges, labels, strict=True):
        tried = {
            spot: TextBox.place(
                spot.x * wide, spot.y * row, words, ACROSS[spot.xanchor], spot.yanchor == "bottom"
            )
            for spot in _list_label_positions(at[edge.source], at[edge.target])
        }
        free = (s for s, box in tried.items() if not any(box.overlaps(other) for other in taken))
        spot = next(free, next(iter(tried)))
        taken.append(tried[spot])
        yield spot


def _list_label_positions(source: PlanBox, target: PlanBox) -> Iterator[EdgeLabel]:
    """Return the possible positions of an edge's text: along it, or on either side of it."""
    down = target.y - source.y
    sides = ("left", "right") if down > 0 else ("right", "left") if down else ("center", "center")
    for side in zip(sides, ("bottom", "top"), strict=True):
        for along in ALONG if down else (0.55,):
            x = source.x + (target.x - source.x) * along
            yield EdgeLabel(x, source.y + down * along, *side)


def _wrap_text(text: str, letters: int) -> str:
    """Return a text in lines that end before the next box, broken between words only."""
    parts = (wrap(part, letters, break_long_words=False) for part in text.split("<br>"))
    return "<br>".join(line for part in parts for line in part)


def _make_edge_table(edges: list[PlanEdge]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"from": e.source, "to": e.target, "compensation": e.text.replace("<br>", "; ")}
            for e in edges
        ]
    )
