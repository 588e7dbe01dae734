"""Maps: pictures of what lives where in a run. Each kind of run has one, found by its events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any, ClassVar

from braid.core.events import RunStarted

from braid_widgets.base.run_view import RunView

_maps: dict[str, type[StateMap]] = {}


class StateMap(ABC):
    """What is to be seen of one kind of run. A subclass is known from when it is defined.

    ``scene`` is the fold of the run so far, which is up to date when ``frame`` is asked for.
    """

    name: ClassVar[str]
    """What draws its frames in the browser: a key of ``MAPS`` in widgets/js/src/cockpit/maps.ts."""
    rank: ClassVar[int] = 2
    """Of several maps that suit a run, the one of highest rank is shown; 1 and 0 suit many."""

    def __init__(self, scene: RunView) -> None:
        self.scene = scene

    def __init_subclass__(cls) -> None:
        _maps[cls.name] = cls

    @classmethod
    @abstractmethod
    def can_show(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        """Whether it shows a run that started so and has had these kinds of events."""

    def apply_event(self, event: Any) -> None:  # noqa: B027 (many maps need no more than the scene)
        """Take in an event that the scene does not keep."""

    @abstractmethod
    def make_frame(self) -> Mapping[str, Any]:
        """The picture after the last commit."""


def registered_maps() -> dict[str, type[StateMap]]:
    """All maps by name: those in ``map.py`` of every folder, and those that were defined since."""
    package = import_module("braid_widgets")
    for folder in iter_modules(package.__path__, "braid_widgets."):
        if find_spec(f"{folder.name}.map"):
            import_module(f"{folder.name}.map")
    return dict(_maps)


def choose_map(start: RunStarted, kinds: Collection[type]) -> type[StateMap]:
    """The map of a run. Raises ValueError when none suits it."""
    suit = [kind for kind in registered_maps().values() if kind.can_show(start, kinds)]
    if not suit:
        raise ValueError(
            f"no map shows a run of {start.placement} with {len(start.streams)} streams; there "
            f"are: {', '.join(_maps)}"
        )
    return max(suit, key=lambda kind: kind.rank)
