"""A stepper: an algorithm on a few rows, step by step, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import zip_longest
from typing import Any, NotRequired, TypedDict

import anywidget
import ipywidgets as W
import traitlets
from braid.util.validation import read_natural
from braid_lab.common.tuple_models import (
    NAMES,
    Line,
    Listing,
    StepExample,
    Trace,
    TraceStep,
)

from braid_widgets.base.display import display_view
from braid_widgets.base.interactivity import is_headless
from braid_widgets.base.player import embed_data, read_bundle, read_styles
from braid_widgets.base.static_fallback import StaticFallback

OUTLINES = {"μ": "dashed", "*": "dashed", "Δ′": "open", "#": "open", "Δ": "double"}
"""The outline of a row by its mark: the set that it is in, or the copies that it is one of."""
Row = tuple[str, ...]
CHOICES = 4
"""Maximum number of answers to a question."""


class StepChip(TypedDict):
    """A row in a pill.

    - ``stream``: the stream that sets the color; without one: several streams or none.
    - ``is_new``: whether this step put it there.
    - ``outline``: the set that it is in, as a line: "dashed", "open" or "double".
    """

    text: str
    stream: NotRequired[int]
    is_new: NotRequired[bool]
    outline: NotRequired[str]


class StepNode(TypedDict):
    """A node with the rows it stores, by stream.

    - ``row``, ``column``: its place by the mapping, from 1.
    - ``queued``: rows that wait, if the model has queues.
    - ``is_active``: whether the step happens at this node.
    """

    name: str
    is_active: bool
    row: int
    column: int
    stored: list[list[StepChip]]
    queued: list[StepChip] | None


class StepMove(TypedDict):
    """Rows that move from a node to another; None: from or to the outside."""

    what: StepChip
    source: int | None
    target: int | None


class StepQuestion(TypedDict):
    """A question about the next step.

    - ``answer``: index of the option that is right.
    - ``reply``: what the next step does.
    """

    text: str
    options: list[str]
    answer: int
    reply: str


class StepFrame(TypedDict):
    """One step of an example.

    - ``text``: description of the step.
    - ``listing``: the algorithm that it, or the last step before it, follows, by index.
    - ``lit``: the lines of the listing that are executed, by index.
    - ``row_heads``, ``column_heads``: headings of the places.
    - ``old``: row and column of each node by the old mapping, while rows are where it wants them.
    - ``matches``: the members of the results of the step.
    - ``results``: the number of results so far, in words; "": no step of the example has any.
    - ``table``: rows of a table, the first its header; of each cell the text, the text that the
      step has replaced, and "new", "gone" or "".
    - ``parts``: the parts of the example; those that the step reads or changes are new.
    - ``arrived``: the number of words of the example's text that the steps so far are about.
    """

    title: str
    note: str
    text: str
    listing: int | None
    lit: list[int]
    nodes: list[StepNode]
    row_heads: list[StepChip]
    column_heads: list[StepChip]
    old: list[list[int]]
    moves: list[StepMove]
    matches: list[list[str]]
    results: str
    table: list[list[list[str]]]
    parts: list[StepChip]
    question: StepQuestion | None
    arrived: int


class StepListing(TypedDict):
    """An algorithm in our own words: its lines, and their numbers in the paper."""

    title: str
    numbers: list[str]
    lines: list[str]


class StepAlgorithm(TypedDict):
    """The parts that all steps of an example share.

    - ``listings``: the algorithms that they follow.
    - ``labels``, ``texts``: what can be typed, and what it is now; without any, nothing.
    - ``variants``: steps on other rows by a name, for a page without a kernel.
    """

    listings: list[StepListing]
    labels: list[str]
    texts: list[str]
    variants: dict[str, list[StepFrame]]


def step_frames(trace: Trace, letter: str = "V", text: str = "") -> list[StepFrame]:
    """Return a frame for each step.

    ``letter`` is the paper's letter for nodes (Gu: V1, V2, ..; Wang: M1, M2, ..). ``text`` has the
    rows, in order of arrival.
    """
    frames = _Frames(trace, letter, text)
    return [frames.make_frame(k) for k in range(len(trace.steps))]


class _Frames:
    """The frames of a trace."""

    def __init__(self, trace: Trace, letter: str, text: str) -> None:
        self.trace, self.text = trace, text
        self.names = trace.names or tuple(f"{letter}{n + 1}" for n in range(trace.nodes))
        self.algorithms = [listing.algorithm for listing in trace.listings]
        self.parts = dict.fromkeys(text for s in trace.steps for text in s.parts)

    def make_frame(self, k: int) -> StepFrame:
        """Return the frame of a step."""
        steps = self.trace.steps
        step, before, line = steps[k], steps[k - 1] if k else None, steps[k].line
        passed = [s.line.algorithm for s in steps[: k + 1] if s.line] or self.algorithms[:1]
        results = sum(len(s.results) for s in steps[: k + 1])
        has_results = any(s.results for s in steps)
        arrival = "" if step.text.startswith(step.arrival) else f" · {step.arrival}"
        return {
            "title": self.trace.title,
            "note": f"step {k + 1} of {len(steps)}{arrival}{self._format_line(line, ' · ')}",
            "text": step.text,
            "listing": self.algorithms.index(passed[-1]) if passed else None,
            "lit": [] if line is None else self._list_lit_lines(line),
            "nodes": [self._make_node(n, step, before) for n in range(self.trace.nodes)],
            "row_heads": [*map(_make_head, step.heads[0])],
            "column_heads": [*map(_make_head, step.heads[1])],
            "old": [[row + 1, column + 1] for row, column in step.before],
            "moves": [
                {"what": _make_chip(m.what), "source": m.source, "target": m.target}
                for m in step.moves
            ],
            "matches": [[str(t) for t in group] for group in step.results],
            "results": f"{results} result{'s' * (results != 1)} so far" * has_results,
            "table": compare_rows(step.table, step.table_before),
            "parts": [_make_chip(text, text in step.parts) for text in self.parts],
            "question": self._ask(steps[k + 1]) if k + 1 < len(steps) else None,
            "arrived": count_words(self.text, step.arrival),
        }

    def _format_line(self, line: Line | None, before: str = "") -> str:
        """Return lines of an algorithm as text: its name, and their numbers."""
        if line is None:
            return ""
        unit = self.trace.listings[self.algorithms.index(line.algorithm)].unit or "number"
        numbers = f"{unit} {line.first}"
        if line.last > line.first:
            numbers = f"{unit}s {line.first} to {line.last}"
        return f"{before}{line.algorithm}, {numbers}"

    def _list_lit_lines(self, line: Line) -> list[int]:
        lines = self.trace.listings[self.algorithms.index(line.algorithm)].lines
        return [k for k, (a, b, _) in enumerate(lines) if a <= line.last and line.first <= b]

    def _make_node(self, n: int, step: TraceStep, before: TraceStep | None) -> StepNode:
        row, column = step.places[n] if step.places else (0, n)
        moved = [m.what for m in step.moves if m.target == n]
        stored = []
        for s, held in enumerate(step.stored[n]):
            earlier = before.stored[n][s] if before else [t for t in held if t not in moved]
            plain = [text.removesuffix(" *") for text in earlier]
            stored.append([_make_chip(t, t.removesuffix(" *") not in plain, s) for t in held])
        return {
            "name": self.names[n],
            "is_active": n == step.node,
            "row": row + 1,
            "column": column + 1,
            "stored": stored,
            "queued": [_make_chip(text) for text in step.queued[n]] if step.queued else None,
        }

    def _ask(self, following: TraceStep) -> StepQuestion | None:
        """Return a question about the next step: where it happens, or which line is executed."""
        if following.node is not None and len(self.names) > 1:
            text = "Where does the next step happen?"
            options, right = list(self.names), self.names[following.node]
        elif following.line is not None:
            lines = [
                self._format_line(Line(listing.algorithm, first, last))
                for listing in self.trace.listings
                for first, last, _ in listing.lines
                if listing.algorithm == following.line.algorithm
            ]
            text, right = "What is executed next?", self._format_line(following.line)
            options = lines if right in lines else [right, *lines]
        else:
            return None
        at = options.index(right)
        start = max(0, min(at - at % CHOICES, len(options) - CHOICES))
        shown = options[start : start + CHOICES]
        answer = shown.index(right)
        return {"text": text, "options": shown, "answer": answer, "reply": following.text}


def _name_numbers(listing: Listing) -> str:
    """Return whose words and numbers a listing has."""
    return f"our words, the paper's {listing.unit}s" if listing.unit else "our words and numbers"


def compare_rows(rows: Sequence[Row], before: Sequence[Row]) -> list[list[list[str]]]:
    """Return the cells of a table after a step: text, the text that it replaces, and its change.

    Rows that are gone without a successor come last. Without rows from before nothing is compared.
    """
    gone = [row for row in before[1:] if row not in rows]
    compared = []
    for k, row in enumerate(rows):
        if k == 0 or not before or row in before:
            compared.append([[text, "", ""] for text in row])
            continue
        old = next((other for other in gone if other[0] == row[0]), ())
        gone = [other for other in gone if other is not old]
        cells = zip_longest(row, old[: len(row)], fillvalue="")
        compared.append([[a, "", ""] if a == b else [a, b, "new"] for a, b in cells])
    return compared + [[[text, "", "gone"] for text in row] for row in gone]


def count_words(text: str, arrival: str) -> int:
    """Return the number of words of typed rows up to an arrival; 0: it is none of them.

    >>> count_words("a b:2 - a", "a2")
    4
    """
    for k, word in enumerate(words := text.split(), 1):
        letter = word[0]
        if arrival == f"{letter}{sum(w[0] == letter for w in words[:k])}":
            return k
    return 0


def _make_chip(text: str, fresh: bool = False, stream: int | None = None) -> StepChip:
    """Return a row in the color of its stream; intermediate results and END marks have none."""
    chip: StepChip = {"text": text}
    if stream is None and text[0] in NAMES and read_natural(text[1:2]) is not None:
        stream = NAMES.index(text[0])
    if stream is not None:
        chip["stream"] = stream
    if fresh:
        chip["is_new"] = True
    if outline := OUTLINES.get(text[1:].lstrip("0123456789 ")):
        chip["outline"] = outline
    return chip


def _make_head(text: str) -> StepChip:
    """Return a heading, in the color of the stream that it ends with."""
    word = text.rpartition(" ")[2]
    return {"text": text, "stream": NAMES.index(word)} if word in [*NAMES] else {"text": text}


class Stepper(anywidget.AnyWidget):
    """The steps of an algorithm, with Back, Forward, Play and a slider; arrow keys step too.

    - ``frames``, ``position``: the steps, and the index of the visible one; it opens on the first.
    - ``algorithm``: what all steps share.
    - ``fork``: the texts that the user typed, and the step that they are typed at.
    - ``refusal``: why texts are not accepted; "": they are.

    The root element has the attribute ``data-seq`` with the position once it is drawn. Raises
    ValueError for an example without steps.
    """

    _esm = read_bundle("steps")
    _css = read_styles("stage.css", "film.css", "palette.css", "stepper.css")
    frames: traitlets.List[StepFrame] = traitlets.List().tag(sync=True)
    position = traitlets.Int(0).tag(sync=True)
    algorithm = traitlets.Dict().tag(sync=True)
    fork = traitlets.Dict().tag(sync=True)
    refusal = traitlets.Unicode("").tag(sync=True)

    def __init__(self, example: StepExample) -> None:
        super().__init__()
        self.example = example
        self._show_trace(example.trace(), example.texts)
        self.observe(self._fork, "fork")

    def _show_trace(self, trace: Trace, texts: Sequence[str], position: int = 0) -> None:
        """Show the steps of other texts, from a step on."""
        frames = self._make_frames(trace, texts)
        if not frames:
            raise ValueError("there is nothing to show: the example has no steps")
        with self.hold_sync():
            self.set_trait("algorithm", self._describe(trace, texts))
            self.set_trait("frames", frames)
            self.position = min(position, len(frames) - 1)

    def _make_frames(self, trace: Trace, texts: Sequence[str]) -> list[StepFrame]:
        return step_frames(trace, self.example.letter, texts[0] if texts else "")

    def _describe(self, trace: Trace, texts: Sequence[str]) -> StepAlgorithm:
        return {
            "listings": [
                {
                    "title": f"{listing.algorithm}: {listing.task} ({_name_numbers(listing)})",
                    "numbers": [f"{a}" if a == b else f"{a}–{b}" for a, b, _ in listing.lines],
                    "lines": [text for *_, text in listing.lines],
                }
                for listing in trace.listings
            ],
            "labels": list(self.example.labels),
            "texts": list(texts),
            "variants": {},
        }

    def _fork(self, change: Mapping[str, Any]) -> None:
        """Run again on the texts of the user."""
        self.refusal = ""
        texts = [str(text).strip() for text in change["new"]["texts"]]
        texts = [text or example for text, example in zip(texts, self.example.texts, strict=True)]
        try:
            trace = self.example.run(*texts)
        except ValueError as error:
            self.refusal = str(error)
        else:
            self._show_trace(trace, texts, int(change["new"]["position"]))

    def to_html(self) -> str:
        """Return the steps, also of recorded variants, as HTML that needs neither a kernel nor a
        network; without JavaScript they are in words.
        """
        variants = {
            name: self._make_frames(self.example.run(*texts), texts)
            for name, texts in self.example.variants.items()
        }
        items = "".join(f"<li>{escape(step['text'])}</li>" for step in self.frames)
        plain = f"<p><b>{escape(self.frames[0]['title'])}</b></p><ol>{items}</ol>"
        algorithm = {**self.algorithm, "variants": variants}
        data = {"frames": self.frames, "position": self.position, "algorithm": algorithm}
        page = embed_data("steps", self._css, data, "", "steps")
        return f"{page}<noscript>{plain}</noscript>"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Return HTML, which a saved notebook shows without its kernel; panels hold the widget."""
        return {"text/html": self.to_html(), "text/plain": f"Stepper({len(self.frames)} steps)"}, {}


def show_steps(example: StepExample) -> None:
    """Display the steps of an algorithm, which can be forked if there is a kernel."""
    stepper = Stepper(example)
    if is_headless():
        display_view(stepper)
        return
    box = W.VBox([stepper])
    box.add_class("braid-live")
    StaticFallback(box, stepper.to_html)
