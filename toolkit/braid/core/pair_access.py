"""Describe by which access paths tuples were found, in the words of a condition's tree."""

from __future__ import annotations

from collections.abc import Sequence

from braid.core.condition_cost_tree import join_texts
from braid.core.run_events import BatchCommitted
from braid.core.step_counts import StepCounts

AccessPaths = tuple[tuple[str, str], ...]
"""The access path of each step, as "equality", and the parts of the condition that it serves."""


def describe_access_paths(
    streams: Sequence[str],
    parts: Sequence[str],
    commit: BatchCommitted,
    arrivals: Sequence[tuple[int | None, int]],
) -> AccessPaths:
    """Return by which access paths a result was found.

    - ``parts``: conjuncts of the condition, by id.
    - ``commit``: of the batch that found it.
    - ``arrivals``: batch and index of the stream of each member whose batch is known.
    """
    probing = max(arrivals, default=(None, 0))
    first = (probing[1],) if probing[0] == commit.batch else None
    steps = [s for s in commit.step_counts if first is None or first[0] in s.joined_streams]
    paths = [_describe_step(streams, parts, step) for step in steps or commit.step_counts]
    return tuple(dict.fromkeys(paths))


def _describe_step(
    streams: Sequence[str], parts: Sequence[str], step: StepCounts
) -> tuple[str, str]:
    joined = ", ".join(streams[s] for s in step.joined_streams)
    texts = [join_texts(parts, step.index_parts, "")]
    texts += [
        f"{check.reached} of {join_texts(parts, check.parts, 'window')}" for check in step.checks
    ]
    described = ", then ".join(text for text in texts if text)
    where = f"from {joined} to {streams[step.stream]}"
    return step.access, f"{where}: {described}" if described else where
