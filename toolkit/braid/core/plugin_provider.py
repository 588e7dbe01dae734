"""The provider of placements, events and views that are imported on first use."""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False  # `typing` takes half the time of `import braid`, which imports this module
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from types import ModuleType


class Provider(ABC):
    """A source of placements, events and views. ``braid.core`` knows none of them by name."""

    @abstractmethod
    def placement_names(self) -> Collection[str]:
        """Return the names of its placements. Imports none of them."""

    @abstractmethod
    def load_placement(self, name: str) -> type | None:
        """Import a placement; return None if the name is unknown.

        Raises PluginError, which gives the reason, if it cannot be imported.
        """

    @abstractmethod
    def load_events(self) -> Sequence[str]:
        """Import the modules that define events; return why others cannot be imported."""

    @abstractmethod
    def load_view(self, module: str) -> ModuleType:
        """Import a module of the cockpit."""


_provider: Provider


def set_provider(provider: Provider) -> None:
    """Set the provider. ``import braid`` sets ``braid.plugins.Plugins``."""
    global _provider
    _provider = provider


def current_provider() -> Provider:
    """Return the provider."""
    return _provider
