"""The tree of a join condition: how each part is reached, with the pairs that it has cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from braid.core.step_counts import CheckCounts, StepCounts, sum_step_counts

_HEADINGS = ("rows in", "candidates", "out", "seconds")
_ESTIMATED = "estimated"
"""Word in the place of the seconds of a step whose pairs are estimated."""


class TreeLine(NamedTuple):
    """A line of the tree.

    - ``depth``: 0 for a step, 1 for a part of the condition.
    - ``text``: the streams of a step, or the part as written.
    - ``reached``: how its pairs are found, or that it checks them.
    - ``rows``, ``candidates``, ``out``, ``seconds``: counts as text; empty if there is none.
    """

    depth: int
    text: str
    reached: str
    rows: str = ""
    candidates: str = ""
    out: str = ""
    seconds: str = ""


def build_condition_tree(
    streams: Sequence[str],
    parts: Sequence[str],
    steps: Iterable[StepCounts],
    counted: bool = True,
    estimated: bool = False,
) -> list[TreeLine]:
    """Return the tree of a condition.

    - ``parts``: its conjuncts, by id.
    - ``steps``: the probe steps of a run, or planned ones.
    - ``counted``: whether the steps have counts.
    - ``estimated``: whether these are estimates, which have no seconds.
    """
    sums = _merge_directions(sum_step_counts(steps), len(streams))
    lines = [line for step in sums for line in _describe_step(streams, parts, step, counted)]
    used = {id for step in sums for ids in step.part_ids for id in ids}
    filters = [TreeLine(0, text, "filter") for id, text in enumerate(parts) if id not in used]
    if estimated:
        seconds = (_ESTIMATED if not line.depth else "" for line in lines)
        lines = [line._replace(seconds=s) for line, s in zip(lines, seconds, strict=True)]
    return (filters if sums else []) + lines


def _merge_directions(steps: Sequence[StepCounts], streams: int) -> list[StepCounts]:
    """Return the steps of a join of two streams as one, if both directions reach pairs alike."""
    if streams != 2:
        return [*steps]
    turned = [step._replace(joined_streams=(0,), stream=1) for step in steps]
    return [*sum_step_counts(turned)]


def _describe_step(
    streams: Sequence[str], parts: Sequence[str], step: StepCounts, counted: bool
) -> list[TreeLine]:
    title = f"{', '.join(streams[s] for s in step.joined_streams)} ⋈ {streams[step.stream]}"
    first = TreeLine(0, title, "")
    if counted:
        seconds = f"{step.seconds:.2f}"
        first = TreeLine(
            0, title, "", *map(_format_count, (step.rows, step.candidate_pairs, step.matches))
        )._replace(seconds=seconds)
    index = TreeLine(1, _join_texts(parts, step.index_parts, step.access), step.access)
    if counted:
        index = index._replace(out=_format_count(step.candidate_pairs))
    return [first, index, *(_describe_check(parts, c, counted) for c in step.checks)]


def _describe_check(parts: Sequence[str], check: CheckCounts, counted: bool) -> TreeLine:
    line = TreeLine(1, _join_texts(parts, check.parts, "window"), check.reached)
    if not counted:
        return line
    seconds = f"{check.seconds:.2f}" if check.reached == "residual" else ""
    return line._replace(
        candidates=_format_count(check.pairs_in),
        out=_format_count(check.pairs_out),
        seconds=seconds,
    )


def _join_texts(parts: Sequence[str], ids: Sequence[int], other: str) -> str:
    return " AND ".join(parts[id] for id in ids if id < len(parts)) or other


def _format_count(count: float) -> str:
    return f"{count:,.0f}"


def format_condition_tree(lines: Sequence[TreeLine]) -> list[str]:
    """Return the lines of a tree as aligned text, with headings if there are counts."""
    drawn = [_draw_branch(line, last) for line, last in _mark_last(lines)]
    table = [(text, line.reached, *line[3:]) for text, line in zip(drawn, lines, strict=True)]
    if any(any(row[2:]) for row in table):
        table.insert(0, ("", "", *_HEADINGS))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if n < 2 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


def _mark_last(lines: Sequence[TreeLine]) -> list[tuple[TreeLine, bool]]:
    """Return each line with whether it is the last part of its step."""
    marked: list[tuple[TreeLine, bool]] = []
    for _, group in groupby(lines, key=lambda line: line.depth):
        several = list(group)
        marked += [(line, n == len(several) - 1) for n, line in enumerate(several)]
    return marked


def _draw_branch(line: TreeLine, last: bool) -> str:
    return line.text if not line.depth else f"{'└' if last else '├'} {line.text}"
