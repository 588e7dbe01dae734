"""Deprecate public functions: each warns for one minor version, and then goes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_GOES_IN: dict[str, str] = {}
"""By deprecated name, the version in which it goes."""


def mark_deprecated(
    since: str, gone: str, instead: str
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of a function that warns at each call.

    Parameters
    ----------
    since
        The version that deprecates it, such as "0.2.0".
    gone
        The version in which it goes, at least a minor version later.
    instead
        What replaces it.

    Raises ValueError if it would go too early, or for a text that is no version.
    """
    if _read_minor(gone) <= _read_minor(since):
        raise ValueError(
            f"gone is {gone!r}; it must be at least a minor version after {since}, the value of "
            "since"
        )

    def add_warning(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__qualname__
        _GOES_IN[name] = gone

        @wraps(function)
        def warn_and_call(*arguments: P.args, **named: P.kwargs) -> R:
            warnings.warn(
                f"{name} is deprecated since Braid {since} and goes in {gone}; use {instead}",
                DeprecationWarning,
                stacklevel=2,
            )
            return function(*arguments, **named)

        return warn_and_call

    return add_warning


def list_overdue_names(version: str) -> list[str]:
    """Return the deprecated names that should be gone in a version."""
    return [name for name, gone in _GOES_IN.items() if _read_minor(gone) <= _read_minor(version)]


def _read_minor(version: str) -> tuple[int, int]:
    """Return the major and the minor number of a version, of a prerelease too.

    >>> _read_minor("0.2.0"), _read_minor("0.2rc1")
    ((0, 2), (0, 2))
    """
    if (match := re.match(r"(\d+)\.(\d+)", version)) is None:
        raise ValueError(
            f"the version is {version!r}; it must begin with two numbers, such as '0.2.0'"
        )
    return int(match[1]), int(match[2])
