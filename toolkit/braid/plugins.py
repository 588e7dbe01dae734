"""Built-in and installed placements, events, views and commands, imported on first use.

An installed package adds its own by entry points:

- ``braid.placements``: the class name, and ``module:Class``.
- ``braid.events``: any name, and a module that defines events.
- ``braid.commands``: any name, and ``module:function``; the function takes argparse's subparsers.

If one of them cannot be imported, the logger ``braid.plugins`` has a warning. Its name is refused
with the reason, and everything else works.
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module

from braid.core.plugin_provider import Provider

TYPE_CHECKING = False  # see braid.core.plugin_provider
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from importlib.metadata import EntryPoint
    from types import ModuleType
    from typing import Any

    from braid.errors import PluginError

PLACEMENTS = {
    "AdaptiveGrid": "braid.papers.theta.grid",
    "StaticGrid": "braid.papers.theta.grid",
    "StaticOpt": "braid.papers.theta.grid",
    "Aligned": "braid.papers.diffusion.aligned",
    "Coordinated": "braid.papers.diffusion.coordinated",
    "SemanticsUnaware": "braid.papers.diffusion.semantics_unaware",
    "Ring": "braid.papers.psp.ring",
    "Chain": "braid.papers.slices.chain",
    "HotKeys": "braid.papers.hotkeys.hot_keys",
    "HyperCube": "braid.papers.hypercube.hypercube",
    "HashPartition": "braid.papers.baselines.hash_partition",
    "JoinBiclique": "braid.papers.baselines.join_biclique",
    "Centralized": "braid.papers.baselines.centralized",
}
"""The modules of the built-in placements, by class name."""
EVENT_MODULES = (
    "braid.core.clock_events",
    "braid.core.comparison_watch",
    "braid.core.answer_events",
    "braid.core.irregular_rows",
    "braid.core.trace_rows",
    "braid.core.run_events",
    "braid.core.touch_events",
    "braid.papers.diffusion.run_events",
    "braid.papers.hotkeys.run_events",
    "braid.papers.hypercube.run_events",
    "braid.papers.psp.run_events",
    "braid.papers.reuse.hub_events",
    "braid.papers.shedding.run_events",
    "braid.papers.slices.run_events",
    "braid.papers.theta.run_events",
)
"""The modules of the built-in events."""


class Plugins(Provider):
    """The provider of built-in and installed plugins."""

    def __init__(self) -> None:
        self._refused: dict[str, PluginError] = {}

    def placement_names(self) -> Collection[str]:
        """Return the names of the built-in and installed placements. Imports none of them."""
        return {*PLACEMENTS, *self._installed_placements}

    def load_placement(self, name: str) -> type | None:
        """Import a placement; return None if the name is unknown.

        Raises PluginError, which gives the reason, if an installed one cannot be imported.
        """
        if name in PLACEMENTS:
            return _load_class(PLACEMENTS[name], name)
        if not (entries := self._installed_placements.get(name)):
            return None
        if name not in self._refused:
            try:
                return _load_installed_placement(entries)
            except Exception as error:  # an installed package may raise any
                self._refused[name] = _log_refusal(entries[0], error)
        raise self._refused[name]

    def load_events(self) -> Sequence[str]:
        """Import the modules that define events; return why installed ones cannot be imported."""
        for module in EVENT_MODULES:
            import_module(module)
        return self._installed_events[1]

    def load_view(self, module: str) -> ModuleType:
        """Import a module of the cockpit."""
        return import_module(f"braid_widgets.cockpit.{module}")

    @cached_property
    def _installed_placements(self) -> dict[str, list[EntryPoint]]:
        """Entry points of placements by name; several for a name that is defined in two places."""
        entries: dict[str, list[EntryPoint]] = {}
        for entry in _installed_entries("braid.placements"):
            entries.setdefault(entry.name, []).append(entry)
        return entries

    @cached_property
    def _installed_events(self) -> tuple[list[Any], list[str]]:
        return _load_group("braid.events")


def load_commands() -> list[Callable[[Any], None]]:
    """Return the functions that add commands to argparse's subparsers."""
    return _load_group("braid.commands")[0]


def _load_class(module: str, name: str) -> type:
    kind: type = getattr(import_module(module), name)
    return kind


def _load_installed_placement(entries: Sequence[EntryPoint]) -> type:
    """Return the placement of the only entry point. Raises TypeError if there are several."""
    from braid.core.placement import Placement

    name = entries[0].name
    if len(entries) > 1:
        places = " and again in ".join(entry.value for entry in entries)
        raise TypeError(f"it is defined in {places}; the name must be new")
    kind = entries[0].load()
    if not (isinstance(kind, type) and issubclass(kind, Placement) and kind.__name__ == name):
        raise TypeError(f"it is not a placement named {name}")
    return kind


def _load_group(group: str) -> tuple[list[Any], list[str]]:
    """Return all that entry points of a group name, and why others cannot be imported."""
    loaded, reasons = [], []
    for entry in _installed_entries(group):
        try:
            loaded.append(entry.load())
        except Exception as error:  # an installed package may raise any
            reasons.append(str(_log_refusal(entry, error)))
    return loaded, reasons


# These functions import late: reading the metadata of installed packages takes 25 ms or more
# (November 2026), which `import braid` and a built-in placement do not need.


def _installed_entries(group: str) -> Sequence[EntryPoint]:
    from importlib.metadata import entry_points

    return sorted(entry_points(group=group))


def _log_refusal(entry: EntryPoint, error: Exception) -> PluginError:
    """Log a warning, and return the error that refuses an entry point."""
    from logging import getLogger

    from braid.errors import PluginError
    from braid.util.error_summary import summarize_error

    refusal = PluginError(
        f"{entry.name} of {entry.group} ({entry.value}) cannot be used: {summarize_error(error)}"
    )
    getLogger(__name__).warning("%s", refusal)
    refusal.__cause__ = error
    return refusal
