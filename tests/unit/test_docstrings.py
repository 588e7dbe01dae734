"""Everything public has a docstring: its own, or that of the definition it overrides."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import braid
import braid_widgets
import pytest

MODULES = [
    info.name
    for package in (braid, braid_widgets)
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


def public(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Return functions and classes that a module defines, with their methods and properties."""
    for name, item in vars(module).items():
        if name.startswith("_") or getattr(item, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(item):
            yield name, item
            for member, method in vars(item).items():
                kept = inspect.isroutine(method) or isinstance(method, property)
                if kept and not member.startswith("_"):
                    yield f"{name}.{member}", getattr(item, member)
        elif inspect.isroutine(item):
            yield name, item


def is_described(name: str, item: object) -> bool:
    """Return whether there is a docstring other than a dataclass's generated signature."""
    text = inspect.getdoc(item)
    return bool(text) and not text.startswith(f"{name}(")


@pytest.mark.parametrize("name", MODULES)
def test_everything_public_has_a_docstring(name: str) -> None:
    module = import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    assert [n for n, item in public(module) if not is_described(n, item)] == []
