"""Timing of a driver's faults: anywhere, or at a step with the most harm."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

Step = tuple[str, str]
"""An operation, and its path or URL."""

_PATIENCE = 400
"""Number of steps after which a fault no longer waits for its moment."""


@dataclass(frozen=True)
class Moment:
    """Steps at which a driver relies on its last action or observation.

    It is an operation on paths with a suffix that matches a pattern; with ``is_after`` the
    operation is done, and the next one follows.
    """

    operation: str
    end: re.Pattern[str]
    is_after: bool = False

    def is_at(self, before: Step, now: Step) -> bool:
        """Return whether a step, or the previous one of the same driver, is such a moment."""
        operation, path = before if self.is_after else now
        return operation == self.operation and self.end.search(path) is not None


_ENTRY = re.compile(r"/commits/\d+\.json$")
COMMITTED = (Moment("link", _ENTRY, True), Moment("answer", _ENTRY, True))
"""An entry of the log has been published, in a folder or a bucket."""
_LISTS_BLOCKS = Moment("names", re.compile(r"/blocks$"))
_LISTS_LOG = Moment("names", re.compile(r"/_spark_metadata$"))
_FOLDER = (
    COMMITTED[0],
    _LISTS_BLOCKS,
    _LISTS_LOG,
    Moment("unlink", re.compile(r"/(blocks|new|results|_spark_metadata)/[^/]+$")),
    Moment("unlink", re.compile(r"/commits/[^./][^/]+$")),
    Moment("replace", re.compile(r"/_spark_metadata/[^/]+$")),
    Moment("replace", re.compile(r"/checkpoint-\d+\.json$"), True),
    Moment("replace", re.compile(r"/sink-progress\.json$")),
)
_BUCKET = (
    COMMITTED[1],
    _LISTS_BLOCKS,
    Moment("answer", _ENTRY),
    Moment("answer", re.compile(r"/run\.json$")),
    Moment("delete", re.compile(r"/[^/]+$")),
    Moment("names", re.compile(r"://")),
)
_LISTS = (
    COMMITTED[0],
    _LISTS_BLOCKS,
    _LISTS_BLOCKS,
    _LISTS_LOG,
    Moment("replace", re.compile(r"/_spark_metadata/[^/]+$"), True),
    Moment("names", re.compile("")),
)
"""A driver that lists files in a folder is about to remove some, and another driver may have
started.
"""


class Fate:
    """Draws faults and their times.

    At most ``most`` of some ``faults`` happen, about ``spacing`` steps apart, each at once or at
    the next step of a certain kind.
    """

    def __init__(
        self, draw: random.Random, faults: Sequence[str], most: int, spacing: int, place: str
    ) -> None:
        self._draw, self._faults, self._most, self._spacing = draw, faults, most, spacing
        self._moments = _FOLDER if place == "folder" else _BUCKET
        self._left = self._drawn_steps()
        self._fault, self._passed = "", 0
        self._moment: Moment | None = None

    def _drawn_steps(self) -> int:
        return self._draw.randint(1, 2 * self._spacing)

    def draw_fault(self, before: Step, now: Step) -> str:
        """Return the fault at a step of a driver, given its previous step; "": none."""
        self._left -= 1
        if self._left > 0 or not self._most:
            return ""
        if not self._fault:
            self._fault = self._draw.choice(self._faults)
            self._draw_moment()
        if self._left > -_PATIENCE and self._moment is not None:
            self._passed -= self._moment.is_at(before, now)
            if self._passed >= 0:
                return ""
        fault, self._fault = self._fault, ""
        self._most, self._left = self._most - 1, self._drawn_steps()
        return fault

    def _draw_moment(self) -> None:
        """Draw the moment of the fault: at once, or one of the next such moments."""
        is_zombie = self._fault == "zombie"
        moments = _LISTS if is_zombie and self._moments is _FOLDER else self._moments
        at_once = self._draw.random() < (0.2 if is_zombie else 0.5)
        self._moment = None if at_once else self._draw.choice(moments)
        self._passed = self._draw.randint(0, 2)
