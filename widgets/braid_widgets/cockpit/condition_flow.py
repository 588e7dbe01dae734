"""The condition in a batch: how each of its parts is tested, and the pairs that it kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypedDict

from braid.core.run_events import BatchCommitted, RunStarted
from braid.core.step_counts import StepCounts, sum_step_counts

from braid_widgets.base.columnar import Columns


class FlowPart(NamedTuple):
    """A part of the condition in a batch.

    - ``step``: the joined streams and the next one; empty for a check of the pairs of the part
      above.
    - ``text``: the part as SQL.
    - ``reached``: how it is tested, such as "equality", "all pairs" or "check".
    - ``rows_in``: rows that probed, or pairs to check; ``rows_out``: pairs kept.
    - ``seconds``: of all tasks; 0 if they are part of those above.
    """

    step: str
    text: str
    reached: str
    rows_in: int
    rows_out: int
    seconds: float


class BatchFlow(TypedDict):
    """Counts of the condition in a batch, over all hosts.

    - ``seconds``: seconds of joining; null if they were not measured.
    - ``parts``: of the condition, in the order of their tests; empty if they were not counted.
    """

    rows_in: int
    candidates: int
    results: int
    seconds: float | None
    parts: Columns[FlowPart]


def make_flow(start: RunStarted | None, event: BatchCommitted) -> BatchFlow:
    """Return what the condition did in a batch."""
    seconds = event.seconds_by_phase.get("kernels")
    texts = start.condition_parts if start else ()
    streams = start.streams if start else ()
    steps = sum_step_counts(event.step_counts)
    parts = [part for step in steps for part in _list_step_parts(step, texts, streams)]
    return {
        "rows_in": sum(event.received_tuples),
        "candidates": event.total_host_metrics.compared_pairs,
        "results": event.results,
        "seconds": None if seconds is None else round(seconds, 4),
        "parts": Columns.from_records(FlowPart, parts),
    }


def _list_step_parts(
    step: StepCounts, texts: Sequence[str], streams: Sequence[str]
) -> Iterator[FlowPart]:
    """Return the part that finds candidates, and the checks of them that keep fewer pairs."""
    joined = ", ".join(streams[k] for k in step.joined_streams if k < len(streams))
    name = f"{joined} ⋈ {streams[step.stream]}" if step.stream < len(streams) else "step"
    index = _join_texts(step.index_parts, texts) or "no index: every pair is looked at"
    is_group = len(step.index_parts) > 1
    index += " AND the window" if is_group and step.index_parts[-1] == len(texts) else ""
    yield FlowPart(
        name, index, step.access, step.rows, step.candidate_pairs, round(step.seconds, 4)
    )
    if is_group and step.indexed_pairs < step.candidate_pairs:
        yield FlowPart(
            "", "all of the index", "check", step.candidate_pairs, step.indexed_pairs, 0.0
        )
    for check in step.checks:
        text = _join_texts(check.parts, texts) or "the window"
        yield FlowPart(
            "", text, check.reached, check.pairs_in, check.pairs_out, round(check.seconds, 4)
        )


def _join_texts(ids: Sequence[int], texts: Sequence[str]) -> str:
    return " AND ".join(texts[k] for k in ids if k < len(texts))
