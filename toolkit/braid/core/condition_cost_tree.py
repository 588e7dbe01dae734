"""The tree of a join condition: how each part is reached, with the pairs that it has cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from braid.core.step_counts import CheckCounts, StepCounts, sum_step_counts

_HEADINGS = ("rows in", "candidates", "out", "seconds")
_ESTIMATED = "estimated"
"""Word in the place of the seconds of a step whose pairs are estimated."""
_WIDEST = 70
"""Most characters of a part in a line."""


class TreeLine(NamedTuple):
    """A line of the tree.

    - ``depth``: 0 for a step, 1 for what finds and checks its pairs, 2 for a part of the index.
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
    - ``estimated``: whether these are estimates, which have no seconds. A negative count was
      estimated from too few pairs.
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
    checks = (_describe_check(parts, check, counted) for check in step.checks)
    return [first, *_describe_index(parts, step, counted), *checks]


def _describe_index(parts: Sequence[str], step: StepCounts, counted: bool) -> list[TreeLine]:
    """Return the line of the index. If it has several parts, each has a line below.

    These have no counts of their own, as the index finds and checks pairs by all of them.
    """
    several = step.index_parts if len(step.index_parts) > 1 else ()
    pairs = _format_count(step.candidate_pairs) if counted else ""
    if not several:
        text = join_texts(parts, step.index_parts, step.access)
        return [TreeLine(1, text, step.access, out=pairs)]
    admitted = _format_count(step.indexed_pairs) if counted else ""
    below = (TreeLine(2, join_texts(parts, [id], "window"), "") for id in several)
    return [TreeLine(1, "index", step.access, candidates=pairs, out=admitted), *below]


def _describe_check(parts: Sequence[str], check: CheckCounts, counted: bool) -> TreeLine:
    line = TreeLine(1, join_texts(parts, check.parts, "window"), check.reached)
    if not counted:
        return line
    seconds = f"{check.seconds:.2f}" if check.reached == "residual" else ""
    return line._replace(
        candidates=_format_count(check.pairs_in),
        out=_format_count(check.pairs_out),
        seconds=seconds,
    )


def join_texts(parts: Sequence[str], ids: Sequence[int], other: str) -> str:
    """Return the parts with these ids as one text; ``other`` if there is none."""
    return " AND ".join(parts[id] for id in ids if id < len(parts)) or other


def _format_count(count: float) -> str:
    return f"{count:,.0f}" if count >= 0 else "too few"


def format_condition_tree(lines: Sequence[TreeLine]) -> list[str]:
    """Return the lines of a tree as aligned text, with headings if there are counts."""
    drawn = _draw_branches(lines)
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


def _draw_branches(lines: Sequence[TreeLine]) -> list[str]:
    """Return the texts of the lines with the branches of the tree, shortened if they are long."""
    drawn = []
    for place, line in enumerate(lines):
        later = [after.depth for after in lines[place + 1 :]]
        goes_on = [
            depth in later[: next((n for n, d in enumerate(later) if d < depth), len(later))]
            for depth in range(1, line.depth + 1)
        ]
        bars = "".join("│ " if more else "  " for more in goes_on[:-1])
        branch = f"{'├' if goes_on[-1] else '└'} " if goes_on else ""
        drawn.append(bars + branch + shorten_text(line.text, _WIDEST))
    return drawn


def shorten_text(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters, with an ellipsis in place of its middle."""
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - half]}…{text[-half:]}"
