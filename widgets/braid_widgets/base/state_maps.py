"""State maps: pictures of the state of each host. Each kind of run has one, chosen by its
events.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from braid.core.run_events import BatchCommitted, RunStarted

from braid_widgets.base.key_figures import KeyFigure
from braid_widgets.base.run_view import RunView
from braid_widgets.base.track_records import Track


class StateMap(ABC):
    """The state map of one kind of run.

    ``scene`` is the view state of the run; it is up to date when ``make_frame`` is called.
    """

    name: ClassVar[str]
    """The JavaScript that draws its frames: a key of ``MAPS`` in widgets/js/src/cockpit/maps.ts."""
    rank: ClassVar[int] = 2
    """Priority among maps that can show a run; the highest wins. Generic maps have 1 and 0."""
    shown_kinds: ClassVar[tuple[type, ...]] = ()
    """Kinds of events; a run that has any of them can be shown."""

    is_copying: bool = False
    """Whether rows are sent to several hosts; the figure of the map is then the copies of a row."""

    def __init__(self, scene: RunView) -> None:
        self.scene = scene

    @classmethod
    def can_show(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        """Return whether the map can show a run with this start event and these kinds of events."""
        return any(kind in kinds for kind in cls.shown_kinds)

    @property
    def last(self) -> BatchCommitted:
        """The commit of the batch that a frame shows."""
        assert self.scene.last is not None
        return self.scene.last

    def list_by_host(self, count: str) -> list[int]:
        """Return a field of the metrics of the last batch, by host."""
        return [getattr(metrics, count) for metrics in self.last.host_metrics]

    def apply_event(self, event: Any) -> None:  # noqa: B027 (many maps need no more than the scene)
        """Fold in an event that the view state does not keep."""

    @abstractmethod
    def make_frame(self) -> Mapping[str, Any]:
        """Return the frame after the last commit."""

    def make_key_figure(self) -> KeyFigure | None:
        """Return the figure that says most about such a run, or None for the fullest host."""
        received = sum(self.last.received_tuples)
        if not self.is_copying or not received:
            return None
        sent = self.last.total_host_metrics.received_tuples
        return KeyFigure("copies a row", f"{sent / received:.2f}", "rows sent to hosts / rows in")

    def make_tracks(self) -> list[Track]:
        """Return tracks of the time line that the map adds."""
        return []


def choose_map(start: RunStarted, kinds: Collection[type]) -> type[StateMap]:
    """Return the map of a run; that of blocks shows any."""
    suitable = [kind for kind in StateMap.__subclasses__() if kind.can_show(start, kinds)]
    return max(suitable, key=lambda kind: kind.rank)
