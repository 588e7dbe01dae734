"""Registries of placements and events by name.

A class registers itself on definition. The provider imports a class that is not defined yet; this
module knows no class by name.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import ModuleType
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class Provider(Protocol):
    """A source of placements, events and views that are imported on first use."""

    def placement_names(self) -> Collection[str]:
        """Return the names of its placements. Imports none of them."""

    def load_placement(self, name: str) -> type | None:
        """Import a placement; return None if the name is unknown.

        Raises PluginError, which gives the reason, if it cannot be imported.
        """

    def load_events(self) -> Sequence[str]:
        """Import the modules that define events; return why others cannot be imported."""

    def load_view(self, module: str) -> ModuleType:
        """Import a module of the cockpit."""


class ClassRegistry(Generic[T]):
    """Classes by name. ``noun``: word for such a class in errors."""

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self.classes: dict[str, type[T]] = {}

    def register_class(self, kind: type[T]) -> None:
        """Register a class under its name.

        A class defined again in the same place replaces the first: in a notebook, or by
        ``dataclass(slots=True)``, which creates a class twice.

        Raises TypeError if a class of this name is defined elsewhere.
        """
        other = self.classes.get(kind.__name__, kind)
        if (other.__module__, other.__qualname__) != (kind.__module__, kind.__qualname__):
            raise TypeError(
                f"{self.noun} {kind.__name__} is defined in {other.__module__} and again in "
                f"{kind.__module__}; the name must be new"
            )
        self.classes[kind.__name__] = kind


_provider: Provider


def set_provider(provider: Provider) -> None:
    """Set the provider. ``import braid`` sets ``braid.plugins.Plugins``."""
    global _provider
    _provider = provider


def current_provider() -> Provider:
    """Return the provider."""
    return _provider
