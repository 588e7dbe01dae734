"""The stepping view: a small example tuple by tuple, forwards and backwards."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any, TypedDict

from braid_lab.common.trace import NAMES, Trace, TraceStep, group_name

from braid_widgets.base.player import Player, read_bundle


class StepChip(TypedDict):
    """What stands in a box: its text, the stream that gives the colour (None: several or none),
    and whether this step put it there.
    """

    text: str
    stream: int | None
    is_new: bool


class StepNode(TypedDict):
    """A node, what it stores by stream, and what waits there where the model has queues; ``here``:
    the step happens there.
    """

    name: str
    is_active: bool
    stored: list[list[StepChip]]
    queued: list[StepChip] | None


class StepMove(TypedDict):
    """What is on its way, from where to where."""

    what: StepChip
    source: str
    target: str


class StepFrame(TypedDict):
    """A step of an example: ``text`` says what happens, ``found`` are the results so far, the first
    row of the ``table`` is its head.
    """

    title: str
    note: str
    text: str
    streams: list[str]
    nodes: list[StepNode]
    moves: list[StepMove]
    results: list[StepChip]
    table: list[list[str]]


def step_frames(trace: Trace, letter: str = "V") -> list[StepFrame]:
    """A picture for each step; ``letter`` is that of the paper's nodes (Gu's are V1, V2 .., Wang's
    M1, M2 ..).
    """
    found: list[StepChip] = []
    pictures: list[StepFrame] = []
    before = None
    for k, step in enumerate(trace.steps, 1):
        made: list[StepChip] = [
            {"text": group_name(group), "stream": None, "is_new": True} for group in step.results
        ]
        found = [*(_mark_as_old(chip) for chip in found), *made]
        pictures.append(_make_frame(trace, k, step, before, found, letter))
        before = step
    return pictures


def _make_frame(
    trace: Trace,
    k: int,
    step: TraceStep,
    before: TraceStep | None,
    found: list[StepChip],
    letter: str,
) -> StepFrame:
    def place(node: int | None) -> str:
        return "outside" if node is None else f"{letter}{node + 1}"

    return {
        "title": trace.title,
        "note": f"step {k} of {len(trace.steps)} · {step.arrival} is being processed · clock "
        f"{step.clock}",
        "text": step.text,
        "streams": list(NAMES[: trace.streams]),
        "nodes": [
            {
                "name": place(n),
                "is_active": n == step.node,
                "stored": _make_stored_chips(step, before, n),
                "queued": [_make_chip(text) for text in step.queued[n]] if step.queued else None,
            }
            for n in range(trace.nodes)
        ],
        "moves": [
            {"what": _make_chip(m.what), "source": place(m.source), "target": place(m.target)}
            for m in step.moves
        ],
        "results": found,
        "table": [list(map(str, row)) for row in step.table],
    }


def _make_stored_chips(
    step: TraceStep, before: TraceStep | None, node: int
) -> list[list[StepChip]]:
    """What a node stores, by stream."""
    stored = []
    for s, held in enumerate(step.stored[node]):
        known = before.stored[node][s] if before else held
        stored.append([_make_chip(text, text not in known) for text in held])
    return stored


def _mark_as_old(chip: StepChip) -> StepChip:
    return {"text": chip["text"], "stream": chip["stream"], "is_new": False}


def _make_chip(text: str, fresh: bool = False) -> StepChip:
    """A tuple in its stream's colour; intermediate results and END marks have none."""
    stream = NAMES.index(text[0]) if text[0] in NAMES else None
    return {"text": text, "stream": stream, "is_new": fresh}


class Stepper(Player):
    """The steps of an example, opening on the first, with Back, Forward, Play and a slider; arrow
    keys step too.

    Raises ValueError for a trace without steps.
    """

    _name, _esm = "steps", read_bundle("steps")

    def __init__(self, trace: Trace, letter: str = "V") -> None:
        super().__init__(step_frames(trace, letter), 0)

    def frame_text(self, frame: Mapping[str, Any]) -> str:
        """All steps in words."""
        told = "".join(f"<li>{escape(step['text'])}</li>" for step in self.frames)
        return f"<p><b>{escape(frame['title'])}</b></p><ol>{told}</ol>"
