"""A recorded run that can be sought: the scene after any of its batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from braid.core.events import BatchCommitted, read

from braid_widgets.base.fold import Scene, fold

EVERY = 16
"""Batches between two snapshots of the scene."""


class Recording:
    """The events of a run, seekable by committed batch; position 0 is the first batch,
    len(recording) - 1 the last.

    A position shows all events up to its commit; the last one shows the end of the run too. A scene
    is kept for every sixteenth batch, so a seek folds at most that many batches.
    """

    def __init__(self, events: Iterable[Any] | str | Path) -> None:
        self.events = read(events) if isinstance(events, (str, Path)) else list(events)
        ends = [k + 1 for k, e in enumerate(self.events) if isinstance(e, BatchCommitted)]
        self._ends = [*ends[:-1], len(self.events)] if ends else [len(self.events)]
        self._kept: dict[int, Scene] = {-1: Scene()}

    def __len__(self) -> int:
        return len(self._ends)

    def at(self, position: int) -> Scene:
        """The scene at a position; it is the caller's own. Raises IndexError for a position that is
        not there.
        """
        if not 0 <= position < len(self):
            raise IndexError(f"position {position} of a recording with {len(self)} batches")
        near = max(k for k in self._kept if k <= position)
        scene = self._kept[near].copy()
        deque(self._from(near, position, scene), 0)
        return scene

    def __iter__(self) -> Iterator[Scene]:
        """The scenes in order; each is valid until the next is asked for."""
        yield from self._from(-1, len(self) - 1, Scene())

    def _from(self, position: int, last: int, scene: Scene) -> Iterator[Scene]:
        for k in range(position + 1, last + 1):
            fold(self.events[self._ends[k - 1] if k else 0 : self._ends[k]], scene)
            if k % EVERY == 0 and k not in self._kept:
                self._kept[k] = scene.copy()
            yield scene
