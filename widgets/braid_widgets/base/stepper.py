"""A stepper: a small example, tuple by tuple, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any, TypedDict

from braid_lab.common.tuple_models import NAMES, Trace, TraceStep, group_name

from braid_widgets.base.player import Player, read_bundle


class StepChip(TypedDict):
    """A tuple in a box.

    - ``stream``: the stream that sets the color; None: several streams or none.
    - ``is_new``: whether this step put it there.
    """

    text: str
    stream: int | None
    is_new: bool


class StepNode(TypedDict):
    """A node with the tuples it stores, by stream.

    - ``queued``: tuples that wait, if the model has queues.
    - ``is_active``: whether the step happens at this node.
    """

    name: str
    is_active: bool
    stored: list[list[StepChip]]
    queued: list[StepChip] | None


class StepMove(TypedDict):
    """Tuples that move from a source to a target."""

    what: StepChip
    source: str
    target: str


class StepFrame(TypedDict):
    """One step of an example.

    - ``text``: description of the step.
    - ``results``: the results so far.
    - ``table``: rows of a table; the first is its header.
    - ``before``: the rows that were in the table before the step; without any, nothing is compared.
    - ``places``: the parts of the example; those that the step reads or changes are new.
    """

    title: str
    note: str
    text: str
    streams: list[str]
    nodes: list[StepNode]
    moves: list[StepMove]
    results: list[StepChip]
    table: list[list[str]]
    before: list[list[str]]
    places: list[StepChip]


def step_frames(trace: Trace, letter: str = "V") -> list[StepFrame]:
    """Return a frame for each step.

    ``letter`` is the paper's letter for nodes (Gu: V1, V2, ..; Wang: M1, M2, ..).
    """
    chips: list[StepChip] = []
    pictures: list[StepFrame] = []
    before = None
    for k, step in enumerate(trace.steps, 1):
        new_chips: list[StepChip] = [
            {"text": group_name(group), "stream": None, "is_new": True} for group in step.results
        ]
        chips = [*(_mark_as_old(chip) for chip in chips), *new_chips]
        pictures.append(_make_frame(trace, k, step, before, chips, letter))
        before = step
    return pictures


def _make_frame(
    trace: Trace,
    k: int,
    step: TraceStep,
    before: TraceStep | None,
    results: list[StepChip],
    letter: str,
) -> StepFrame:
    def place(node: int | None) -> str:
        return "outside" if node is None else f"{letter}{node + 1}"

    return {
        "title": trace.title,
        "note": f"step {k} of {len(trace.steps)} · "
        + (step.line or f"{step.arrival} is being processed · clock {step.clock}"),
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
        "results": results,
        "table": [list(map(str, row)) for row in step.table],
        "before": [list(map(str, row)) for row in step.before],
        "places": [
            {"text": text, "stream": None, "is_new": text in step.places}
            for text in dict.fromkeys(text for s in trace.steps for text in s.places)
        ],
    }


def _make_stored_chips(
    step: TraceStep, before: TraceStep | None, node: int
) -> list[list[StepChip]]:
    """Return the tuples that a node stores, by stream."""
    stored = []
    for s, held in enumerate(step.stored[node]):
        earlier = before.stored[node][s] if before else held
        stored.append([_make_chip(text, text not in earlier) for text in held])
    return stored


def _mark_as_old(chip: StepChip) -> StepChip:
    return {"text": chip["text"], "stream": chip["stream"], "is_new": False}


def _make_chip(text: str, fresh: bool = False) -> StepChip:
    """Return a tuple in the color of its stream; intermediate results and END marks have none."""
    stream = NAMES.index(text[0]) if text[0] in NAMES else None
    return {"text": text, "stream": stream, "is_new": fresh}


class Stepper(Player):
    """The steps of an example, with Back, Forward, Play and a slider; arrow keys step too.

    It opens on the first step. Raises ValueError for a trace without steps.
    """

    _name, _esm = "steps", read_bundle("steps")

    def __init__(self, trace: Trace, letter: str = "V") -> None:
        super().__init__(step_frames(trace, letter), 0)

    def frame_text(self, frame: Mapping[str, Any]) -> str:
        """Return all steps in words."""
        items = "".join(f"<li>{escape(step['text'])}</li>" for step in self.frames)
        return f"<p><b>{escape(frame['title'])}</b></p><ol>{items}</ol>"
