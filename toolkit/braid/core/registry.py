"""Classes by name, of placements and of events."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class ClassRegistry(Generic[T]):
    """Classes by name; each is registered on definition.

    ``noun``: word for such a class in errors.
    """

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
