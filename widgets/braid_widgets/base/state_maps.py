"""State maps: pictures of the state of each host. Each kind of run has one, chosen by its
events.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, ClassVar

from braid.core.run_events import RunStarted

from braid_widgets.base.key_figures import KeyFigure
from braid_widgets.base.run_view import RunView
from braid_widgets.base.track_records import Track

_maps: dict[str, type[StateMap]] = {}


class StateMap(ABC):
    """The state map of one kind of run. Defining a subclass registers it.

    ``scene`` is the view state of the run; it is up to date when ``make_frame`` is called.
    """

    name: ClassVar[str]
    """The JavaScript that draws its frames: a key of ``MAPS`` in widgets/js/src/cockpit/maps.ts."""
    rank: ClassVar[int] = 2
    """Priority among maps that can show a run; the highest wins. Generic maps have 1 and 0."""

    def __init__(self, scene: RunView) -> None:
        self.scene = scene

    def __init_subclass__(cls) -> None:
        _maps[cls.name] = cls

    @classmethod
    @abstractmethod
    def can_show(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        """Return whether the map can show a run with this start event and these kinds of events."""

    def apply_event(self, event: Any) -> None:  # noqa: B027 (many maps need no more than the scene)
        """Fold in an event that the view state does not keep."""

    @abstractmethod
    def make_frame(self) -> Mapping[str, Any]:
        """Return the frame after the last commit."""

    def make_key_figure(self) -> KeyFigure | None:
        """Return the figure that says most about such a run, or None for the fullest host."""
        return None

    def make_tracks(self) -> list[Track]:
        """Return tracks of the time line that the map adds."""
        return []


def make_copies_figure(scene: RunView) -> KeyFigure | None:
    """Return the copies that were sent for one row of the last batch; None without rows."""
    received = sum(scene.last.received_tuples) if scene.last else 0
    if scene.last is None or not received:
        return None
    sent = scene.last.total_host_metrics.received_tuples
    return KeyFigure("copies a row", f"{sent / received:.2f}", "rows sent to hosts / rows in")


def registered_maps() -> dict[str, type[StateMap]]:
    """Return all maps by name: those of this package, and those defined since."""
    package = import_module("braid_widgets")
    for module in walk_packages(package.__path__, "braid_widgets."):
        if module.name.endswith("_map"):
            import_module(module.name)
    return dict(_maps)


def choose_map(start: RunStarted, kinds: Collection[type]) -> type[StateMap]:
    """Return the map of a run. Raises ValueError if no map can show it."""
    suit = [kind for kind in registered_maps().values() if kind.can_show(start, kinds)]
    if not suit:
        raise ValueError(
            f"no map shows a run of {start.placement} with {len(start.streams)} streams; there "
            f"are: {', '.join(_maps)}"
        )
    return max(suit, key=lambda kind: kind.rank)
