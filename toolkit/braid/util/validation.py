"""Validate arguments: each function returns the value in its final form.

They raise ValueError with one sentence that names what was found and what is accepted.
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

from braid.errors import RefusedColumnError

_PLAIN = (str, bytes, bool, int, float, type(None), timedelta, Path)
LONG = 80
"""Maximum characters of a value in a message."""
_DIGITS = 10**30
"""Integers from here on are not written out."""
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "True or False",
    "None": "None",
}
"""Words for types that a reader without Python understands."""


def refuse_nanoseconds(stream: str, column: str) -> NoReturn:
    """Raise RefusedColumnError for nanosecond timestamps, which Spark SQL does not support."""
    problem = "has nanoseconds, which Spark SQL does not know"
    raise RefusedColumnError(stream, column, problem, f"use {column}.dt.floor('us')")


def format_value(value: object, most: int = LONG) -> str:
    """Return a value for a message: its literal, cut to ``most`` characters, or its type.

    >>> [format_value(v) for v in ("5 s", [1, 2], int, {})], format_value("x" * 99)[-4:]
    (["'5 s'", '[1, 2]', 'the class int', 'a dict'], 'xxx…')
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
    """Return an integer from ``least`` to ``most``.

    Raises ValueError; ``or_else`` names other accepted values.

    >>> check_int(3, "hosts", 1)
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
    """Return the natural number in a text of the digits 0 to 9.

    Return None for other texts, and for a number above ``most``.

    Python's own tests and ``int`` also accept digits of other scripts, superscripts and
    underscores.

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
    """Return a number of seconds from 0 to ``most``. Raises ValueError."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isfinite(value) or not 0 <= value <= most:
        raise ValueError(
            f"{what} is {format_value(value)}; it must be a number of seconds, 0 or more and at "
            f"most {most:,}"
        )
    return float(value)


def check_bool(value: Any, what: str) -> None:
    """Raise ValueError unless a value is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{what} is {format_value(value)}; it must be True or False")


def check_choice(value: Any, what: str, options: Collection[str], or_else: str = "") -> str:
    """Return one of the options. Raises ValueError for anything else."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(
            f"{what} is {format_value(value)}; it must be one of {', '.join(options)}{or_else}"
        )
    return value


def check_folder(value: Any, what: str = "the run's folder") -> Path:
    """Return the path of a folder that exists or can be created; "~" is the user's home.

    Raises ValueError for anything else.
    """
    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes):
        raise ValueError(f"{what} is {format_value(value)}; it must be a path, as text or a Path")
    text = os.fspath(value)
    if not text.strip() or "\0" in text:
        raise ValueError(f"{what} is {format_value(text)}; it must be a path that names a folder")
    path = Path(text).expanduser() if text.split("/")[0] == "~" else Path(text)
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass  # it will be created
    except OSError as error:
        raise ValueError(
            f"{what} is {format_value(text)}, which the file system refuses: {error.strerror}"
        ) from None
    absolute = path.absolute()
    there = next(p for p in (absolute, *absolute.parents) if os.path.lexists(p))
    if not there.is_dir():
        raise ValueError(
            f"{what} is {format_value(text)}, but {there} is no folder; give a new folder, or "
            "one of a run"
        )
    return path


def check_ending(file: Path, *endings: str) -> None:
    """Raise ValueError unless the name of the file ends in one of these.

    >>> check_ending(Path("run.png"), ".html", ".htm")
    Traceback (most recent call last):
    ValueError: the file is 'run.png'; its name must end in .html or .htm
    """
    if not file.name.lower().endswith(endings):
        raise ValueError(
            f"the file is {format_value(file.name)}; its name must end in {' or '.join(endings)}"
        )


def check_page_file(path: str | Path, overwrite: bool = False) -> Path:
    """Return the file of a page.

    Raises FileExistsError if it exists, unless ``overwrite``, and ValueError unless it ends in
    .html or .htm.
    """
    path = Path(path)
    check_ending(path, ".html", ".htm")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists; pass overwrite=True to replace it")
    return path


def check_types(value: Any) -> None:
    """Raise ValueError for the first field of a dataclass whose value is not of its type."""
    check_settings(type(value), {f.name: getattr(value, f.name) for f in fields(value) if f.init})


def check_settings(of: Any, settings: Mapping[str, Any]) -> None:
    """Raise ValueError for the first setting that is not of its type.

    Types are those in the signature of a class or a function.
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
    """Return a ``__post_init__`` that also checks the types of all fields.

    Its own checks run first, because their messages are more specific.
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
    """Return, by name, the type and its source text. Unresolvable types are omitted."""
    hints = _resolve_type_hints(of)
    written = {name: p.annotation for name, p in signature(of).parameters.items()}
    return {name: (hints[name], str(text)) for name, text in written.items() if name in hints}


def _resolve_type_hints(of: Any) -> dict[str, Any]:
    """Return the types by name, with inherited ones.

    Types imported only for type checkers are omitted.
    """
    try:
        return get_type_hints(of)
    except NameError:
        pass
    hints: dict[str, Any] = {}
    for part in reversed(of.__mro__) if isinstance(of, type) else [unwrap(of)]:
        namespace = getattr(part, "__globals__", None) or vars(sys.modules[part.__module__])
        for name, text in get_annotations(part).items():
            hints.pop(name, None)  # the type in a base class
            with suppress(NameError):
                hints |= get_type_hints(
                    type("One", (), {"__annotations__": {name: text}}), namespace
                )
    return hints
