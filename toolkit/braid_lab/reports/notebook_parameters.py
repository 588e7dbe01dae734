"""The parameters of a notebook, and the values that each accepts.

Parameters are the literals of the cell tagged ``parameters`` (``name: type = value  # help``). The
help may begin with the accepted values, ended by a semicolon: "1 to 256", "1 or more", "above 0"
(of numbers, or of each number in a text such as "20,80"), or "one of a, b, c".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf, isfinite
from pathlib import Path
from typing import Any

from braid.errors import BraidError
from braid.util.optional_imports import OptionalImport
from braid.util.validation import format_value


class NotebookError(BraidError):
    """A notebook that cannot be run, or whose run failed; the message gives the reason."""


MOST_RUNS = 100
"""Maximum number of runs of a sweep."""
_NUMBER = r"\d+(?:\.\d+)?"
_RANGE = re.compile(rf"(({_NUMBER}) to ({_NUMBER})|({_NUMBER}) or more|above ({_NUMBER})) *(?:;|$)")
_ONE_OF = re.compile(r"one of (?P<options>[^;]+?) *(?:;|$)")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One literal of the parameters cell; ``help`` is the comment behind it."""

    name: str
    default: Any
    help: str

    def parse_value(self, text: str) -> Any:
        """Return the value of ``text``, with the default's type and as the help accepts it.

        Raises NotebookError for any other text.
        """
        kind = type(self.default)
        try:
            if kind is bool:
                return {"true": True, "false": False}[text.lower()]
            value = kind(text) if kind in (int, float, str) else ast.literal_eval(text)
        except (ValueError, KeyError, SyntaxError):
            wanted = "true or false" if kind is bool else f"a value of type {kind.__name__}"
            raise NotebookError(
                f"{self.name} is {format_value(text)}; it takes {wanted}, such as {self.default!r}"
            ) from None
        self._check_value(value)
        return value

    def _check_value(self, value: Any) -> None:
        if listed := _ONE_OF.match(self.help):
            options = [option.strip() for option in listed["options"].split(",")]
            if value not in options:
                raise NotebookError(
                    f"{self.name} is {format_value(value)}; it takes one of {', '.join(options)}"
                )
        listed = _RANGE.match(self.help)
        accepted = "a finite number" if listed is None else listed[1]
        for number in _parse_numbers(value, listed is not None):
            if number is None or not _is_in_range(number, listed):
                raise NotebookError(f"{self.name} is {format_value(value)}; it takes {accepted}")

    def __str__(self) -> str:
        return f"{self.name} = {self.default!r}" + (f"  {self.help}" if self.help else "")


def _parse_numbers(value: Any, ranged: bool) -> list[float | None]:
    """Return the numbers in a value, with None for a part that should be one.

    A text contains numbers if a range is given.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [value]
    if not isinstance(value, str) or not ranged:
        return []
    texts = [text.strip() for text in value.split(",")]
    return [float(t) if re.fullmatch(rf"-?{_NUMBER}", t) else None for t in texts]


def _is_in_range(number: float, match: re.Match[str] | None) -> bool:
    _, low, high, least, above = (None,) * 5 if match is None else match.groups()
    enough = number > float(above) if above else number >= float(low or least or -inf)
    return isfinite(number) and enough and number <= float(high or inf)


def read_parameters(notebook: Path) -> dict[str, Parameter]:
    """Return the parameters of a notebook by name, in order, from its tagged cell, if any.

    Raises NotebookError for a file that is no notebook.
    """
    with OptionalImport("notebooks"):
        import nbformat
        from papermill.translators import PythonTranslator

    try:
        content = nbformat.reads(notebook.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    except (ValueError, OSError, AttributeError) as error:  # nbformat raises these
        raise NotebookError(f"{notebook} is no notebook: {str(error).splitlines()[0]}") from None
    tagged = [c for c in content.cells if "parameters" in c.metadata.get("tags", [])]
    parsed = PythonTranslator.inspect(tagged[0]) if tagged else []
    return {
        p.name: Parameter(p.name, _parse_literal(p.name, p.default), _strip_noqa(p.help))
        for p in parsed
    }


def _strip_noqa(comment: str) -> str:
    """Return the help in a comment, without directives to ruff."""
    return comment.partition("# noqa")[0].strip()


def _parse_literal(name: str, text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise NotebookError(
            f"the parameters cell sets {name} = {text}; it may hold literals only"
        ) from None


def list_combinations(
    texts: Sequence[tuple[str, str]], accepted: Mapping[str, Parameter]
) -> list[dict[str, Any]]:
    """Return the values of each run of a sweep; one combination if every name has one value.

    A name has several values if it is given several times, or as numbers or options with commas. A
    free text may contain commas; it is one value.

    Raises NotebookError for an unknown name, a text that a parameter does not take, and over 100
    combinations.
    """
    values = dict[str, list[Any]]()
    for name, text in texts:
        parts = _split_values(text, accepted[name]) if name in accepted else [text]
        values.setdefault(name, []).extend(parse_values({name: p}, accepted)[name] for p in parts)
    several = {
        name: list(dict.fromkeys(map(_make_hashable, each))) for name, each in values.items()
    }
    combined = [dict(zip(several, each, strict=True)) for each in product(*several.values())]
    if len(combined) > MOST_RUNS:
        raise NotebookError(f"-p asks for {len(combined)} runs; a sweep has at most {MOST_RUNS}")
    return combined


def _make_hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _split_values(text: str, parameter: Parameter) -> list[str]:
    """Return the values in a text: its parts if the parameter takes a number or an option."""
    one_of = isinstance(parameter.default, str) and _ONE_OF.match(parameter.help)
    is_single = isinstance(parameter.default, bool | int | float) or one_of
    return [part.strip() for part in text.split(",")] if is_single else [text]


def parse_values(settings: Mapping[str, str], accepted: Mapping[str, Parameter]) -> dict[str, Any]:
    """Return values for the texts of ``settings``.

    Raises NotebookError for an unknown name or a text of the wrong type.
    """
    if unknown := [name for name in settings if name not in accepted]:
        listed = "".join(f"\n  {p}" for p in accepted.values()) or " none"
        raise NotebookError(
            f"no parameter is named {' or '.join(map(repr, unknown))}; accepted are:{listed}"
        )
    return {name: accepted[name].parse_value(text) for name, text in settings.items()}
