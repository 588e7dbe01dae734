"""The stepping view: a small example tuple by tuple, forwards and backwards."""

from __future__ import annotations

from typing import Any

from braid.papers.trace import NAMES, Step, Trace, name

from braid_widgets.base.film import Film, script

Chip = tuple[str, int | None, bool]
"""What stands in a box: its text, the stream that gives the colour (None: several or none), whether
this step put it there.
"""


def frames(trace: Trace, letter: str = "V") -> list[dict[str, Any]]:
    """A picture for each step; ``letter`` is that of the paper's nodes (Gu's are V1, V2 .., Wang's
    M1, M2 ..).
    """
    found: list[Chip] = []
    pictures, before = [], None
    for k, step in enumerate(trace.steps, 1):
        found = [(text, stream, False) for text, stream, _ in found] + [
            (name(group), None, True) for group in step.found
        ]
        pictures.append(_frame(trace, k, step, before, found, letter))
        before = step
    return pictures


def _frame(
    trace: Trace, k: int, step: Step, before: Step | None, found: list[Chip], letter: str
) -> dict[str, Any]:
    def place(node: int | None) -> str:
        return "outside" if node is None else f"{letter}{node + 1}"

    return {
        "title": trace.title,
        "note": f"step {k} of {len(trace.steps)} · {step.arrival} is being processed · clock "
        f"{step.clock}",
        "text": step.text,
        "streams": list(NAMES[: trace.streams]),
        "nodes": [
            {"name": place(n), "here": n == step.node, **_held(step, before, n)}
            for n in range(trace.nodes)
        ],
        "moves": [[_chip(m.what), place(m.source), place(m.target)] for m in step.moves],
        "found": found,
        "table": [list(row) for row in step.table],
    }


def _held(step: Step, before: Step | None, node: int) -> dict[str, Any]:
    """What a node stores, by stream, and what waits there, where the model has queues."""
    stored = []
    for s, held in enumerate(step.stored[node]):
        known = before.stored[node][s] if before else held
        stored.append([_chip(text, text not in known) for text in held])
    return {
        "stored": stored,
        "queued": [_chip(text) for text in step.queued[node]] if step.queued else None,
    }


def _chip(text: str, fresh: bool = False) -> Chip:
    """A tuple in its stream's colour; intermediate results and END marks have none."""
    return text, NAMES.index(text[0]) if text[0] in NAMES else None, fresh


class Steps(Film):
    """The steps of an example, opening on the first, with Back, Forward, Play and a slider; arrow
    keys step too.

    Raises ValueError for a trace without steps.
    """

    _esm = script("base/steps.js")

    def __init__(self, trace: Trace, letter: str = "V") -> None:
        super().__init__(frames(trace, letter), 0)
