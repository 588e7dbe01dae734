"""Every exception that Braid defines is a ``BraidError`` and keeps its built-in base."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module

import braid
import braid_lab
import braid_widgets
import pytest
from braid import errors

PACKAGES = (braid, braid_lab, braid_widgets)


def _import_all() -> None:
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)


def _subclasses(kind: type) -> Iterator[type]:
    for sub in type.__subclasses__(kind):
        yield sub
        yield from _subclasses(sub)


def _list_own_errors() -> set[type]:
    return {
        kind
        for kind in _subclasses(BaseException)
        if kind.__module__.partition(".")[0] in {p.__name__ for p in PACKAGES}
    }


def test_every_exception_is_a_braid_error() -> None:
    _import_all()
    assert len(_list_own_errors()) > 15
    assert not {
        kind for kind in _list_own_errors() if not issubclass(kind, (errors.BraidError, Warning))
    }


def test_the_exceptions_of_braid_are_defined_in_one_module() -> None:
    _import_all()
    places = {k.__module__ for k in _list_own_errors() if k.__module__.startswith("braid.")}
    assert places == {"braid.errors"}


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("DamagedRunError", ValueError),
        ("FencedError", RuntimeError),
        ("PredicateError", ValueError),
        ("QueryError", ValueError),
        ("PlanningError", ValueError),
        ("CoverageError", AssertionError),
        ("RefusedColumnError", ValueError),
        ("NotSparkError", ValueError),
        ("UnsupportedExpressionError", ValueError),
        ("EvaluationFailure", ArithmeticError),
    ],
)
def test_an_exception_keeps_its_builtin_base(name: str, base: type[Exception]) -> None:
    assert issubclass(getattr(errors, name), base)


@pytest.mark.parametrize(
    "name", ["BraidError", "DamagedRunError", "FencedError", "PredicateError", "QueryError"]
)
def test_the_front_door_has_the_exceptions_that_users_catch(name: str) -> None:
    assert name in braid.__all__ and getattr(braid, name) is getattr(errors, name)
