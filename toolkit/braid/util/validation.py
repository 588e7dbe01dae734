"""What people may give: a function for each kind of argument returns it as it is used, or raises
ValueError with one sentence that says what was found and what is accepted.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import fields
from datetime import timedelta
from functools import cache, wraps
from inspect import get_annotations, signature, unwrap
from math import inf, isfinite
from pathlib import Path
from typing import Any, NoReturn, get_type_hints

import msgspec

_PLAIN = (str, bytes, bool, int, float, type(None), timedelta, Path)
LONG = 80
"""Letters of a value that a sentence shows."""
_DIGITS = 10**30
"""An int from here on is not written out."""
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "True or False",
    "None": "None",
}
"""Types that need no Python to be understood."""


class RefusedColumnError(ValueError):
    """A column that cannot be what a stream needs: the ``problem`` with it, as "holds int and
    str", and the ``remedy``, as "give it one type".
    """

    def __init__(self, stream: str, column: str, problem: str, remedy: str) -> None:
        super().__init__(f"column {column} of stream {stream} {problem}; {remedy}")
        self.stream, self.column = stream, column


def refuse_nanoseconds(stream: str, column: str) -> NoReturn:
    """Raise RefusedColumn for times that Spark SQL cannot tell apart."""
    problem = "has nanoseconds, which Spark SQL does not know"
    raise RefusedColumnError(stream, column, problem, f"use {column}.dt.floor('us')")


def format_value(value: object, most: int = LONG) -> str:
    """A value for a sentence: as it is typed where it is plain, cut to ``most`` letters, else what
    it is.

    >>> shown("5 s"), shown([1, 2]), shown(int), shown({}), shown("x" * 99)[-4:]
    ("'5 s'", '[1, 2]', 'the class int', 'a dict', 'xxx…')
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, int) and abs(value) >= _DIGITS:
        return "a number of more than 30 digits"
    several = value if isinstance(value, list | tuple) and len(value) <= most else [object()]
    if isinstance(value, _PLAIN) or all(isinstance(v, _PLAIN) for v in several):
        text = repr(value)
        return text if len(text) <= most else text[: most - 1] + "…"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def check_int(value: Any, what: str, least: int, most: float = inf, or_else: str = "") -> int:
    """A whole number from ``least`` to ``most``; ``or_else`` is what else is accepted.

    >>> whole(3, "hosts", 1)
    3
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        upto = f" and at most {most:,}" if number is not None and number > most else ""
        raise ValueError(
            f"{what} is {format_value(value)}; it must be a whole number, {least} or "
            f"more{upto}{or_else}"
        )
    return number


def read_natural(text: str, most: int = (1 << 63) - 1) -> int | None:
    """Return the natural number that a text writes in the digits 0 to 9 and nothing else; None for
    any other text, and for a number above ``most``. Python's own tests and ``int`` also take digits
    of other scripts, superscripts and underscores.

    >>> read_natural("007")
    7
    >>> any(map(read_natural, ("²", "٣", "-1", "1_0", "")))
    False
    >>> read_natural("33", most=32) is read_natural("9" * 9999) is None
    True
    """
    digits = text.lstrip("0") if len(text) > 1 else text
    if not text or len(digits) > len(str(most)) or not set(text) <= set("0123456789"):
        return None
    number = int(digits or "0")
    return number if number <= most else None


def check_seconds(value: Any, what: str, most: float) -> float:
    """A number of seconds from 0 to ``most``."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not isfinite(value) or not 0 <= value <= most:
        raise ValueError(
            f"{what} is {format_value(value)}; it must be a number of seconds, 0 or more and at "
            "most "
            f"{most:,}"
        )
    return float(value)


def check_bool(value: Any, what: str) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{what} is {format_value(value)}; it must be True or False")
    return value


def check_choice(value: Any, what: str, options: Collection[str], or_else: str = "") -> str:
    """One of some words."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(
            f"{what} is {format_value(value)}; it must be one of {', '.join(options)}{or_else}"
        )
    return value


def check_folder(value: Any, what: str = "the run's folder") -> Path:
    """The path of a folder that is there, or could be made; "~" is the user's own."""
    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes):
        raise ValueError(f"{what} is {format_value(value)}; it must be a path, as text or a Path")
    text = os.fspath(value)
    if not text.strip() or "\0" in text:
        raise ValueError(f"{what} is {format_value(text)}; it must be a path that names a folder")
    path = Path(text).expanduser() if text.split("/")[0] == "~" else Path(text)
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass  # it is made
    except OSError as error:
        raise ValueError(
            f"{what} is {format_value(text)}, which the file system refuses: {error.strerror}"
        ) from None
    whole = path.absolute()
    there = next(p for p in (whole, *whole.parents) if os.path.lexists(p))
    if not there.is_dir():
        raise ValueError(
            f"{what} is {format_value(text)}, but {there} is no folder; give a new folder, or "
            "one of a run"
        )
    return path


def check_types(value: Any) -> None:
    """Raises ValueError for the first field of a dataclass that holds what is not of its type."""
    check_settings(type(value), {f.name: getattr(value, f.name) for f in fields(value) if f.init})


def check_settings(of: Any, settings: Mapping[str, Any]) -> None:
    """Raises ValueError for the first setting that is not of the type which a class or a function
    has for it.
    """
    for name, (kind, written) in _annotated_types(of).items():
        try:
            if name in settings:
                msgspec.convert(settings[name], kind, str_keys=True)
        except msgspec.ValidationError:
            plain = [_KINDS.get(part, "") for part in written.split(" | ")]
            words = " or ".join(plain) if all(plain) else f"of type {written}"
            raise ValueError(
                f"{name} is {format_value(settings[name])}; it must be {words}"
            ) from None


def checks_field_types(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """A ``__post_init__`` that also checks the types of all fields; what it says itself says more,
    so it comes first.
    """
    if hasattr(check, "__wrapped__"):
        return check

    @wraps(check)
    def checked(self: Any) -> None:
        try:
            check(self)
        except TypeError:
            check_types(self)
            raise
        check_types(self)

    return checked


@cache
def _annotated_types(of: Any) -> dict[str, tuple[Any, str]]:
    """By name, the type and how that is written; types that are not known here say nothing."""
    hints = _resolve_type_hints(of)
    written = {name: p.annotation for name, p in signature(of).parameters.items()}
    return {name: (hints[name], str(text)) for name, text in written.items() if name in hints}


def _resolve_type_hints(of: Any) -> dict[str, Any]:
    """The types by name, inherited ones too; one that is imported for type checkers alone is left
    out.
    """
    try:
        return get_type_hints(of)
    except NameError:
        pass
    hints: dict[str, Any] = {}
    for part in reversed(of.__mro__) if isinstance(of, type) else [unwrap(of)]:
        known = getattr(part, "__globals__", None) or vars(sys.modules[part.__module__])
        for name, text in get_annotations(part).items():
            hints.pop(name, None)  # what it was in a base
            with suppress(NameError):
                hints |= get_type_hints(type("One", (), {"__annotations__": {name: text}}), known)
    return hints
